//! The routine for a product of fragments.

use super::Frame;
use crate::machine::{LANES, Row32};
use crate::native::{Fragments, half_product};
use crate::op::matrix::Product;
use crate::simd::Level;

/// A product of fragments by all lanes of a warp: 1, or 0 if the interpreter has to compute it.
#[expect(unsafe_code, reason = "the pointers of a frame")]
pub(in super::super) extern "sysv64" fn multiply<const BF16: bool>(frame: &Frame, product: &Product) -> u32 {
    let rows: *mut Row32 = frame.w32.cast();
    // SAFETY: the rows are those of the function's frame, which nothing else uses while native code runs.
    let row = |row: u32| unsafe { &*rows.add(row as usize) };
    let of = Fragments {
        a: [0, 1, 2, 3].map(|number| row(product.a.rows[number])),
        b: [0, 1].map(|number| row(product.b.rows[number])),
        c: [0, 1, 2, 3].map(|number| row(product.c.rows[number])),
    };
    let mut sums = [[0; LANES]; 4];
    let is_done = half_product::<BF16>(Level::detect(), of, frame.rules[usize::from(BF16)], &mut sums);
    if is_done {
        for (row, sums) in product.d.rows.iter().zip(&sums) {
            // SAFETY: as above; no fragment is read any more.
            row.iter().for_each(|row| unsafe { *rows.add(*row as usize) = *sums });
        }
    }
    is_done.into()
}
