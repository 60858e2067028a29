//! `wmma`: loads and stores of fragments, and their product.
//!
//! The ISA does not specify which lane holds which element; here the layout is that of `mma`, tile by tile
//! ([`Spread`]), which hardware also uses for most of them.

use super::matrix::{Form, packed};
use crate::decode::{Decoder, Rows};
use crate::machine::{FULL, Inst, LANES, Machine, NONE, Row64, Step, lanewise};
use crate::memory::{Address, Element, MemoryOp, Order};
use crate::simd::{LaneOp, lanes};
use crate::tensor::Spread;
use warpwright_ptx::ir::{self, *};
use warpwright_ptx::op::family::Wmma as Op;
use warpwright_ptx::op::matrix::MmaShape;
use warpwright_ptx::op::wmma::{WmmaMatrix, WmmaMma};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    use WmmaMatrix::*;
    macro_rules! tile {
        ($op:ident, $matrix:ident, $transfer:ident) => {{
            let tile = Tile { matrix: $matrix, shape: $op.shape, ty: $op.ty, layout: $op.layout };
            tile.$transfer(d, &$op.p, $op.space, $op.stride.as_ref(), &$op.r);
        }};
    }
    match op {
        Op::WmmaLoadA(op) => tile!(op, A, load),
        Op::WmmaLoadB(op) => tile!(op, B, load),
        Op::WmmaLoadC(op) => tile!(op, Accumulator, load),
        Op::WmmaStoreD(op) => tile!(op, Accumulator, store),
        Op::WmmaMma(op) => product(op, d),
    }
    true
}

fn product(op: &WmmaMma, d: &mut Decoder<'_, '_>) {
    let form = Form {
        shape: op.shape,
        types: [op.types.d, op.types.a(), op.types.b(), op.types.c],
        satfinite: op.satfinite,
        bit_op: op.bit_op,
        scales: None,
        rounding: op.rounding,
        d: &op.d,
        a: &op.a,
        b: &op.b,
        c: &op.c,
    };
    form.emit(d, None, None);
}

/// A matrix in memory.
struct Tile {
    matrix: WmmaMatrix,
    shape: MmaShape,
    ty: Type,
    layout: Layout,
}

/// One access of all lanes: neighbours of the matrix that are neighbours in a register and in memory.
struct Piece {
    /// Which memory operation: its address is [`TileAccess::address_row`].
    memory: usize,
    /// For each lane, how many strides from the beginning, and how many elements from there.
    places: [(u16, u16); LANES],
    /// Which register, and its lowest bit.
    register: usize,
    shift: u32,
}

/// A decoded load or store.
pub(crate) struct TileAccess {
    address: Address,
    /// The row with the stride, in elements.
    stride: u32,
    /// Bits of an element, and of what places count within a stride: bits go by words.
    bits: (u32, u32),
    /// The row of 64 bits from which accesses take their addresses.
    address_row: u32,
    /// The row that narrow pieces go through.
    piece_row: u32,
    pieces: Box<[Piece]>,
    registers: Box<[Option<u32>]>,
    /// A piece is a whole register.
    whole: bool,
}

impl Tile {
    /// Where its elements are held, each once, and how many of them a register holds.
    fn spread(&self, registers: usize) -> (Spread, usize) {
        let (m, n, k) = (self.shape.m() as usize, self.shape.n() as usize, self.shape.k() as usize);
        // Bits are loaded in words.
        let word = if self.ty == Type::B1 { 32 } else { 1 };
        let packed = packed(self.ty);
        let unique = |elements: usize| registers.min(elements / (LANES * packed)) * packed;
        match self.matrix {
            WmmaMatrix::A => (Spread::left(m, k / word, packed, unique(m * k / word)), packed),
            WmmaMatrix::B => (Spread::right(k / word, n, packed, unique(k / word * n)), packed),
            WmmaMatrix::Accumulator => (Spread::accumulator(m, n), packed),
        }
    }

    /// The accesses that load or store it.
    fn access(
        &self,
        d: &mut Decoder<'_, '_>,
        p: &ir::Address,
        space: Option<Space>,
        stride: Option<&Src>,
        registers: Box<[Option<u32>]>,
    ) -> TileAccess {
        let (spread, packed) = self.spread(registers.len());
        let bits = if self.ty == Type::B1 { 32 } else { self.ty.bits() };
        let by_rows = self.layout == Layout::Row;
        let length = if by_rows { spread.columns() } else { spread.rows() };
        // The stride of bits counts them; the rest of this counts words.
        let scale = bits / self.ty.bits();
        let stride = match stride {
            Some(stride) => d.src32(stride, Type::U32),
            None => d.constant32(length as u32 * scale),
        };
        let (address_row, piece_row) = (d.temporary64(), d.temporary32());
        let wide = self.ty == Type::F64;
        let place = |lane: usize, index: usize| {
            let (row, column) = spread.position(lane, index);
            let (major, minor) = if by_rows { (row, column) } else { (column, row) };
            (major as u16, minor as u16)
        };
        // Whether the elements of a register are neighbours in memory.
        let whole = packed == 1 || place(0, 1) == (place(0, 0).0, place(0, 0).1 + 1);
        let (step, bytes) = if whole { (packed, if wide { 8 } else { 4 }) } else { (1, bits / 8) };
        let kind = super::memory::space(d, space, p);
        let mut pieces = Vec::new();
        for first in (0..spread.held()).step_by(step) {
            let register = first / packed;
            let shift = bits * (first % packed) as u32;
            let element = match registers[register] {
                None => Element::Sink,
                Some(row) if wide => Element::Wide(row),
                Some(row) if whole => Element::Narrow(row),
                Some(_) => Element::Narrow(piece_row),
            };
            d.code.memory.push(MemoryOp {
                address: Address { row: address_row, wide: true, frame: false, offset: 0 },
                space: kind,
                bytes,
                elements: [element].into(),
                signed: false,
                order: Order::WEAK,
            });
            let memory = d.code.memory.len() - 1;
            let places = std::array::from_fn(|lane| place(lane, first));
            pieces.push(Piece { memory, places, register, shift: if whole { 0 } else { shift } });
        }
        let pieces = pieces.into();
        let bits = (self.ty.bits(), bits);
        TileAccess { address: d.address(p), stride, bits, address_row, piece_row, pieces, registers, whole }
    }

    fn load(
        &self,
        d: &mut Decoder<'_, '_>,
        p: &ir::Address,
        space: Option<Space>,
        stride: Option<&Src>,
        r: &Dsts,
    ) {
        let registers = r.as_slice().map(|reg| reg.map(|reg| d.row(reg))).collect();
        let access = self.access(d, p, space, stride, registers);
        let x = push(d, access);
        d.emit(lanes::<LoadTile>(), Rows { x, ..Rows::default() });
    }

    fn store(
        &self,
        d: &mut Decoder<'_, '_>,
        p: &ir::Address,
        space: Option<Space>,
        stride: Option<&Src>,
        r: &Srcs,
    ) {
        let rows = r.as_slice().iter();
        let registers = rows
            .map(|src| Some(if self.ty == Type::F64 { d.src64(src, self.ty) } else { d.src32(src, self.ty) }))
            .collect();
        let access = self.access(d, p, space, stride, registers);
        let x = push(d, access);
        d.emit(lanes::<StoreTile>(), Rows { x, ..Rows::default() });
    }
}

fn push(d: &mut Decoder<'_, '_>, access: TileAccess) -> u32 {
    d.code.matrix.tiles.push(access);
    d.code.matrix.tiles.len() as u32 - 1
}

impl TileAccess {
    /// The addresses of a piece.
    #[inline(always)]
    fn place(&self, piece: &Piece, base: &Row64, strides: &[u32; LANES], m: &mut Machine<'_>) {
        let mut addresses = *base;
        let (bits, unit) = (u64::from(self.bits.0), u64::from(self.bits.1));
        for (lane, address) in addresses.iter_mut().enumerate() {
            let (major, minor) = piece.places[lane];
            let offset = u64::from(major) * u64::from(strides[lane]) * bits + u64::from(minor) * unit;
            *address = address.wrapping_add(offset / 8);
        }
        m.registers.set64(self.address_row, &addresses, FULL);
    }
}

struct LoadTile;

impl LaneOp for LoadTile {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        let access = &launch.code.matrix.tiles[i.x as usize];
        let mask = m.mask;
        let base = m.addresses(&access.address);
        let strides = *m.registers.row32(access.stride);
        let mut loaded = 0;
        for piece in &access.pieces {
            access.place(piece, &base, &strides, m);
            m.load(&launch.code.memory[piece.memory]);
            loaded = piece.register + 1;
            let Some(register) = access.registers[piece.register] else { continue };
            if access.whole {
                continue;
            }
            let mut words = *m.registers.row32(register);
            for (word, part) in words.iter_mut().zip(m.registers.row32(access.piece_row)) {
                let kept = if piece.shift == 0 { 0 } else { *word };
                *word = kept | part << piece.shift;
            }
            m.registers.set32(register, &words, mask);
        }
        // What is held more than once.
        for index in loaded..access.registers.len() {
            if let (Some(to), Some(from)) = (access.registers[index], access.registers[index % loaded]) {
                let words = *m.registers.row32(from);
                m.registers.set32(to, &words, mask);
            }
        }
        Step::Next
    }
}

struct StoreTile;

impl LaneOp for StoreTile {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        let access = &launch.code.matrix.tiles[i.x as usize];
        let base = m.addresses(&access.address);
        let strides = *m.registers.row32(access.stride);
        for piece in &access.pieces {
            if let Some(register) = access.registers[piece.register]
                && !access.whole
            {
                let words = lanewise(m.registers.row32(register), |word| word >> piece.shift);
                m.registers.set32(access.piece_row, &words, FULL);
            }
            access.place(piece, &base, &strides, m);
            m.store(&launch.code.memory[piece.memory]);
        }
        Step::Next
    }
}
