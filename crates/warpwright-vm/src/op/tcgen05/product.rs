//! Products: `tcgen05.mma`, dense and sparse, with block scales, and with `b` stationary.
//!
//! One thread starts a product for its block, or for a pair of blocks. Each of a pair has half of the rows of `a` and
//! of the sums, and half of the columns of `b`, which both use.

use super::datapath::DataPath;
use super::descriptor::{LATER_K, LONG_K, Plan, Said, Scaling, Shape, Types, zero_columns};
use super::memory::to_lanes;
use super::tile;
use crate::check::race::{AccessKind, Agent};
use crate::decode::{Decoder, Rows};
use crate::launch::TrapKind;
use crate::machine::{Inst, LANES, LanesOf, Machine, Step, TENSOR_LANES};
use crate::memory::{AccessSpec, Address, Group, SpaceKind};
use crate::num::half::{f16_to_f32, f32_to_f16};
use crate::op::matrix::{CHUNK, Integer, Layout, scale};
use crate::simd::{LaneOp, lanes};
use crate::tensor::integer::{self, Overflow};
use crate::tensor::{
    Accumulation, Accumulator, FloatElement, FloatProduct, InvalidMetadata, Left, Scales, Size, keep,
};
use warpwright_ptx::ir::{Src, Type};
use warpwright_ptx::op::tcgen05::*;

/// A product as it was decoded.
pub(crate) struct TensorProduct {
    said: Said,
    group: CtaGroup,
    d: Address,
    a: LeftSource,
    /// Rows: the descriptor of `b`; of the instruction; masks of lanes that are not written.
    b: u32,
    descriptor: u32,
    disabled: Box<[u32]>,
    metadata: Option<Address>,
    scales: Option<[Address; 2]>,
    /// The predicate operand.
    adds: u32,
    /// The sums before are divided by this power of two.
    lowered: i32,
    /// The row that describes columns of `b` that are zero.
    zero_columns: Option<u32>,
    /// Rows of `a` stand one lane behind.
    shifted: bool,
}

/// Where the left factor is.
enum LeftSource {
    Tensor(Address),
    /// In shared memory: the row with the descriptor.
    Shared(u32),
}

fn left(d: &mut Decoder<'_, '_>, a: &Factor) -> LeftSource {
    match a {
        Factor::Memory(address) => LeftSource::Tensor(d.address(address)),
        Factor::Descriptor(src) => LeftSource::Shared(d.src64(src, Type::U64)),
    }
}

pub(super) fn product(op: &Tcgen05Mma, d: &mut Decoder<'_, '_>) -> bool {
    use ScaleVector::*;
    let lowered = op.scale_input_d.as_ref().and_then(Src::imm).and_then(|imm| imm.bits()).unwrap_or(0);
    let product = TensorProduct {
        said: Said {
            kind: op.kind,
            sparse: op.sparse,
            stationary: false,
            blocks: 1 + usize::from(op.cta_group == CtaGroup::Two),
            scaled: if matches!(op.scale_vector, Some(X4 | Block16)) { 16 } else { 32 },
            may_have_long_k: !matches!(op.scale_vector, Some(X2 | X4)),
        },
        group: op.cta_group,
        d: d.address(&op.d),
        a: left(d, &op.a),
        b: d.src64(&op.b, Type::U64),
        descriptor: d.src32(&op.idesc, Type::U32),
        disabled: op
            .disable_lanes
            .iter()
            .flat_map(|lanes| lanes.as_slice())
            .map(|src| d.src32(src, Type::B32))
            .collect(),
        metadata: op.metadata.as_ref().map(|address| d.address(address)),
        scales: op.scale_a.as_ref().zip(op.scale_b.as_ref()).map(|(a, b)| [d.address(a), d.address(b)]),
        adds: d.predicate(&op.enable_input_d),
        lowered: lowered as i32,
        zero_columns: None,
        shifted: op.ashift,
    };
    product.emit(d)
}

pub(super) fn stationary(op: &Tcgen05MmaWs, d: &mut Decoder<'_, '_>) -> bool {
    let product = TensorProduct {
        said: Said {
            kind: op.kind,
            sparse: op.sparse,
            stationary: true,
            blocks: 1,
            scaled: 32,
            may_have_long_k: false,
        },
        group: op.cta_group,
        d: d.address(&op.d),
        a: left(d, &op.a),
        b: d.src64(&op.b, Type::U64),
        descriptor: d.src32(&op.idesc, Type::U32),
        disabled: Box::default(),
        metadata: op.metadata.as_ref().map(|address| d.address(address)),
        scales: None,
        adds: d.predicate(&op.enable_input_d),
        lowered: 0,
        zero_columns: op.zero_columns.as_ref().map(|src| d.src64(src, Type::U64)),
        shifted: false,
    };
    product.emit(d)
}

struct Multiply;

impl LaneOp for Multiply {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let launch = m.launch;
        let product = &launch.code.matrix.tensor[i.x as usize];
        LanesOf(m.mask).try_for_each(|lane| product.run(lane, m)).err().unwrap_or(Step::Next)
    }
}

/// One thread's product, with what its operands say.
struct Started<'a> {
    op: &'a TensorProduct,
    plan: Plan,
    path: DataPath,
    lane: usize,
    ranks: Vec<u32>,
    /// Where the sums begin: lane and column.
    first: usize,
    column: u32,
    adds: bool,
}

impl TensorProduct {
    fn emit(self, d: &mut Decoder<'_, '_>) -> bool {
        let x = d.code.matrix.tensor.len() as u32;
        d.code.async_proxy = true;
        d.code.matrix.tensor.push(self);
        d.emit(lanes::<Multiply>(), Rows { x, ..Rows::default() });
        true
    }

    #[inline(always)]
    fn run(&self, lane: usize, m: &mut Machine<'_>) -> Result<(), Step> {
        let ranks = m.ranks_of(self.group)?;
        let descriptor = m.registers.row32(self.descriptor)[lane];
        let plan = Plan::new(descriptor, self.said, m.launch.options.arch).map_err(|why| {
            let kind = if why == LATER_K { TrapKind::Unsupported } else { TrapKind::BadOperand };
            m.trap(kind, format!("the instruction descriptor {descriptor:#010x}: {why}"))
        })?;
        let Shape { n, .. } = plan.shape;
        let path = DataPath::new(&plan.shape, self.said.blocks, self.said.stationary);
        let (first, column) = at(m, &self.d, lane);
        let adds = m.registers.predicate(self.adds) >> lane & 1 != 0;
        let started = Started { op: self, plan, path, lane, ranks, first, column, adds };
        if !path.begins_at(first) {
            let message = format!(
                "the sums begin at lane {first}: a product of {} rows begins at lane 0",
                plan.shape.m
            );
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        if self.shifted && path.rows != TENSOR_LANES {
            let message = format!("`.ashift` with {} rows: it is for 128 rows of a block", plan.shape.m);
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        m.worker.progress = true;
        let columns = column..column + (n / path.parts) as u32;
        for &rank in &started.ranks {
            if !m.has_columns(lane, rank, columns.clone(), true) {
                return Ok(());
            }
            m.tensor(rank).changes += 1;
            m.uses_columns(lane, rank, columns.clone(), started.lanes(), (false, true));
        }
        match plan.types {
            Types::Float { a, b, d } => started.float(a, b, d, m),
            Types::Integer { a, b, overflow } => started.integer(a, b, overflow, m),
        }
    }
}

/// The lane and the column of an address operand.
fn at(m: &Machine<'_>, address: &Address, lane: usize) -> (usize, u32) {
    to_lanes(m.addresses(address)[lane] as u32)
}

impl Started<'_> {
    #[inline(always)]
    fn float(
        &self,
        a: FloatElement,
        b: FloatElement,
        sums: Accumulator,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let Shape { n, k, .. } = self.plan.shape;
        let core = m.launch.options.tensor_core;
        let rule = core.tensor_memory_accumulation(a).and(core.tensor_memory_accumulation(b));
        let lower = f32::from_bits((127 - self.op.lowered) as u32 * (1 << 23));
        // All of k is one block of additions.
        let tiled = rule.filter(|rule| {
            let is_plain = self.plan.scaling.is_none() && self.op.metadata.is_none();
            rule.block == k && sums == Accumulator::F32 && a == b && is_plain
        });
        match (tiled, a) {
            (Some(rule), FloatElement::F16) => return self.halves::<false>(rule, lower, m),
            (Some(rule), FloatElement::BF16) => return self.halves::<true>(rule, lower, m),
            _ => {}
        }
        let [negated_a, negated_b] = self.plan.negated;
        let signed = |value: f32, negated: bool| if negated { -value } else { value };
        let right = self.right(m, |bits| signed(b.decode(bits), negated_b))?;
        let product = FloatProduct { core, a, b, sums };
        let value = |word: u32| match sums {
            Accumulator::F32 => f32::from_bits(word),
            Accumulator::F16 => f16_to_f32(word as u16),
        };
        // Elements of four bits stand in the middle of bytes.
        let is_middle = a == FloatElement::E2M1 && self.in_chunk(0).1 == 16;
        for rank in self.ranks.clone() {
            for part in 0..self.path.parts {
                let left = self.left(m, rank, part, |bits, in_tensor| {
                    let bits = if in_tensor && is_middle { bits >> 2 } else { bits };
                    signed(a.decode(bits), negated_a)
                })?;
                let columns = self.columns(m, rank, part, &left)?;
                let left = Left { values: &left, columns: columns.as_deref() };
                let right = part_of(&right, n, self.path.parts, part);
                let mut added = self.added(m, rank, part, |word| value(word) * lower);
                let size = Size { m: self.path.rows, n: n / self.path.parts, k };
                let result = match (self.plan.scaling, tiled) {
                    (Some(scaling), _) => {
                        self.scaled(m, (rank, part), scaling, product, size, left, &right, &added)?
                    }
                    (None, Some(rule)) => {
                        tile::words(rule, size, left.values, &right, &mut added);
                        added
                    }
                    (None, None) => {
                        let mut result = vec![0.0; added.len()];
                        product.product_by(rule, size, left, &right, &added, &mut result);
                        result
                    }
                };
                self.set(m, rank, part, &result, |value| match sums {
                    Accumulator::F32 => value.to_bits(),
                    Accumulator::F16 => f32_to_f16(value).into(),
                });
            }
        }
        Ok(())
    }

    /// The product of factors of 16 bits where all of k is one block of additions.
    #[inline(always)]
    fn halves<const BF16: bool>(
        &self,
        rule: Accumulation,
        lower: f32,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let Shape { n, k, .. } = self.plan.shape;
        let [sign_a, sign_b] = self.plan.negated.map(|negated| u16::from(negated) << 15);
        let right = self.right(m, |bits| bits as u16 ^ sign_b)?;
        for rank in self.ranks.clone() {
            for part in 0..self.path.parts {
                let left = self.left(m, rank, part, |bits, _| bits as u16 ^ sign_a)?;
                let right = part_of(&right, n, self.path.parts, part);
                let mut sums = self.added(m, rank, part, |word| f32::from_bits(word) * lower);
                let size = Size { m: self.path.rows, n: n / self.path.parts, k };
                tile::halves::<BF16>(rule, size, &left, &right, &mut sums);
                self.set(m, rank, part, &sums, f32::to_bits);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn integer(&self, a: Integer, b: Integer, overflow: Overflow, m: &mut Machine<'_>) -> Result<(), Step> {
        let Shape { n, k, .. } = self.plan.shape;
        let extend =
            |ty: Integer, bits: u32| if ty.signed { (bits as i8).into() } else { i32::from(bits as u8) };
        let right = self.right(m, |bits| extend(b, bits))?;
        for rank in self.ranks.clone() {
            for part in 0..self.path.parts {
                let left = self.left(m, rank, part, |bits, _| extend(a, bits))?;
                let columns = self.columns(m, rank, part, &left)?;
                let left = Left { values: &left, columns: columns.as_deref() };
                let right = part_of(&right, n, self.path.parts, part);
                let added = self.added(m, rank, part, |word| word as i32);
                let mut result = vec![0; added.len()];
                let size = Size { m: self.path.rows, n: n / self.path.parts, k };
                integer::product(overflow, size, left, &right, &added, &mut result);
                self.set(m, rank, part, &result, |value| value as u32);
            }
        }
        Ok(())
    }

    /// Bits of an element in tensor memory.
    fn element_bits(&self) -> u32 {
        match self.op.said.kind {
            ProductKind::Tf32 => 32,
            ProductKind::F16 => 16,
            ProductKind::MxF4 | ProductKind::MxF4NvF4 => 4,
            _ => 8,
        }
    }

    /// Bits of an element in shared memory, and elements of a chunk there.
    fn in_chunk(&self, ty: usize) -> (u32, usize) {
        let element = match self.plan.types {
            Types::Float { a, b, .. } => Some([a, b][ty]),
            Types::Integer { .. } => None,
        };
        match (self.op.said.kind, element) {
            (ProductKind::F16, _) => (16, 8),
            (ProductKind::Tf32, _) => (32, 4),
            (ProductKind::MxF4 | ProductKind::MxF4NvF4, _) => (4, 32),
            // Sixteen elements in sixteen bytes, whatever their size.
            (_, Some(FloatElement::E2M1)) => (4, 16),
            (_, Some(FloatElement::E2M3 | FloatElement::E3M2)) => (6, 16),
            _ => (8, 16),
        }
    }

    /// `b`, k × n, row-major.
    #[inline(always)]
    fn right<T: Copy + Default>(
        &self,
        m: &mut Machine<'_>,
        decode: impl Fn(u32) -> T,
    ) -> Result<Vec<T>, Step> {
        let Shape { n, k, .. } = self.plan.shape;
        let mut out = vec![T::default(); k * n];
        let (zero, shift) = match self.op.zero_columns {
            Some(row) => zero_columns(m.registers.row64(row)[self.lane], self.plan.shape),
            None => (vec![false; n], 0),
        };
        let descriptor = m.registers.row64(self.op.b)[self.lane];
        let own = n / self.ranks.len();
        for (number, &rank) in self.ranks.iter().enumerate() {
            let layout = m.layout_of("`b`", descriptor, rank, k == LONG_K)?;
            self.read(m, layout, 1, (own + shift, k), |line, k, bits| {
                if (shift..own + shift).contains(&line) {
                    let column = own * number + line - shift;
                    out[k * n + column] = if zero[column] { T::default() } else { decode(bits) };
                }
            })?;
        }
        Ok(out)
    }

    /// The rows of `a` of a block, row-major, as a part of the lanes has them. `decode` is told whether they are in tensor
    /// memory.
    #[inline(always)]
    fn left<T: Copy + Default>(
        &self,
        m: &mut Machine<'_>,
        rank: u32,
        part: usize,
        decode: impl Fn(u32, bool) -> T,
    ) -> Result<Vec<T>, Step> {
        let Shape { k, sparse, .. } = self.plan.shape;
        let (rows, kept) = (self.path.rows, if sparse { k / 2 } else { k });
        let mut out = vec![T::default(); rows * kept];
        let address = match &self.op.a {
            LeftSource::Tensor(address) => address,
            LeftSource::Shared(row) => {
                let descriptor = m.registers.row64(*row)[self.lane];
                let layout = m.layout_of("`a`", descriptor, rank, k == LONG_K)?;
                self.read(m, layout, 0, (rows, kept), |line, k, bits| {
                    if line < rows {
                        out[line * kept + k] = decode(bits, false);
                    }
                })?;
                return Ok(out);
            }
        };
        let (first, column) = at(m, address, self.lane);
        self.aligned(m, "`a`", first)?;
        let bits = self.element_bits();
        let each = 32 / bits as usize;
        if !self.reads(m, rank, column, (kept / each) as u32) {
            return Ok(out);
        }
        for row in 0..rows {
            let behind = usize::from(self.op.shifted && row + 1 < rows);
            let lane = first + self.path.lane(row + behind, part);
            for (k, to) in out[row * kept..][..kept].iter_mut().enumerate() {
                let word = self.word(m, rank, lane, column + (k / each) as u32);
                *to = decode(word >> (bits * (k % each) as u32), true);
            }
        }
        Ok(out)
    }

    /// The lanes that it uses.
    fn lanes(&self) -> impl Iterator<Item = usize> {
        let (path, first) = (self.path, self.first);
        (0..path.parts).flat_map(move |part| (0..path.rows).map(move |row| first + path.lane(row, part)))
    }

    /// Whether columns that are read are allocated.
    fn reads(&self, m: &mut Machine<'_>, rank: u32, column: u32, count: u32) -> bool {
        let columns = column..column + count;
        let has = m.has_columns(self.lane, rank, columns.clone(), false);
        if has {
            m.uses_columns(self.lane, rank, columns, self.lanes(), (false, false));
        }
        has
    }

    /// Other matrices in tensor memory begin at the same lane as the sums.
    fn aligned(&self, m: &mut Machine<'_>, of: &str, first: usize) -> Result<(), Step> {
        if first == self.first {
            return Ok(());
        }
        let message =
            format!("{of} begins at lane {first} of tensor memory, and the sums at lane {}", self.first);
        Err(m.trap(TrapKind::BadOperand, message))
    }

    /// A word of tensor memory. One that nobody wrote is reported.
    #[inline(always)]
    fn word(&self, m: &mut Machine<'_>, rank: u32, lane: usize, column: u32) -> u32 {
        let tensor = m.tensor(rank);
        let (word, is_written) = (tensor.word(lane, column), tensor.is_written(lane, column));
        if !is_written && m.launch.options.checks.init {
            m.found_unwritten(self.lane, lane, column);
        }
        word
    }

    /// Reads lines (rows of `a`, or columns of `b`) of a factor, each of `depth` elements along k: `put` gets line,
    /// place along k, and the element's bits at the low end.
    #[inline(always)]
    fn read(
        &self,
        m: &mut Machine<'_>,
        layout: Layout,
        factor: usize,
        (lines, depth): (usize, usize),
        mut put: impl FnMut(usize, usize, u32),
    ) -> Result<(), Step> {
        let (bits, each) = self.in_chunk(factor);
        let transposed = self.plan.transposed[factor];
        let is_narrow = matches!(self.op.said.kind, ProductKind::MxF4 | ProductKind::MxF4NvF4);
        let message = if transposed != layout.swizzles_pairs() && (layout.swizzles_pairs() || bits == 32) {
            "a factor with 128-byte swizzling in pairs of chunks is a transposed one of 32-bit elements"
        } else if layout.swizzles_pairs() && bits != 32 {
            "128-byte swizzling in pairs of chunks is for elements of 32 bits"
        } else if transposed && is_narrow {
            "a transposed factor of two elements in a byte"
        } else if !transposed && layout.row_chunks != 1 && depth / each > layout.row_chunks {
            "a factor of more than 32 bytes along k with 32-byte swizzling, which has no such layout"
        } else if !transposed && depth == LONG_K && !layout.has_chunks(depth / each) {
            "96 elements along k that leave the swizzled width: they go on at an absolute address (bit 52 of the \
             descriptor), with 128-byte swizzling"
        } else {
            ""
        };
        if !message.is_empty() {
            return Err(m.trap(TrapKind::BadOperand, message.to_owned()));
        }
        let (outer, inner) = if transposed { (depth, lines.div_ceil(each)) } else { (lines, depth / each) };
        for line in 0..outer {
            for chunk in 0..inner {
                let address =
                    if transposed { layout.transposed(chunk, line) } else { layout.plain(line, chunk) };
                let Some(words) = m.read_chunk(self.lane, address, u64::from(bits) * each as u64 / 8) else {
                    continue;
                };
                let all = words.iter().rev().fold(0, |all: u128, &word| all << 32 | u128::from(word));
                for at in 0..each {
                    let value = (all >> (bits as usize * at)) as u32;
                    match transposed {
                        true => put(each * chunk + at, line, value),
                        false => put(line, each * chunk + at, value),
                    }
                }
            }
        }
        Ok(())
    }

    /// Where these elements, which are kept of sparse rows, stand.
    fn columns<T: Default + PartialEq>(
        &self,
        m: &mut Machine<'_>,
        rank: u32,
        part: usize,
        values: &[T],
    ) -> Result<Option<Vec<u8>>, Step> {
        let Some(address) = &self.op.metadata else { return Ok(None) };
        let (first, column) = at(m, address, self.lane);
        self.aligned(m, "the metadata", first)?;
        let element = self.element_bits();
        let width = match element {
            32 => 2,
            4 => 8,
            _ => 4,
        };
        let chunks = self.plan.shape.k / width;
        let column = column + self.plan.selector;
        if !self.reads(m, rank, column, chunks.div_ceil(8) as u32) {
            return Ok(Some(vec![0; self.path.rows * self.plan.shape.k / 2]));
        }
        let mut columns = Vec::with_capacity(self.path.rows * self.plan.shape.k / 2);
        for row in 0..self.path.rows {
            for chunk in 0..chunks {
                // Rows r and r + 8 share the words of two lanes, if elements are wide.
                let (lane, column, bit) = if element >= 16 {
                    let lane = self.path.lane(row / 16 * 16, part) + row % 8 + chunk / 4 * 8;
                    (lane, column, 16 * (row / 8 % 2) + 4 * (chunk % 4))
                } else {
                    (self.path.lane(row, part), column + (chunk / 8) as u32, 4 * (chunk % 8))
                };
                let bits = (self.word(m, rank, first + lane, column) >> bit & 15) as u8;
                if !keep(element, bits, width * chunk, false, values, &mut columns) {
                    let lane = first + lane;
                    let invalid = InvalidMetadata { lane, bits, row, column: width * chunk };
                    return Err(m.trap(TrapKind::BadOperand, invalid.to_string()));
                }
            }
        }
        Ok(Some(columns))
    }

    /// The sums before, or zeros.
    #[inline(always)]
    fn added<T: Copy + Default>(
        &self,
        m: &mut Machine<'_>,
        rank: u32,
        part: usize,
        value: impl Fn(u32) -> T,
    ) -> Vec<T> {
        let (rows, n) = (self.path.rows, self.plan.shape.n / self.path.parts);
        let mut out = vec![T::default(); rows * n];
        if self.adds {
            for (at, to) in out.iter_mut().enumerate() {
                let (row, column) = (at / n, at % n);
                let lane = self.first + self.path.lane(row, part);
                *to = value(self.word(m, rank, lane, self.column + column as u32));
            }
        }
        out
    }

    /// Writes the sums.
    #[inline(always)]
    fn set<T: Copy>(&self, m: &mut Machine<'_>, rank: u32, part: usize, sums: &[T], bits: impl Fn(T) -> u32) {
        let n = self.plan.shape.n / self.path.parts;
        let masks: Vec<u32> = self.op.disabled.iter().map(|&row| m.registers.row32(row)[self.lane]).collect();
        // Of a pair, the odd block has the second half.
        let masks = if masks.len() > 4 { &masks[4 * (rank as usize % 2)..] } else { &masks };
        let tensor = m.tensor(rank);
        for (row, sums) in sums.chunks_exact(n).enumerate() {
            let lane = self.first + self.path.lane(row, part);
            if masks.get(lane / 32).is_some_and(|mask| mask >> (lane % 32) & 1 != 0) {
                continue;
            }
            for (column, &sum) in sums.iter().enumerate() {
                tensor.set(lane, self.column + column as u32, bits(sum));
            }
        }
    }

    /// The product with scales of blocks along k. Those of `b` stand in each 32 lanes for their rows. Where they are more
    /// than a word has, they go on in the columns behind those of 128 rows or columns.
    #[expect(clippy::too_many_arguments, reason = "what makes a product")]
    fn scaled(
        &self,
        m: &mut Machine<'_>,
        (rank, part): (u32, usize),
        scaling: Scaling,
        product: FloatProduct,
        size: Size,
        left: Left<'_, f32>,
        right: &[f32],
        added: &[f32],
    ) -> Result<Vec<f32>, Step> {
        let Scaling { blocks, ids, fractions } = scaling;
        let Some(addresses) = &self.op.scales else { return Ok(added.to_vec()) };
        let mut result = vec![0.0; added.len()];
        // The highest two bits are not part of the lane: CUTLASS has the byte there at which the scales begin.
        let place = |address| to_lanes(m.addresses(address)[self.lane] as u32 & u32::MAX >> 2);
        let places = addresses.each_ref().map(place);
        let apart = [4, 4 * size.n.div_ceil(128) as u32];
        let words = ids.map(|id| (id + blocks).div_ceil(4) as u32);
        for (of, lines) in [size.m, size.n].into_iter().enumerate() {
            let (first, column) = places[of];
            self.aligned(m, "a matrix of scales", first)?;
            for word in 0..words[of] {
                if !self.reads(m, rank, column + apart[of] * word, lines.div_ceil(32) as u32) {
                    return Ok(result);
                }
            }
        }
        let [(_, a), (_, b)] = places;
        let kept = left.values.len() / size.m;
        let step = size.m.min(32);
        for rows in (0..size.m).step_by(step) {
            let lane = self.path.lane(rows, part);
            let mut values = |lane: usize, column: u32, of: usize, out: &mut Vec<f64>| {
                let word =
                    |word| u64::from(self.word(m, rank, lane, column + apart[of] * word)) << (32 * word);
                let all = (0..words[of]).map(word).fold(0, |all, word| all | word) >> (8 * ids[of]);
                out.extend((0..blocks).map(|block| scale((all >> (8 * block)) as u32 & 0xff, fractions)));
            };
            let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
            for row in 0..step {
                values(lane + row, a + (rows / 32) as u32, 0, &mut of_a);
            }
            for line in 0..size.n {
                values(lane / 32 * 32 + line % 32, b + (line / 32) as u32, 1, &mut of_b);
            }
            let range = rows * size.n..(rows + step) * size.n;
            let left = Left {
                values: &left.values[rows * kept..][..step * kept],
                columns: left.columns.map(|columns| &columns[rows * kept..][..step * kept]),
            };
            let scales = Scales { blocks, a: &of_a, b: &of_b };
            let size = Size { m: step, ..size };
            product.scaled(scales, size, left, right, &added[range.clone()], &mut result[range]);
        }
        Ok(result)
    }
}

impl<'a> Machine<'a> {
    /// 16 bytes of the cluster's shared memory that the tensor core reads, of which the first so many matter: those behind
    /// are padding, which nobody need have written. None if they may not be accessed, which is reported.
    #[inline(always)]
    pub(super) fn chunk_at(&mut self, lane: usize, address: u64, matter: u64) -> Option<Group<'a>> {
        let bytes = CHUNK as u32;
        let spec = AccessSpec { space: SpaceKind::SharedCluster, bytes, align: bytes, write: false };
        let group = self.next_group(spec, &[address; LANES], &mut (1 << lane))?;
        Some(Group { bytes: matter as u32, ..group })
    }

    /// Reads such bytes for a product.
    #[inline(always)]
    fn read_chunk(&mut self, lane: usize, address: u64, matter: u64) -> Option<[u32; 4]> {
        let group = self.chunk_at(lane, address, matter)?;
        self.issued_copy(AccessKind::AsyncRead(Agent::Tensor), &group);
        self.cluster.shared[group.offsets[lane] as usize / 4..].first_chunk().copied()
    }
}

/// The columns of a part.
fn part_of<T: Copy>(right: &[T], n: usize, parts: usize, part: usize) -> Vec<T> {
    let width = n / parts;
    right.chunks_exact(n).flat_map(|row| &row[width * part..][..width]).copied().collect()
}
