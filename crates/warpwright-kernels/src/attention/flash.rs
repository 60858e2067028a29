//! proto
use std::f32::consts::LOG2_E;
use warpwright_ptx::dsl::*;

/// dt
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Dtype { F32, F16, Bf16 }

/// proto
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct FlashAttention {
    pub head_dim: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub input: Dtype,
    pub output: Dtype,
    pub causal: bool,
    pub scale: f32,
    pub max_seq_len: u32,
}

const MASKED: f32 = -1e30;

impl FlashAttention {
    fn tiles(&self, sm: u16) -> (u32, u32, u32) {
        let rows = if self.head_dim > 128 { 64 } else { 128 };
        let keys = if self.head_dim > 128 { 32 } else { 64 };
        (rows, keys, if sm < 80 { 1 } else { 2 })
    }

    fn attend<'k, T: Half + ConvertFrom<f32>, O: ConvertFrom<f32>>(&self, k: K<'k>) {
        let (rows, keys, stages) = self.tiles(k.target().sm);
        let d = self.head_dim;
        let q = k.ptr::<T>("q");
        let key = k.ptr::<T>("k");
        let value = k.ptr::<T>("v");
        let out = k.ptr_mut::<O>("out");
        let q_len = k.scalar::<u32>("q_len");
        let kv_len = k.scalar::<u32>("kv_len");
        let (head, sequence) = (k.ctaid_y(), k.ctaid_z());
        let kv_head = head / (self.heads / self.kv_heads);
        let row = (k.nctaid() - 1 - k.ctaid()) * rows;
        k.exit_if(row.ge(q_len));
        let at = (sequence * q_len * self.heads + head) * d;
        let q = q.at(at).matrix(q_len, d).pitch(self.heads * d);
        let out = out.at(at).matrix(q_len, d).pitch(self.heads * d).columns_fit(true);
        let at = (sequence * self.kv_heads + kv_head) * self.max_seq_len * d;
        let key = key.at(at).matrix(kv_len, d).columns_fit(true);
        let value = value.at(at).matrix(kv_len, d).columns_fit(true);

        let reach = |row: Reg<'k, u32>| if self.causal { ((row + 1 + kv_len).max(q_len) - q_len).min(kv_len) } else { kv_len };
        let tiles = (reach(row + (rows - 1)) + (keys - 1)) / keys;
        let whole = (reach(row).max(1) - 1) / keys;
        let first = |tile: Reg<'k, u32>| (tiles - 1 - tile) * keys;
        let warp_row = k.warp() * 16;

        let q_tile = k.shared_tile::<T>(rows, d);
        q_tile.load(q, row, 0);
        k.sync();
        let q_tile = q_tile.rows(warp_row, 16);
        let held = (d <= 128).then(|| q_tile.load_a());

        let pipeline = k.pipeline(stages);
        let (k_tiles, v_tiles) = (pipeline.tile::<T>(keys, d), pipeline.tile::<T>(keys, d));
        let load = |whole: bool| {
            move |stage, tile| {
                k_tiles.at(stage).load(key.rows_fit(whole), first(tile), 0);
                v_tiles.at(stage).load(value.rows_fit(whole), first(tile), 0);
            }
        };
        let c = self.scale * LOG2_E;
        let ones = k.factor_b::<T>(16, 8, 1.0);
        let scores = |stage, shift: Rows<'k>| -> Tile<'k, Acc, f32> {
            let tile = k_tiles.at(stage);
            (0..d).step_by(16).fold(shift.across(keys), |s, i| {
                let q = match held { Some(q) => q.k_step(i), None => q_tile.columns(i, 16).load_a() };
                q.mma(tile.columns(i, 16).load_bt(), s)
            })
        };
        let weigh = |stage, s: Tile<'k, Acc, f32>, out, sum| {
            let p = s.mul_add(c, 7.0).exp2_ftz().as_a::<T>();
            let tile = v_tiles.at(stage);
            (0..keys).step_by(16).fold((out, sum), |(out, sum), j| {
                let p = p.k_step(j);
                (p.mma(tile.rows(j, 16).load_b(), out), p.mma(ones, sum))
            })
        };
        let init = (k.accumulators(16, d), k.accumulators(16, 8), k.rows(16, 0.0));
        let floor = k.rows(16, -1e29);
        let _ = floor;
        let masked = |stage, tile, (out, sum, shift): (Tile<'k, Acc, f32>, Tile<'k, Acc, f32>, Rows<'k>)| {
            let s = scores(stage, shift);
            let s = s.map_at(|r, column, s| {
                let column = first(tile) + column;
                let visible = if self.causal { (column + q_len).le(row + warp_row + r + kv_len) } else { column.lt(kv_len) };
                visible.select(s, MASKED)
            });
            let rise = s.row_max();
            let fix = (rise * -c).exp2_ftz();
            let (out, sum) = weigh(stage, s - rise, out * fix, sum * fix);
            (out, sum, shift - rise)
        };
        let unmasked = |stage, _, (out, sum, shift): (Tile<'k, Acc, f32>, Tile<'k, Acc, f32>, Rows<'k>)| {
            let s = scores(stage, shift);
            let rise = s.row_max().max(0.0);
            let (s, out, sum, shift) = k.fold_if(rise.any(|rise| rise.gt(8.0 / c)), (s, out, sum, shift), |(s, out, sum, shift)| {
                let fix = (rise * -c).exp2_ftz();
                (s - rise, out * fix, sum * fix, shift - rise)
            });
            let (out, sum) = weigh(stage, s, out, sum);
            (out, sum, shift)
        };
        let (o, sum, _) = pipeline.run_split(tiles - whole, tiles, init, (load(false), masked), (load(true), unmasked));
        let inv = sum.row_values().map(|s| s.gt(0.0).select(s.rcp(), 0.0));
        (o * inv).store(out, row + warp_row, 0);
    }
}

impl Kernel for FlashAttention {
    fn entry(&self) -> String { format!("flash_d{}", self.head_dim) }
    fn args(&self) -> Vec<ArgDesc> {
        vec![
            ArgDesc::input::<F16>("q", 1), ArgDesc::input::<F16>("k", 1), ArgDesc::input::<F16>("v", 1),
            ArgDesc::output::<F16>("out", 1), ArgDesc::scalar::<u32>("q_len"), ArgDesc::scalar::<u32>("kv_len"),
        ]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.tiles(80).0 / 16 * 32)
    }
    fn body(&self, k: K<'_>) {
        match self.input {
            Dtype::F16 => self.attend::<F16, F16>(k),
            _ => self.attend::<Bf16, Bf16>(k),
        }
    }
}
