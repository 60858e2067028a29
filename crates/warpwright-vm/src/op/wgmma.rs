//! `wgmma`: products of a warpgroup, four warps, with factors in shared memory.
//!
//! A warp holds 16 of the 64 rows of the sums, and computes them when it executes the instruction: it reads its rows of
//! `a` and all of `b` at once, and writes the sums at once. The checks take the reads for those of an asynchronous
//! agent, which may come at any time until the group is waited for. Registers that are used too early are told from the
//! text (`decode/in_flight.rs`).
//!
//! A matrix descriptor says where a factor stands. Memory is read in chunks of 16 bytes, consecutive elements along k, or
//! along the rows of `a` or columns of `b` where those are transposed ([`Layout`]).

use super::matrix::{
    Arithmetic, CHUNK, Held, Integer, Layout, Results, Sparse, float, gather, multiply, packed, scatter,
    sums, words,
};
use crate::check::race::{AccessKind, Agent, GroupsOf};
use crate::decode::{Decoder, Rows};
use crate::launch::TrapKind;
use crate::machine::{FULL, Inst, LANES, LanesOf, Machine, NONE, Row32, Step};
use crate::memory::{AccessSpec, RANK_BITS, SpaceKind};
use crate::native::Fragments;
use crate::num::half::{f16_to_f32, f32_to_f16};
use crate::simd::{LaneOp, lanes};
use crate::tensor::integer::{self, BitProduct, Overflow, bit_product};
use crate::tensor::{
    Accumulation, Accumulator, COLUMNS, FloatElement, FloatProduct, Left, Size, Sparsity, Spread, split, tile,
};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::family::Wgmma as Op;
use warpwright_ptx::op::wgmma::WgmmaShape;

/// Rows of the sums that a warp holds.
const ROWS: usize = 16;

/// Warps of a warpgroup.
const WARPS: usize = 4;

macro_rules! form {
    ($op:ident, bits: $bits:expr) => {
        Form {
            shape: $op.shape,
            types: [$op.d_type, $op.a_type, $op.b_type],
            overflow: if $op.satfinite { Overflow::Saturate } else { Overflow::Wrap },
            bits: $bits,
            d: &$op.d.0,
            a: &$op.a,
            b: &$op.b,
            scale_d: &$op.scale_d,
            negated: [&$op.scale_a, &$op.scale_b].map(|scale| is_constant(scale, -1)),
            transposed: [&$op.trans_a, &$op.trans_b].map(|transposed| is_constant(transposed, 1)),
        }
    };
}
pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) {
    match op {
        Op::WgmmaFence(_) => d.emit_fallible(|m| m.together()),
        Op::WgmmaCommitGroup(_) => d.emit_fallible(|m| {
            m.together()?;
            m.warp.products += 1;
            m.worker.progress = true;
            m.committed_groups(GroupsOf::Products);
            Ok(())
        }),
        Op::WgmmaWaitGroup(op) => {
            let pending = op.n.imm().and_then(|imm| imm.bits()).unwrap_or(0) as u32;
            d.emit_fallible(move |m| {
                m.together()?;
                m.wait_for_products(pending)
            });
        }
        Op::WgmmaMmaAsync(op) => form!(op, bits: op.bit_product.is_some()).emit(None, d),
        Op::WgmmaMmaAsyncSp(op) => form!(op, bits: false).emit(Some((&op.metadata, &op.selector)), d),
    }
}

/// The parts that dense and sparse products share.
struct Form<'a> {
    shape: WgmmaShape,
    /// Types of `d`, `a` and `b`.
    types: [Type; 3],
    overflow: Overflow,
    bits: bool,
    d: &'a [Reg],
    a: &'a Srcs,
    b: &'a Src,
    scale_d: &'a Src,
    /// Whether the factors are negated, and whether they are transposed.
    negated: [bool; 2],
    transposed: [bool; 2],
}

fn is_constant(src: &Option<Src>, value: i64) -> bool {
    src.as_ref().and_then(Src::imm).and_then(|imm| imm.bits()) == Some(value as u64)
}

impl Form<'_> {
    fn emit(&self, sparse: Option<(&Src, &Src)>, d: &mut Decoder<'_, '_>) {
        let [d_type, a_type, b_type] = self.types;
        let (n, k) = (usize::from(self.shape.n()), usize::from(self.shape.k()));
        let integer = |ty: Type| Integer { bits: ty.bits(), signed: ty.is_signed() };
        let arithmetic = match (float(a_type), float(b_type)) {
            (Some(a), Some(b)) => {
                let sums = if d_type == Type::F16 { Accumulator::F16 } else { Accumulator::F32 };
                Arithmetic::Float { a, b, c: sums, d: sums }
            }
            _ if self.bits => Arithmetic::Bits(BitProduct::And),
            _ => Arithmetic::Integer { a: integer(a_type), b: integer(b_type), overflow: self.overflow },
        };
        // Bits are kept in words.
        let (element_bits, per_element) = if self.bits { (32, 32) } else { (a_type.bits(), 1) };
        let (kept, depth) = (if sparse.is_some() { k / 2 } else { k } / per_element, k / per_element);
        let a = match self.a {
            Srcs::One(descriptor) => LeftSource::Shared(d.src64(descriptor, Type::U64)),
            Srcs::Many(regs) => {
                let rows = regs.iter().map(|reg| d.src32(reg, Type::B32)).collect::<Box<[u32]>>();
                let per = packed(a_type);
                LeftSource::Registers(Held { spread: Spread::left(ROWS, kept, per, per * rows.len()), rows })
            }
        };
        let rows: Box<[u32]> = self.d.iter().map(|&reg| d.row(reg)).collect();
        let spread = Spread::accumulator(ROWS, n);
        let sparse = sparse.map(|(metadata, selector)| Sparse {
            sparsity: Sparsity { k, bits: a_type.bits(), selector: 0 },
            metadata: d.src32(metadata, Type::B32),
            selector: d.src32(selector, Type::U32),
            ordered: false,
        });
        let product = WarpgroupProduct {
            arithmetic,
            n,
            k,
            kept,
            depth,
            element_bits,
            results: Results { rows: rows.iter().map(|&row| Some(row)).collect(), spread: spread.clone() },
            sums: Held { rows, spread },
            a,
            b: d.src64(self.b, Type::U64),
            scale_d: d.predicate(self.scale_d),
            negated: self.negated,
            transposed: self.transposed,
            sparse,
        };
        let x = d.code.matrix.warpgroup.len() as u32;
        d.code.async_proxy = true;
        d.code.matrix.warpgroup.push(product);
        d.emit(lanes::<MultiplyWarpgroup>(), Rows { x, ..Rows::default() });
    }
}

/// Where the left factor is.
enum LeftSource {
    Registers(Held),
    /// In shared memory; the row with the descriptor.
    Shared(u32),
}

/// A decoded `wgmma.mma_async`.
pub(crate) struct WarpgroupProduct {
    arithmetic: Arithmetic,
    n: usize,
    k: usize,
    /// Elements of a row of `a`, without those that are left out, and of a column of `b`. Of single bits: words.
    kept: usize,
    depth: usize,
    /// Bits of such an element.
    element_bits: u32,
    sums: Held,
    results: Results,
    a: LeftSource,
    /// The row with the descriptor.
    b: u32,
    /// The predicate operand.
    scale_d: u32,
    negated: [bool; 2],
    transposed: [bool; 2],
    sparse: Option<Sparse>,
}

struct MultiplyWarpgroup;

impl LaneOp for MultiplyWarpgroup {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Err(step) = m.together() {
            return step;
        }
        let launch = m.launch;
        launch.code.matrix.warpgroup[i.x as usize].run(m).err().unwrap_or(Step::Next)
    }
}

impl Machine<'_> {
    /// Waits until the whole warp executes the instruction, which must be one of a warpgroup.
    fn together(&mut self) -> Result<(), Step> {
        if let Some(step) = self.converge(FULL, NONE) {
            return Err(step);
        }
        if self.warp_index / WARPS * WARPS + WARPS > self.block.warps.len() {
            let (warps, first) = (self.block.warps.len(), self.warp_index / WARPS * WARPS);
            let message = format!(
                "a warpgroup is four warps, and the block has {} from warp {first} on",
                warps - first
            );
            return Err(self.trap(TrapKind::BadOperand, message));
        }
        Ok(())
    }

    /// Waits until at most so many groups of the warpgroup are pending: a product is one operation of its four warps,
    /// and complete for all of them or for none.
    fn wait_for_products(&mut self, pending: u32) -> Result<(), Step> {
        let complete = self.warp.products.saturating_sub(pending.into());
        let first = self.warp_index / WARPS * WARPS;
        let warps = first..first + WARPS;
        let is_behind = |warp: usize| {
            let other = &self.block.warps[warp];
            other.live != 0 && other.products < complete
        };
        if warps.clone().any(is_behind) {
            self.not_yet();
            self.give_way();
            return Err(Step::Goto(self.pc));
        }
        self.waited_for_groups(GroupsOf::Products, pending, false);
        warps.for_each(|warp| self.waited_for_products_of(warp, complete));
        Ok(())
    }

    /// A value that all lanes must have.
    pub(super) fn uniform<T: Copy + PartialEq>(&mut self, of: &str, row: [T; LANES]) -> Result<T, Step> {
        let first = row[self.mask.trailing_zeros() as usize % LANES];
        match LanesOf(self.mask).find(|&lane| row[lane] != first) {
            None => Ok(first),
            Some(lane) => {
                let message = format!("{of} of lane {lane} is not that of the other lanes");
                Err(self.trap(TrapKind::BadOperand, message))
            }
        }
    }

    fn layout(&mut self, of: &str, row: u32) -> Result<Layout, Step> {
        let descriptor = *self.registers.row64(row);
        let rank = u64::from(self.block.rank) << RANK_BITS;
        Ok(Layout::of_warpgroup(self.uniform(of, descriptor)?, rank))
    }
}

impl WarpgroupProduct {
    #[inline(always)]
    fn run(&self, m: &mut Machine<'_>) -> Result<(), Step> {
        let adds = m.registers.predicate(self.scale_d);
        let adds = m.uniform("`scale_d`", std::array::from_fn(|lane| adds >> lane & 1 != 0))?;
        match self.arithmetic {
            Arithmetic::Float { a, b, d, .. } => self.float(a, b, d, adds, m),
            Arithmetic::Integer { a, b, overflow } => self.integer(a, b, overflow, adds, m),
            _ => self.bits(adds, m),
        }
    }

    #[inline(always)]
    fn float(
        &self,
        a: FloatElement,
        b: FloatElement,
        accumulator: Accumulator,
        adds: bool,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let core = m.launch.options.tensor_core;
        let rule = core.warpgroup_accumulation(a);
        let (n, depth) = (self.n, self.depth);
        // With one block and whole sums, columns stay in the order of the registers.
        let tiled = match rule {
            Some(rule) if accumulator == Accumulator::F32 && self.sparse.is_none() => {
                (rule.block == depth && depth <= 16).then_some(rule)
            }
            _ => None,
        };
        match (tiled, a) {
            (Some(rule), FloatElement::F16) => return self.fragments::<false>(rule, adds, m),
            (Some(rule), FloatElement::BF16) => return self.fragments::<true>(rule, adds, m),
            _ => {}
        }
        let left = match a {
            FloatElement::F16 => self.left(m, |v| FloatElement::F16.decode(v)),
            FloatElement::BF16 => self.left(m, |v| FloatElement::BF16.decode(v)),
            FloatElement::TF32 => self.left(m, |v| FloatElement::TF32.decode(v)),
            FloatElement::E4M3 => self.left(m, |v| FloatElement::E4M3.decode(v)),
            FloatElement::E5M2 => self.left(m, |v| FloatElement::E5M2.decode(v)),
            // It has no others.
            other => self.left(m, |v| other.decode(v)),
        }?;
        let left: Vec<f32> = if self.negated[0] { left.iter().map(|v| -v).collect() } else { left };
        let place: fn(usize) -> usize = if tiled.is_some() { even_first } else { |column| column };
        let mut right = match b {
            FloatElement::F16 => self.right(m, |v| FloatElement::F16.decode(v), place),
            FloatElement::BF16 => self.right(m, |v| FloatElement::BF16.decode(v), place),
            FloatElement::TF32 => self.right(m, |v| FloatElement::TF32.decode(v), place),
            FloatElement::E4M3 => self.right(m, |v| FloatElement::E4M3.decode(v), place),
            FloatElement::E5M2 => self.right(m, |v| FloatElement::E5M2.decode(v), place),
            other => self.right(m, |v| other.decode(v), place),
        }?;
        if self.negated[1] {
            right.iter_mut().for_each(|value| *value = -*value);
        }
        if let Some(rule) = tiled {
            self.tiles(rule, adds, &left, &right, m);
            return Ok(());
        }
        let mut added = vec![0.0; ROWS * n];
        let mut result = vec![0.0; ROWS * n];
        if adds {
            match accumulator {
                Accumulator::F32 => gather(&m.registers, &self.sums, 32, f32::from_bits, &mut added),
                Accumulator::F16 => {
                    gather(&m.registers, &self.sums, 16, |v| f16_to_f32(v as u16), &mut added);
                }
            }
        }
        let product = FloatProduct { core, a, b, sums: accumulator };
        let columns = Sparse::columns(&self.sparse, m, &left)?;
        let left = Left { values: &left, columns: columns.as_deref() };
        product.product_by(rule, self.size(), left, &right, &added, &mut result);
        match accumulator {
            Accumulator::F32 => scatter(m, &self.results, 32, f32::to_bits, &result),
            Accumulator::F16 => scatter(m, &self.results, 16, |v| f32_to_f16(v).into(), &result),
        }
        Ok(())
    }

    /// The product of factors of 16 bits, eight columns after eight, each as `mma.m16n8k16` has it.
    #[inline(always)]
    fn fragments<const BF16: bool>(
        &self,
        rule: Accumulation,
        adds: bool,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let mut left = match &self.a {
            LeftSource::Registers(held) => held.rows.iter().map(|row| *m.registers.row32(*row)).collect(),
            LeftSource::Shared(row) => {
                let (layout, stripe) = self.left_stripe(*row, m)?;
                let mut read = self.read_fragments(m, layout, stripe)?;
                // The second eight rows come before the second half of k.
                read.swap(1, 2);
                read
            }
        };
        let (layout, stripe) = self.right_stripe(m)?;
        let mut right = self.read_fragments(m, layout, stripe)?;
        for (factor, negated) in [(&mut left, self.negated[0]), (&mut right, self.negated[1])] {
            if negated {
                factor.as_flattened_mut().iter_mut().for_each(|word| *word ^= 0x8000_8000);
            }
        }
        let a = [&left[0], &left[1], &left[2], &left[3]];
        for (sums, [first, second]) in self.sums.rows.as_chunks::<4>().0.iter().zip(right.as_chunks().0) {
            let c = sums.map(|row| if adds { m.registers.row32(row) } else { &[0; LANES] });
            let of = Fragments { a, b: [first, second], c };
            let results = multiply::<BF16>(of, (rule.block, rule.extra_bits));
            for (row, words) in sums.iter().zip(&results) {
                m.registers.set32(*row, words, m.mask);
            }
        }
        Ok(())
    }

    /// The product of factors of `tf32` where all of k is one block of additions.
    #[inline(always)]
    fn tiles(&self, rule: Accumulation, adds: bool, left: &[f32], right: &[f32], m: &mut Machine<'_>) {
        const K: usize = 8;
        let least = rule.least_exponent(FloatElement::TF32);
        let mut rows = [[0.0; K]; ROWS];
        rows.as_flattened_mut().copy_from_slice(left);
        let left = split(&rows, least);
        for (number, held) in self.sums.rows.as_chunks::<4>().0.iter().enumerate() {
            let mut columns = [[0.0; COLUMNS]; K];
            for (column, values) in columns.iter_mut().zip(right.chunks_exact(self.n)) {
                column.copy_from_slice(&values[COLUMNS * number..][..COLUMNS]);
            }
            let mut added = match adds {
                true => sums(held.map(|row| m.registers.row32(row))),
                false => [[0.0; COLUMNS]; ROWS],
            };
            tile::<ROWS, K, K>(rule.extra_bits, &left, &split(&columns, least), &mut added);
            for (row, words) in held.iter().zip(&words(&added)) {
                m.registers.set32(*row, words, m.mask);
            }
        }
    }

    #[inline(always)]
    fn integer(
        &self,
        a: Integer,
        b: Integer,
        overflow: Overflow,
        adds: bool,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let extend = |ty: Integer| {
            move |value: u32| if ty.signed { i32::from(value as i8) } else { i32::from(value as u8) }
        };
        let left = self.left(m, extend(a))?;
        let right = self.right(m, extend(b), |column| column)?;
        let (added, mut result) = self.whole_sums(adds, m);
        let columns = Sparse::columns(&self.sparse, m, &left)?;
        let left = Left { values: &left, columns: columns.as_deref() };
        integer::product(overflow, self.size(), left, &right, &added, &mut result);
        scatter(m, &self.results, 32, |value| value as u32, &result);
        Ok(())
    }

    #[inline(always)]
    fn bits(&self, adds: bool, m: &mut Machine<'_>) -> Result<(), Step> {
        let left = self.left(m, |value| value)?;
        let right = self.right(m, |value| value, |column| column)?;
        let (added, mut result) = self.whole_sums(adds, m);
        bit_product(BitProduct::And, self.size(), &left, &right, &added, &mut result);
        scatter(m, &self.results, 32, |value| value as u32, &result);
        Ok(())
    }

    /// What is added, and room for the results.
    fn whole_sums(&self, adds: bool, m: &Machine<'_>) -> (Vec<i32>, Vec<i32>) {
        let (mut added, result) = (vec![0; ROWS * self.n], vec![0; ROWS * self.n]);
        if adds {
            gather(&m.registers, &self.sums, 32, |value| value as i32, &mut added);
        }
        (added, result)
    }

    fn size(&self) -> Size {
        Size { m: ROWS, n: self.n, k: self.k }
    }

    /// The warp's rows of `a`, row-major.
    #[inline(always)]
    fn left<T: Copy + Default>(
        &self,
        m: &mut Machine<'_>,
        decode: impl Fn(u32) -> T,
    ) -> Result<Vec<T>, Step> {
        let kept = self.kept;
        let row = match &self.a {
            LeftSource::Shared(row) => *row,
            LeftSource::Registers(held) => {
                let mut out = vec![T::default(); ROWS * kept];
                gather(&m.registers, held, self.element_bits, decode, &mut out);
                return Ok(out);
            }
        };
        let (layout, stripe) = self.left_stripe(row, m)?;
        let read = self.read(m, layout, stripe, [kept, 1], |row| row)?;
        Ok(decoded(&read, decode))
    }

    fn left_stripe(&self, row: u32, m: &mut Machine<'_>) -> Result<(Layout, Stripe), Step> {
        let layout = m.layout("the descriptor of `a`", row)?;
        let first = ROWS * (m.warp_index % WARPS);
        let stripe = Stripe { first, count: ROWS, depth: self.kept, transposed: self.transposed[0] };
        Ok((layout, stripe))
    }

    fn right_stripe(&self, m: &mut Machine<'_>) -> Result<(Layout, Stripe), Step> {
        let layout = m.layout("the descriptor of `b`", self.b)?;
        let stripe = Stripe { first: 0, count: self.n, depth: self.depth, transposed: self.transposed[1] };
        Ok((layout, stripe))
    }

    /// The columns of `b`, row-major, each at its place.
    #[inline(always)]
    fn right<T: Copy + Default>(
        &self,
        m: &mut Machine<'_>,
        decode: impl Fn(u32) -> T,
        place: fn(usize) -> usize,
    ) -> Result<Vec<T>, Step> {
        let (layout, stripe) = self.right_stripe(m)?;
        let read = self.read(m, layout, stripe, [1, self.n], place)?;
        Ok(decoded(&read, decode))
    }

    /// Reads rows of `a` or columns of `b`, from the first of the stripe: the bits of each element at the low end, and
    /// its neighbours' above, in a matrix with steps from one to the next and along k. `place` says which each becomes.
    #[inline(always)]
    fn read(
        &self,
        m: &mut Machine<'_>,
        layout: Layout,
        stripe: Stripe,
        [across, along]: [usize; 2],
        place: fn(usize) -> usize,
    ) -> Result<Vec<u32>, Step> {
        let Stripe { count, depth, transposed, .. } = stripe;
        let bits = self.element_bits;
        let per_chunk = (128 / bits) as usize;
        let starts: Vec<usize> = (0..count).map(|line| place(line) * across).collect();
        let mut out = vec![0; count * depth];
        self.chunks(m, layout, stripe, |line, other, chunk| {
            let values = elements(chunk, bits).into_iter().take(per_chunk);
            let other = per_chunk * other;
            if transposed {
                let starts = starts[other..].iter();
                values.zip(starts).for_each(|(value, start)| out[start + line * along] = value);
            } else {
                let to = out[starts[line] + other * along..].iter_mut().step_by(along);
                to.zip(values).for_each(|(to, value)| *to = value);
            }
        })?;
        Ok(out)
    }

    /// Reads rows of `a` or columns of `b` with elements of 16 bits, 16 along k, as the lanes have them for
    /// `mma.m16n8k16`: of each eight a register with the first eight along k, then one with the others.
    #[inline(always)]
    fn read_fragments(
        &self,
        m: &mut Machine<'_>,
        layout: Layout,
        stripe: Stripe,
    ) -> Result<Vec<Row32>, Step> {
        let mut out = vec![[0; LANES]; stripe.count / 8 * 2];
        self.chunks(m, layout, stripe, |line, other, chunk| {
            if !stripe.transposed {
                out[line / 8 * 2 + other][4 * (line % 8)..][..4].copy_from_slice(chunk);
                return;
            }
            let to = &mut out[2 * other + line / 8][line % 8 / 2..];
            for (word, value) in to.iter_mut().step_by(4).zip(elements(chunk, 16)) {
                *word |= (value & 0xffff) << (16 * (line % 2));
            }
        })?;
        Ok(out)
    }

    /// Reads the chunks of rows of `a` or columns of `b`. `put` gets the row or column and the number of the chunk along k,
    /// or, if it is transposed, the place along k and the number of the chunk.
    #[inline(always)]
    fn chunks(
        &self,
        m: &mut Machine<'_>,
        layout: Layout,
        stripe: Stripe,
        mut put: impl FnMut(usize, usize, &[u32; 4]),
    ) -> Result<(), Step> {
        let Stripe { first, count, depth, transposed } = stripe;
        let per_chunk = (128 / self.element_bits) as usize;
        // Chunks of a core matrix, eight of them, come first, then those beside it in the same eight rows or along k.
        let (others, chunks) = if transposed {
            (count / per_chunk, count / per_chunk * depth)
        } else {
            (depth / per_chunk, count * (depth / per_chunk))
        };
        if !transposed && layout.row_chunks != 1 && others > layout.row_chunks {
            let message = "a factor of 64 bytes along k with 32-byte swizzling, which has no such layout";
            return Err(m.trap(TrapKind::BadOperand, message.to_owned()));
        }
        let spec =
            AccessSpec { space: SpaceKind::Shared, bytes: CHUNK as u32, align: CHUNK as u32, write: false };
        for start in (0..chunks).step_by(LANES) {
            let lanes = (chunks - start).min(LANES);
            let mut places = [(0, 0); LANES];
            let mut addresses = [0; LANES];
            for lane in 0..lanes {
                let (group, within) = ((start + lane) / 8, (start + lane) % 8);
                let (line, other) = (8 * (group / others) + within, group % others);
                places[lane] = (line, other);
                addresses[lane] = if transposed {
                    layout.transposed(first / per_chunk + other, line)
                } else {
                    layout.plain(first + line, other)
                };
            }
            let mut todo = FULL >> (LANES - lanes);
            while let Some(group) = m.next_group(spec, &addresses, &mut todo) {
                m.issued_copy(AccessKind::AsyncRead(Agent::Products), &group);
                for lane in LanesOf(group.mask) {
                    let at = group.offsets[lane] as usize / 4;
                    let chunk: &[u32; 4] = m.cluster.shared[at..].first_chunk().expect("it is inside");
                    let (line, other) = places[lane];
                    put(line, other, chunk);
                }
            }
        }
        Ok(())
    }
}

/// A loop of its own, so that it is compiled for the instructions that the host has.
#[inline(always)]
fn decoded<T: Copy + Default>(read: &[u32], decode: impl Fn(u32) -> T) -> Vec<T> {
    let mut out = vec![T::default(); read.len()];
    for (to, &bits) in out.iter_mut().zip(read) {
        *to = decode(bits);
    }
    out
}

/// The elements of a chunk: so many bits of each are its own.
#[inline(always)]
fn elements(chunk: &[u32; 4], bits: u32) -> [u32; 16] {
    match bits {
        8 => std::array::from_fn(|at| chunk[at / 4] >> (8 * (at % 4))),
        16 => std::array::from_fn(|at| chunk[at / 2 % 4] >> (16 * (at % 2))),
        _ => std::array::from_fn(|at| chunk[at % 4]),
    }
}

/// Part of a factor.
#[derive(Clone, Copy)]
struct Stripe {
    /// The first row of `a`, or column of `b`.
    first: usize,
    count: usize,
    /// Elements along k.
    depth: usize,
    transposed: bool,
}

/// The place of a column among those of its eight, in the order of the lanes that hold them: even ones before odd ones.
fn even_first(column: usize) -> usize {
    column / COLUMNS * COLUMNS + column % COLUMNS / 2 + 4 * (column % 2)
}
