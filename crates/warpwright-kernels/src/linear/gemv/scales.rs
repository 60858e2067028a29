//! Scales: read once, 16 bytes a lane, decoded, and handed to the lanes that need them through shared memory.
//!
//! The scales and minima of two superblocks, or the scales of sixteen blocks, are 32 bytes of a row: half of
//! them, of one of its group's rows, is what a lane loads. So the 32 lanes load those of all sixteen rows at
//! once. Rows are ten chunks of 16 bytes apart in shared memory, so that neither the stores of 16 bytes nor
//! the loads of words meet in a bank.

use super::format::Layout;
use super::plan::{GROUPS, LANES, Lanes, QUAD, Slice};
use crate::weights::WeightFormat;
use warpwright_dsl::*;

/// Words between the scales of neighbouring rows of a group.
const PITCH: u32 = GROUPS * LANES + 8;
/// Superblocks of a row of each group in a slice.
const SUPERBLOCKS: u32 = GROUPS * 2;

/// How the factors of superblocks lie in shared memory: words of one, and words between those of neighbouring
/// rows of a group, so that lanes that store them meet in no bank.
fn factors(layout: Layout) -> (u32, u32) {
    match layout.format {
        WeightFormat::Q4K | WeightFormat::Q5K => (2, 3 * SUPERBLOCKS),
        WeightFormat::Q6K => (1, SUPERBLOCKS),
        _ => (0, 0),
    }
}

/// The scales of a lane's share of a row.
pub(super) enum Scales<'k> {
    /// Weights are numbers.
    None,
    /// One for each part.
    Parts(Vec<Reg<'k, f32>>),
    /// A factor and a scale for each part, and the same of the minima.
    Super { d: Reg<'k, f32>, scales: Vec<Reg<'k, f32>>, minima: Option<(Reg<'k, f32>, [Reg<'k, f32>; 2])> },
}

/// What a lane loads of the scales.
pub(super) struct Loaded<'k> {
    words: Vec<Reg<'k, u32>>,
    d: Option<Reg<'k, F16>>,
}

/// Where a warp exchanges its scales.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'k> {
    layout: Layout,
    lanes: Lanes<'k>,
    /// Rows of a group.
    rows: u32,
    memory: Ptr<'k, Shared, f32>,
    /// The row of the group that this lane loads the scales of.
    row: Reg<'k, u32>,
    /// The superblock of the warp's rows `r` that the lane works on.
    superblock: Reg<'k, u32>,
}

impl<'k> Exchange<'k> {
    /// Words of shared memory that a warp needs.
    pub(super) fn words(layout: Layout, rows: u32) -> u32 {
        if layout.parts() == 0 { 0 } else { rows * (PITCH + factors(layout).1) }
    }

    pub(super) fn new(layout: Layout, lanes: Lanes<'k>, rows: u32, memory: Ptr<'k, Shared, f32>) -> Self {
        let (row, superblock) = (lanes.in_quad % rows, lanes.lane / QUAD);
        Exchange { layout, lanes, rows, memory, row, superblock }
    }

    /// The row of the group that this lane loads the scales of.
    pub(super) fn row(self) -> Reg<'k, u32> {
        self.row
    }

    /// Whether this lane loads scales of the slice.
    fn loads(self, slice: Slice<'k>) -> Option<Reg<'k, Pred>> {
        let of_group = (self.rows < QUAD).then(|| self.lanes.in_quad.lt(self.rows));
        let there = match slice.rest {
            None => None,
            Some(rest) => rest.half.then(|| self.lanes.half.eq(0)),
        };
        match (of_group, there) {
            (Some(of_group), Some(there)) => Some(of_group & there),
            (one, other) => one.or(other),
        }
    }

    /// Loads the scales of the slice from the row's scales, and factors where they have a plane.
    pub(super) fn load(
        self,
        k: K<'k>,
        pitch: Dim<'k>,
        slice: Slice<'k>,
        scales: Ptr<'k, Global, u32>,
        factors: Option<Ptr<'k, Global, F16>>,
    ) -> Loaded<'k> {
        let condition = self.loads(slice);
        let at = slice.number * 8 + self.lanes.half * 4;
        let together = || -> [_; 4] {
            match condition {
                Some(condition) => scales.ld_vec_if(condition, at, 0),
                None => scales.ld_vec(at),
            }
        };
        // The scales of a row begin anywhere.
        let by_halves = || -> [_; 4] {
            let weights = slice.rest.map_or(k.u32(self.layout.slice()), |rest| rest.weights);
            let half = |i: u32| {
                let block = self.lanes.half * 8 + i;
                let mut present = (block * 32).lt(weights);
                if let Some(condition) = condition {
                    present = present & condition;
                }
                scales.cast::<u16>().ld_if(present, at * 2 + i, k.value::<u16>(0)).to::<u32>()
            };
            std::array::from_fn(|i| half(2 * i as u32) | half(2 * i as u32 + 1) << 16)
        };
        let aligned = self.layout.units() || pitch.is_multiple_of(16);
        let words = if aligned { together() } else { by_halves() }.to_vec();
        let d = factors.map(|factors| {
            let at = slice.number * 2 + self.lanes.half;
            match condition {
                Some(condition) => factors.ld_if(condition, at, k.value::<F16>(0.0)),
                None => factors.ld(at),
            }
        });
        Loaded { words, d }
    }

    /// Hands them to the other lanes.
    pub(super) fn store(self, loaded: &Loaded<'k>) {
        let [a, b, c, d] = loaded.words[..] else { return };
        let row = self.row;
        let place = row * PITCH + self.lanes.group * LANES + self.lanes.half * QUAD;
        let writes = (self.rows < QUAD).then(|| self.lanes.in_quad.lt(self.rows));
        let words = self.memory.cast::<u32>();
        match writes {
            Some(writes) => words.st_vec_if(writes, place, [a, b, c, d]),
            None => words.st_vec(place, [a, b, c, d]),
        }
        let factors = self.factors(row);
        if self.layout.has_minima() {
            // d and dmin are the upper two bits of the sixteen bytes: see docs/weights.md.
            let merge = |low: Reg<'k, u32>, high: Reg<'k, u32>, mask: u32| (low & mask) | (high & !mask);
            let low = merge(a >> 6, b >> 4, 0x0303_0303);
            let high = merge(c >> 2, d, 0x3030_3030);
            let both = merge(low, high, 0x0f0f_0f0f).bits::<F16x2>().f32x2();
            match writes {
                Some(writes) => factors.st_vec_if(writes, 0, both),
                None => factors.st_vec(0, both),
            }
        }
        if let Some(d) = loaded.d {
            match writes {
                Some(writes) => factors.st_if(writes, 0, d.f32()),
                None => factors.st(0, d.f32()),
            }
        }
    }

    /// Where the factors of the lane's superblock of row `row` of its group are.
    fn factors(self, row: Reg<'k, u32>) -> Ptr<'k, Shared, f32> {
        let (words, pitch) = factors(self.layout);
        self.memory.at(self.rows * PITCH).at(self.superblock * words).at(row * pitch)
    }

    /// The scales of the lane's share of row `row` of its group.
    pub(super) fn scales(self, row: u32) -> Scales<'k> {
        let Lanes { lane, group, unit, .. } = self.lanes;
        let factors = self.factors(lane.kernel().u32(row));
        let word = || self.memory.cast::<u32>().ld(lane + row * PITCH);
        let halves = |at: Reg<'k, u32>, further: u32| {
            let memory = self.memory.cast::<F16>().at(group * (LANES * 2) + at);
            (0..self.layout.parts()).map(|i| memory.ld(row * (PITCH * 2) + i * further).f32()).collect()
        };
        match self.layout.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => Scales::None,
            WeightFormat::Q4_0 => Scales::Parts(halves(unit, 8)),
            WeightFormat::Q8_0 => Scales::Parts(halves(unit / 2, 4)),
            WeightFormat::Q4K | WeightFormat::Q5K => {
                let [s0, m0, s1, m1] = (word() & 0x3f3f_3f3f).bytes().map(|byte| byte.f32());
                let [d, dmin] = factors.ld_vec(0);
                Scales::Super { d, scales: vec![s0, s1], minima: Some((dmin, [m0, m1])) }
            }
            WeightFormat::Q6K => {
                let word = word().bits::<i32>();
                let scales = [0, 8, 16, 24].map(|position| word.bfe(position, 8).f32()).to_vec();
                Scales::Super { d: factors.ld(0), scales, minima: None }
            }
        }
    }
}
