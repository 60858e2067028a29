//! `ldmatrix`, `stmatrix` and `movmatrix`: rows of small matrices, addressed by some lanes, with elements spread over
//! all lanes.
//!
//! A row is 16 bytes, loaded or stored by the lane that provides its address; a table maps its parts to the other
//! lanes.

use crate::decode::{Decoder, Rows};
use crate::machine::{FULL, Inst, LANES, Machine, NONE, Row32, Step};
use crate::memory::{Element, MemoryOp, Order};
use crate::native::{self, Operation};
use crate::simd::{LaneOp, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::matrix::{Ldmatrix, Movmatrix, PackedElement, Stmatrix, TileShape};

/// Words of a row.
const ROW: usize = 4;

/// Parts of words that move from lane to lane.
struct Shuffle {
    /// Bits of a part: 8, 16 or 32.
    bits: u32,
    /// For each resulting word, row by row of 32 lanes, the numbers of its parts among all parts of the source words.
    from: Box<[u16]>,
}

impl Shuffle {
    /// `part(row, lane, number)` is where a part of a resulting word comes from: a word, and which part of
    /// it, of those of `bits` bits.
    fn new(bits: u32, rows: usize, part: impl Fn(usize, usize, usize) -> (usize, usize)) -> Shuffle {
        let parts = (32 / bits) as usize;
        let mut from = Vec::with_capacity(rows * LANES * parts);
        for row in 0..rows {
            for lane in 0..LANES {
                for number in 0..parts {
                    let (word, part) = part(row, lane, number);
                    from.push((word * parts + part) as u16);
                }
            }
        }
        Shuffle { bits, from: from.into() }
    }

    #[inline(always)]
    fn row(&self, row: usize, words: &[u32; ROW * LANES]) -> Row32 {
        match self.bits {
            32 => self.gather::<1>(row, words),
            16 => self.gather::<2>(row, words),
            _ => self.gather::<4>(row, words),
        }
    }

    #[inline(always)]
    fn gather<const PARTS: usize>(&self, row: usize, words: &[u32; ROW * LANES]) -> Row32 {
        let bits = 32 / PARTS as u32;
        let from = &self.from[row * LANES * PARTS..][..LANES * PARTS];
        let mut out = [0; LANES];
        for (out, from) in out.iter_mut().zip(from.chunks_exact(PARTS)) {
            for (number, &part) in from.iter().enumerate() {
                let word = words[usize::from(part) / PARTS % (ROW * LANES)];
                let value = word >> (bits * (u32::from(part) % PARTS as u32)) << (32 - bits) >> (32 - bits);
                *out |= value << (bits * number as u32);
            }
        }
        out
    }
}

/// The eight rows of a matrix, as the words that eight lanes have loaded, word by word.
type Matrix<'a> = [&'a [u32; 8]; ROW];

/// A matrix of 8 rows of four words: lane 4g + t gets word t of row g.
#[inline(always)]
fn spread(matrix: Matrix<'_>) -> Row32 {
    let mut out = [0; LANES];
    for g in 0..8 {
        for t in 0..ROW {
            out[ROW * g + t] = matrix[t][g];
        }
    }
    out
}

/// A matrix of 8 rows of eight halves: lane 4g + t gets column g of rows 2t and 2t + 1.
#[inline(always)]
fn spread_transposed(matrix: Matrix<'_>) -> Row32 {
    let mut out = [0; LANES];
    for g in 0..8 {
        for t in 0..ROW {
            let half = |row: usize| matrix[g / 2][row] >> (16 * (g % 2)) & 0xffff;
            out[ROW * g + t] = half(2 * t) | half(2 * t + 1) << 16;
        }
    }
    out
}

/// A decoded `ldmatrix` or `stmatrix`.
pub(crate) struct Transfer {
    /// Which memory operation moves the rows: its elements are [`Transfer::row_words`].
    memory: usize,
    /// The lanes that give addresses.
    givers: u32,
    /// Temporary rows with the words of what a lane loads or stores.
    row_words: Box<[u32]>,
    /// What elements in memory become.
    source: Option<PackedElement>,
    shuffle: Shuffle,
    /// The registers of the instruction.
    registers: Box<[Option<u32>]>,
}

fn first_lanes(count: u32) -> u32 {
    u32::MAX >> (32 - count)
}

/// Emits nothing yet: makes the memory operation for rows of that many words.
fn row_access(
    d: &mut Decoder<'_, '_>,
    address: &Address,
    space: Option<Space>,
    words: usize,
) -> (usize, Box<[u32]>) {
    let rows: Box<[u32]> = (0..words).map(|_| d.temporary32()).collect();
    let op = MemoryOp {
        address: d.address(address),
        space: super::super::memory::space(d, space, address),
        bytes: 4,
        elements: rows.iter().map(|&row| Element::Narrow(row)).collect(),
        signed: false,
        order: Order::WEAK,
    };
    d.code.memory.push(op);
    (d.code.memory.len() - 1, rows)
}

impl Transfer {
    /// The rows of the registers of the instruction.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn registers(&self) -> &[Option<u32>] {
        &self.registers
    }
}

fn push(d: &mut Decoder<'_, '_>, transfer: Transfer) -> Rows {
    let b = transfer.memory as u32;
    d.code.matrix.transfers.push(transfer);
    Rows { x: d.code.matrix.transfers.len() as u32 - 1, b, ..Rows::default() }
}

pub(super) fn ldmatrix(op: &Ldmatrix, d: &mut Decoder<'_, '_>) {
    let matrices = op.num.count();
    let registers: Box<[Option<u32>]> = op.r.as_slice().map(|reg| reg.map(|reg| d.row(reg))).collect();
    // Word `w` of the row that `lane` loads is word lane · 4 + w. What is loaded as it is has a way of its own.
    let handlers = match (op.shape, op.trans, op.source) {
        (TileShape::M8N8, false, None) if matrices == 4 => lanes::<LoadMatrices<PLAIN, true>>(),
        (TileShape::M8N8, false, None) => lanes::<LoadMatrices<PLAIN>>(),
        (TileShape::M8N8, true, None) if matrices == 4 => lanes::<LoadMatrices<TRANSPOSED, true>>(),
        (TileShape::M8N8, true, None) => lanes::<LoadMatrices<TRANSPOSED>>(),
        _ => lanes::<LoadMatrices<SHUFFLED>>(),
    };
    let (addresses, shuffle) = match (op.shape, op.trans) {
        (TileShape::M16N16, _) => {
            // Two registers for each: rows 4t and 4t + 1 (4t + 2 and 4t + 3 in the second), columns g and
            // g + 8.
            let byte = |row: usize, lane: usize, byte: usize| {
                let giver = 16 * (row / 2) + 4 * (lane % 4) + 2 * (row % 2) + byte % 2;
                let column = lane / 4 + 8 * (byte / 2);
                (ROW * giver + column / 4, column % 4)
            };
            (16 * matrices, Shuffle::new(8, registers.len(), byte))
        }
        (_, true) => {
            let half = |row: usize, lane: usize, half: usize| {
                let (giver, column) = (8 * row + 2 * (lane % 4) + half, lane / 4);
                (ROW * giver + column / 2, column % 2)
            };
            (8 * matrices, Shuffle::new(16, registers.len(), half))
        }
        (_, false) => {
            let word = |row: usize, lane: usize, _| (ROW * (8 * row + lane / 4) + lane % 4, 0);
            (8 * matrices, Shuffle::new(32, registers.len(), word))
        }
    };
    let words = if op.source == Some(PackedElement::S4) { ROW / 2 } else { ROW };
    let (memory, row_words) = row_access(d, &op.p, op.space, words);
    let source = op.source;
    let givers = first_lanes(addresses);
    let rows = push(d, Transfer { memory, givers, row_words, source, shuffle, registers });
    d.emit(handlers, rows);
}

pub(super) fn stmatrix(op: &Stmatrix, d: &mut Decoder<'_, '_>) {
    let registers: Box<[Option<u32>]> =
        op.r.as_slice().iter().map(|src| Some(d.src32(src, Type::B32))).collect();
    // Register `r` of `lane` is word 32 · r + lane. A lane past those that give addresses stores nothing.
    let count = registers.len();
    let matrix = |lane: usize| lane / 8 % count;
    let shuffle = match (op.shape, op.trans) {
        (TileShape::M16N8, _) => Shuffle::new(8, ROW, |word, lane, byte| {
            // Columns are stored: column c of the matrix from lanes with 2t = c or 2t + 1 = c.
            let (row, column) = (4 * word + byte, lane % 8);
            let holder = 4 * (row % 8) + column / 2;
            (LANES * matrix(lane) + holder, 2 * (row / 8) + column % 2)
        }),
        (_, true) => Shuffle::new(16, ROW, |word, lane, half| {
            let (row, column) = (lane % 8, 2 * word + half);
            (LANES * matrix(lane) + 4 * column + row / 2, row % 2)
        }),
        (_, false) => {
            Shuffle::new(32, ROW, |word, lane, _| (LANES * matrix(lane) + 4 * (lane % 8) + word, 0))
        }
    };
    let (memory, row_words) = row_access(d, &op.p, op.space, ROW);
    let givers = first_lanes(8 * op.num.count());
    let rows = push(d, Transfer { memory, givers, row_words, source: None, shuffle, registers });
    d.emit(lanes::<StoreMatrices>(), rows);
}

pub(super) fn movmatrix(op: &Movmatrix, d: &mut Decoder<'_, '_>) {
    let (to, from) = (d.dst(op.d), d.row(op.a.0));
    let shuffle = Shuffle::new(16, 1, |_, lane, half| {
        let (row, column) = (2 * (lane % 4) + half, lane / 4);
        (4 * row + column / 2, column % 2)
    });
    d.emit_boxed(move |m: &mut Machine<'_>, _| {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let mut words = [0; ROW * LANES];
        words[..LANES].copy_from_slice(m.registers.row32(from));
        let values = shuffle.row(0, &words);
        m.registers.set32(to, &values, m.mask);
        Step::Next
    });
}

/// `ldmatrix`, and how words go from the lanes that load them to those that get them; `ALL`: all lanes load some.
struct LoadMatrices<const HOW: u8, const ALL: bool = false>;

/// As [`spread`] does.
const PLAIN: u8 = 0;
/// As [`spread_transposed`] does.
const TRANSPOSED: u8 = 1;
/// By the table, for elements of any size.
const SHUFFLED: u8 = 2;

impl<const HOW: u8, const ALL: bool> LaneOp for LoadMatrices<HOW, ALL> {
    const NATIVE: Option<Operation> =
        native::unless(!ALL, Operation::LoadMatrices { transposed: HOW == TRANSPOSED });

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        let transfer = &launch.code.matrix.transfers[i.x as usize];
        let mask = m.mask;
        // What is not loaded is zero, not what was loaded before.
        transfer.row_words.iter().for_each(|row| *m.registers.row32_mut(*row) = [0; LANES]);
        m.mask = mask & transfer.givers;
        m.load(&launch.code.memory[transfer.memory]);
        m.mask = mask;
        if let (PLAIN | TRANSPOSED, &[a, b, c, d]) = (HOW, &transfer.row_words[..]) {
            let words = [a, b, c, d].map(|row| *m.registers.row32(row));
            for (row, number) in transfer.registers.iter().zip(0..ROW) {
                let Some(row) = *row else { continue };
                let [a, b, c, d] = &words;
                let of = |words: &'_ Row32| -> [u32; 8] {
                    *words[8 * number..].first_chunk().expect("four matrices")
                };
                let (a, b, c, d) = (of(a), of(b), of(c), of(d));
                let matrix = [&a, &b, &c, &d];
                let values = if HOW == PLAIN { spread(matrix) } else { spread_transposed(matrix) };
                m.registers.set32(row, &values, mask);
            }
            return Step::Next;
        }
        let mut words = [0; ROW * LANES];
        for (word, &row) in transfer.row_words.iter().enumerate() {
            for (lane, &value) in m.registers.row32(row).iter().enumerate() {
                words[ROW * lane + word] = value;
            }
        }
        if let Some(source) = transfer.source {
            words.as_chunks_mut().0.iter_mut().for_each(|row| *row = widen(source, *row));
        }
        for (number, row) in transfer.registers.iter().enumerate() {
            let Some(row) = *row else { continue };
            let values = transfer.shuffle.row(number, &words);
            m.registers.set32(row, &values, mask);
        }
        Step::Next
    }
}

/// Sixteen elements become bytes.
fn widen(source: PackedElement, row: [u32; ROW]) -> [u32; ROW] {
    let packed = row.iter().rev().fold(0_u128, |all, &word| all << 32 | u128::from(word));
    let bytes: [u8; 16] = std::array::from_fn(|index| match source {
        PackedElement::B6x16P32 => (packed >> (6 * index)) as u8 & 0x3f,
        PackedElement::B4x16P64 => (packed >> (4 * index)) as u8 & 0x0f,
        PackedElement::S4 => {
            (((packed >> (4 * index)) as u8) << 4).cast_signed().wrapping_shr(4).cast_unsigned()
        }
    });
    std::array::from_fn(|word| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[4 * word + byte])))
}

struct StoreMatrices;

impl LaneOp for StoreMatrices {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        let transfer = &launch.code.matrix.transfers[i.x as usize];
        let mut words = [0; ROW * LANES];
        for (row, words) in transfer.registers.iter().flatten().zip(words.chunks_exact_mut(LANES)) {
            words.copy_from_slice(m.registers.row32(*row));
        }
        for (word, &row) in transfer.row_words.iter().enumerate() {
            let values = transfer.shuffle.row(word, &words);
            m.registers.set32(row, &values, FULL);
        }
        let mask = m.mask;
        m.mask = mask & transfer.givers;
        m.store(&launch.code.memory[transfer.memory]);
        m.mask = mask;
        Step::Next
    }
}
