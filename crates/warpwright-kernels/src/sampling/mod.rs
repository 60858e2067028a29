//! From logits to a token: the largest or a random draw, and the penalties before it.

pub(crate) mod argmax;
mod cut;
mod logits;
pub(crate) mod penalties;
mod philox;
mod radix;
pub(crate) mod sample;
pub(crate) mod setting;

use warpwright_dsl::Reg;

/// A word that orders numbers as they are ordered: larger for larger ones, the same for both zeros, and 0 for
/// NaN and nothing else.
#[track_caller]
fn rank<'k>(x: Reg<'k, f32>) -> Reg<'k, u32> {
    // The sum of -0 and 0 is 0.
    let bits = (x + 0.0).bits::<u32>();
    // Negative numbers have all their bits turned round, the others their sign.
    let flip = (bits.bits::<i32>() >> 31).bits::<u32>() | 0x8000_0000;
    x.eq(x).select(bits ^ flip, 0)
}
