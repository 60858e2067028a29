//! The positions of a shared tile's elements, and addresses computed from rows and columns.
//!
//! A row is cut into chunks of 16 bytes. Shared memory serves eight chunks at a time, one from each group of four
//! banks. A row's neighbouring chunks, and the same chunk of eight rows, must lie in different groups. So the chunks
//! of a row are permuted: chunk `c` of row `r` lies at `c ^ f(r)`, where `f` counts rows modulo the number of
//! permuted chunks (at most eight, and a power of two that divides the row's chunks).
//!
//! ```text
//!   row of 8 chunks (128 bytes)            row of 4 chunks (64 bytes): two rows meet all banks
//!   r 0   0 1 2 3 4 5 6 7                  r 0, 1   0 1 2 3   0 1 2 3
//!   r 1   1 0 3 2 5 4 7 6                  r 2, 3   1 0 3 2   1 0 3 2
//!   r 2   2 3 0 1 6 7 4 5                  r 4, 5   2 3 0 1   2 3 0 1
//! ```
//!
//! Columns of 32-bit elements are also read one element at a time, four rows by eight columns. For them `f` rotates
//! its bits by one position, so that neighbouring rows differ by two chunks.
//!
//! An address is computed in parts. The part that depends only on lanes and constants is computed once, before the
//! body, and shared by all tiles. The rest is affine and becomes pointers and constants like every other address.

use super::super::form::{FormId, NO_FACTOR, Term};
use super::super::pointer::INVALID;
use super::super::reg::Reg;
use super::super::state::{BlockId, ENTRY, Loc, Pointer, State};
use super::K;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// Bytes that move together.
pub(super) const CHUNK: u32 = 16;

/// A part of an address that tiles share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AddressTerm {
    /// `(lane >> shift) & mask`.
    Lane { shift: u32, mask: u32 },
    /// `(thread / divide) % below`, of the thread's number in the block.
    Thread { divide: u32, below: u32 },
    /// The row of a thread where each group of eight rows of threads is `band` rows after the one before.
    ThreadBand { width: u32, band: u32 },
    /// The swizzle of row `row + plus`.
    Mask { layout: Layout, row: ir::Reg, plus: u32 },
    /// The sum of the terms and the constant, xor-ed with a mask.
    Offset { terms: Vec<Term>, constant: u32, mask: Mask },
}

/// What is xor-ed with a byte's place in its row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mask {
    Host(u32),
    Device(ir::Reg),
}

/// How rows lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of a row: a multiple of [`CHUNK`].
    pub(super) row_bytes: u32,
    /// Chunks of a row that change places among themselves: 1, 2, 4 or 8.
    period: u32,
    /// Whether neighbouring rows differ by two chunks.
    turned: bool,
}

impl Layout {
    pub(super) fn new(row_bytes: u32, element_bytes: u32) -> Self {
        let chunks = (row_bytes / CHUNK).max(1);
        let period = (1 << chunks.trailing_zeros()).min(8);
        Layout { row_bytes, period, turned: element_bytes == 4 }
    }

    /// Bytes within which places are xor-ed.
    fn group(self) -> u32 {
        self.period * CHUNK
    }

    /// Rows that have the same swizzle, as a shift.
    fn shift(self) -> u32 {
        (8 / self.period).trailing_zeros()
    }

    fn turn(self) -> Option<u32> {
        (self.turned && self.period > 2).then(|| self.period.trailing_zeros() - 1)
    }

    /// The mask of a row.
    fn host_mask(self, row: u32) -> u32 {
        let count = row >> self.shift() & (self.period - 1);
        let count = match self.turn() {
            Some(back) => (count << 1 | count >> back) & (self.period - 1),
            None => count,
        };
        count * CHUNK
    }

    /// The same on the device.
    fn device_mask<'k>(self, row: Reg<'k, u32>) -> Reg<'k, u32> {
        let Some(back) = self.turn() else {
            return (row << (CHUNK.trailing_zeros() - self.shift())) & ((self.period - 1) * CHUNK);
        };
        let count = (row >> self.shift()) & (self.period - 1);
        ((count << 1 | count >> back) & (self.period - 1)) << CHUNK.trailing_zeros()
    }
}

impl<'k> K<'k> {
    /// `(lane >> shift) & mask`.
    #[track_caller]
    pub(super) fn lane_bits(self, shift: u32, mask: u32) -> Reg<'k, u32> {
        let loc = Location::caller();
        let bits = || self.on_line(loc, || (self.lane() >> shift) & mask);
        self.part(AddressTerm::Lane { shift, mask }, ENTRY, bits)
    }

    /// The pointer to byte `bytes` of row `row` of what `base` points to.
    pub(super) fn swizzled(
        self,
        base: u32,
        layout: Layout,
        (row, bytes): (Reg<'k, u32>, Reg<'k, u32>),
        loc: Loc,
    ) -> u32 {
        {
            let mut state = self.state();
            if base == INVALID || !state.usable(row.id, loc) || !state.usable(bytes.id, loc) {
                return INVALID;
            }
        }
        let mask = self.on_line(loc, || self.mask(layout, row));
        let (whole, low, constant) = self.state().split(bytes.id, layout.group());
        let (whole, place) = match mask {
            Mask::Host(0) => (Some(self.state().form_of(bytes.id)), None),
            Mask::Host(mask) if low.is_empty() => {
                let place = i64::from(constant ^ mask);
                (self.state().plus(whole, place), None)
            }
            mask => (Some(whole), Some(self.on_line(loc, || self.place(low, constant, mask)))),
        };
        let mut state = self.state();
        let before = state.pointers[base as usize];
        let row = state.form_of(row.id);
        let sum = (state.forms.add(before.form, row, layout.row_bytes.into()))
            .and_then(|sum| state.forms.add(sum, whole?, 1));
        let sum = match place {
            Some(place) => {
                let place = state.form_of(place.id);
                sum.and_then(|sum| state.forms.add(sum, place, 1))
            }
            None => sum,
        };
        let Some(form) = sum else {
            state.mistake(Code::TooLarge, loc, "the place in the tile has too many terms");
            return INVALID;
        };
        let id = state.pointers.len() as u32;
        state.pointers.push(Pointer { form, ..before });
        id
    }

    /// The mask of a row: known on the host where all that varies moves by multiples of eight rows.
    fn mask(self, layout: Layout, row: Reg<'k, u32>) -> Mask {
        if layout.period == 1 {
            return Mask::Host(0);
        }
        let (source, plus, block) = {
            let mut state = self.state();
            let (_, low, plus) = state.split(row.id, 8);
            let source = match low[..] {
                [] => return Mask::Host(layout.host_mask(plus)),
                [Term { a, b: NO_FACTOR, coefficient: 1 }] if state.value(a).ty.bits() == 32 => (a, plus),
                _ => (row.id, 0),
            };
            (source.0, source.1, state.value(source.0).block)
        };
        let part = AddressTerm::Mask { layout, row: source, plus };
        Mask::Device(self.part(part, block, || layout.device_mask(Reg::new(self, source) + plus)).id)
    }

    /// `(Σ terms + constant) ^ mask`, in the outermost block that knows all of it.
    fn place(self, terms: Vec<Term>, constant: u32, mask: Mask) -> Reg<'k, u32> {
        let block = {
            let state = self.state();
            let device = if let Mask::Device(reg) = mask { Some(reg) } else { None };
            let regs = terms.iter().map(|term| term.a).chain(device);
            regs.map(|reg| state.value(reg).block).fold(ENTRY, |a, b| state.deeper(a, b))
        };
        let part = AddressTerm::Offset { terms: terms.clone(), constant, mask };
        self.part(part, block, || {
            let scaled = |term: &Term| Reg::<u32>::new(self, term.a) * (term.coefficient as u32);
            let sum = terms.iter().map(scaled).reduce(|a, b| a + b);
            let sum = sum.map_or(self.u32(constant), |sum| sum + constant);
            match mask {
                Mask::Host(mask) => sum ^ mask,
                Mask::Device(mask) => sum ^ Reg::new(self, mask),
            }
        })
    }
}

impl State {
    /// Splits an integer in two: a part that is a multiple of `group` for all register values, as a form, and the
    /// rest, as terms of one 32-bit register and a constant below `group`.
    fn split(&mut self, reg: ir::Reg, group: u32) -> (FormId, Vec<Term>, u32) {
        let form = self.form_of(reg);
        let group = i64::from(group);
        let constant = self.forms.constant(form).rem_euclid(group);
        let terms = self.forms.terms(form);
        let low: Vec<_> = terms.iter().filter(|term| term.coefficient % group != 0).copied().collect();
        let simple = |term: &Term| term.b == NO_FACTOR && self.value(term.a).ty.bits() == 32;
        if !low.iter().all(simple) {
            // As one, it is a term of the 32-bit register that holds the sum.
            return (FormId::ZERO, vec![Term::new(reg, NO_FACTOR, 1)], 0);
        }
        let high: Vec<_> = terms.iter().filter(|term| term.coefficient % group == 0).copied().collect();
        let mut sum = self.forms.open();
        sum.constant = self.forms.constant(form) - constant;
        for term in high {
            self.forms.add_term(&sum, term);
        }
        (self.forms.close(sum), low, constant as u32)
    }

    /// A form with a constant more.
    fn plus(&mut self, form: FormId, constant: i64) -> Option<FormId> {
        let constant = self.forms.literal(constant);
        self.forms.add(form, constant, 1)
    }

    fn deeper(&self, a: BlockId, b: BlockId) -> BlockId {
        if self.block(b).depth > self.block(a).depth { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The group of banks of a chunk.
    fn banks(layout: Layout, row: u32, chunk: u32) -> u32 {
        (row * layout.row_bytes + ((chunk * CHUNK) ^ layout.host_mask(row))) / CHUNK % 8
    }

    fn distinct(groups: impl Iterator<Item = u32>) -> bool {
        groups.fold(0u32, |seen, group| seen + (1 << (4 * group))) == 0x1111_1111
    }

    #[test]
    fn eight_rows_of_a_chunk_lie_in_different_banks() {
        for row_bytes in (16..=1024).step_by(16) {
            for element in [2, 4] {
                let layout = Layout::new(row_bytes, element);
                for (first, chunk) in [(0, 0), (8, 1), (16, row_bytes / CHUNK - 1)] {
                    if chunk < row_bytes / CHUNK {
                        assert!(distinct((first..first + 8).map(|row| banks(layout, row, chunk))));
                    }
                }
            }
        }
    }

    #[test]
    fn places_are_a_permutation_of_the_row() {
        for row_bytes in (16..=512).step_by(16) {
            let layout = Layout::new(row_bytes, 2);
            for row in 0..16 {
                let mut places: Vec<_> =
                    (0..row_bytes / CHUNK).map(|chunk| (chunk * CHUNK) ^ layout.host_mask(row)).collect();
                places.sort_unstable();
                assert!(places.iter().copied().eq((0..row_bytes).step_by(16)));
            }
        }
    }

    #[test]
    fn four_rows_of_two_chunks_lie_in_different_banks_for_words() {
        for row_bytes in [32, 64, 128, 256, 384, 512] {
            let layout = Layout::new(row_bytes, 4);
            for first in [0, 4, 8, 12] {
                let rows = first..first + 4;
                assert!(distinct(rows.flat_map(|row| [0, 1].map(|chunk| banks(layout, row, chunk)))));
            }
        }
    }
}
