//! Random numbers that are functions of a counter and a key: Philox4x32-10 (Salmon, Moraes, Dror and Shaw,
//! "Parallel random numbers: as easy as 1, 2, 3", 2011).

use warpwright_dsl::{K, Reg};

const ROUNDS: u32 = 10;
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The four random words of a counter, under a key.
#[track_caller]
pub(super) fn philox<'k>(k: K<'k>, counter: [Reg<'k, u32>; 4], key: [Reg<'k, u32>; 2]) -> [Reg<'k, u32>; 4] {
    (0..ROUNDS).fold(counter, |[a, b, c, d], round| {
        let key = [0, 1].map(|i| key[i] + k.u32(WEYL[i].wrapping_mul(round)));
        let (left, right) = (k.u32(FACTORS[0]), k.u32(FACTORS[1]));
        [c.mul_hi(right) ^ b ^ key[0], c * right, a.mul_hi(left) ^ d ^ key[1], a * left]
    })
}
