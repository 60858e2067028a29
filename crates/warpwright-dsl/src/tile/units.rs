//! How the threads of a block divide the copying of a window.
//!
//! A window is cut into units of neighbouring elements of a row; a thread copies one at a time. The distance to a
//! thread's next unit determines the cost of its addresses: a constant distance is best, both in global memory and,
//! through the swizzle, in shared memory. Where that leaves a choice, neighbouring threads have neighbouring units.
//!
//! ```text
//!   bands: a multiple of eight rows at a time     stripes: rows that threads do not divide
//!   pass 0 │ rows 0..8                            │ pass 0 │ pass 2 │ pass 4 │
//!   pass 1 │ rows 8..16    rows 8n.. the same     │ pass 1 │ pass 3 │ pass 5 │
//! ```

use super::super::reg::Reg;
use super::super::state::ENTRY;
use super::super::types::*;
use super::swizzle::AddressTerm;
use super::{K, SharedTile, TileAccess};
use std::panic::Location;

/// Bytes of a row within which chunks change places, at most.
const GROUP: u32 = 128;

/// An order of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Threads stay within eight rows at a time: their next is the eighth from there, which has the same
    /// swizzle and is near enough for an instruction's own offset.
    Bands { passes: u32 },
    /// Row by row, several at once.
    Rows,
    /// Row by row, several passes for each.
    LongRows,
    /// Stripe by stripe, each so many units wide and as high as the window: chunks change places within it.
    Stripes { width: u32 },
    /// Row by row, wherever rows end.
    Any,
}

impl Order {
    /// For a window of so many rows of `width` units, of `bytes` each.
    fn of(threads: u32, rows: u32, width: u32, bytes: u32) -> Self {
        let total = rows * width;
        let stripe = (1 << width.trailing_zeros()).min((GROUP / bytes).max(1));
        let band = stripe * rows;
        if threads.is_multiple_of(8 * width) && threads > 8 * width && total.is_multiple_of(threads) {
            Order::Bands { passes: total / threads }
        } else if threads.is_multiple_of(width) {
            Order::Rows
        } else if width.is_multiple_of(threads) {
            Order::LongRows
        } else if threads.is_multiple_of(band)
            || band.is_multiple_of(threads) && threads.is_multiple_of(8 * stripe)
        {
            Order::Stripes { width: stripe }
        } else {
            Order::Any
        }
    }
}

impl<'k, T: Data, X: TileAccess> SharedTile<'k, T, X> {
    /// Shares the window out to the threads, in units of so many elements: `copy` gets the row of a thread's unit, as a
    /// row and how many further, the column, and whether it has one, where not all of them have.
    pub(super) fn each_unit(
        self,
        threads: u32,
        elements: u32,
        copy: impl Fn((Reg<'k, u32>, u32), Reg<'k, u32>, Option<Reg<'k, Pred>>),
    ) {
        let k = self.k;
        let width = (self.columns / elements).max(1);
        let total = self.rows * width;
        let order = Order::of(threads, self.rows, width, elements * T::TYPE.bytes());
        for (pass, first) in (0..).zip((0..total).step_by(threads as usize)) {
            let (row, column) = match order {
                Order::Bands { passes } => {
                    ((k.thread_in_bands(width, 8 * passes), pass * 8), k.thread_part(1, width))
                }
                Order::Rows => ((k.thread_part(width, u32::MAX), first / width), k.thread_part(1, width)),
                Order::LongRows => ((k.u32(0), first / width), k.linear_tid() + first % width),
                Order::Stripes { width } => {
                    let band = width * self.rows;
                    let column = k.thread_part(1, width) + k.thread_part(band, u32::MAX) * width;
                    let row = (k.thread_part(width, self.rows), first % band / width);
                    (row, column + first / band * width)
                }
                Order::Any => {
                    let unit = k.linear_tid() + first;
                    ((unit / width, 0), unit % width)
                }
            };
            let mine = (total - first < threads).then(|| k.linear_tid().lt(total - first));
            copy(row, column * elements, mine);
        }
    }
}

impl<'k> K<'k> {
    /// `(thread / divide) % below`, of the thread's number in the block.
    #[track_caller]
    fn thread_part(self, divide: u32, below: u32) -> Reg<'k, u32> {
        let threads = self.block_dims().map_or(u32::MAX, |dims| dims.iter().product());
        if threads <= divide {
            return self.u32(0);
        }
        let below = if threads.div_ceil(divide) <= below { u32::MAX } else { below };
        let loc = Location::caller();
        let part = || {
            self.on_line(loc, || match below {
                u32::MAX => self.linear_tid() / divide,
                _ => self.linear_tid() / divide % below,
            })
        };
        self.part(AddressTerm::Thread { divide, below }, ENTRY, part)
    }

    /// The row of a thread, with so many threads for each, where eight rows of threads are `band` rows after the
    /// eight before.
    #[track_caller]
    fn thread_in_bands(self, width: u32, band: u32) -> Reg<'k, u32> {
        let loc = Location::caller();
        let row = self.thread_part(width, u32::MAX);
        let row = || self.on_line(loc, || (row & 7) + (row >> 3) * band);
        self.part(AddressTerm::ThreadBand { width, band }, ENTRY, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_threads_do_not_divide_are_cut_into_stripes() {
        // Rows of heads of 128, 96, 80 and 192 halves, by eight warps and by four.
        assert_eq!(Order::of(256, 64, 16, 16), Order::Bands { passes: 4 });
        assert_eq!(Order::of(256, 64, 12, 16), Order::Stripes { width: 4 });
        assert_eq!(Order::of(256, 64, 10, 16), Order::Stripes { width: 2 });
        assert_eq!(Order::of(128, 32, 24, 16), Order::Stripes { width: 8 });
        // The same in units of four `f32` that become eight bytes.
        assert_eq!(Order::of(256, 64, 24, 8), Order::Stripes { width: 8 });
        assert_eq!(Order::of(96, 13, 7, 16), Order::Any);
        assert_eq!(Order::of(32, 4, 64, 16), Order::LongRows);
        assert_eq!(Order::of(32, 4, 16, 16), Order::Rows);
    }
}
