//! Activations that are quantised to `q8_1` on their way to shared memory.
//!
//! A word is a chunk of four, so that a lane has all of it; the lanes that have a block of 32 are eight apart,
//! and for runs of 16 also neighbours.

use super::activations::{BLOCK, Floats, Stage};
use super::format::CHUNK;
use super::plan::{GROUPS, LANES, Slice};
use warpwright_dsl::*;

/// `x + 1.5 · 2²³` is `x` rounded to an integer, to nearest, in the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

impl<'k> Stage<'k> {
    /// Stages a slice of a column as [`Source::Q8_1`](super::activations::Source::Q8_1) would be:
    /// `q = round(x / scale)`, `scale = max |x| / 127` over each 32, and `scale · Σ q`. Blocks whose scale would
    /// be below 2⁻¹²⁶ are zeros.
    pub(super) fn bring_rounded(self, k: K<'k>, floats: &mut Floats<'k>, slice: Slice<'k>, column: u32) {
        let layout = self.staging.layout;
        let (stage, unit) = (self.column(column), self.lanes.unit);
        // The reads of one block: four lanes have sixteen numbers at a time.
        let reads = (layout.run().min(BLOCK) / (GROUPS * CHUNK)) as usize;
        // Other lanes that have some of it.
        let mut lanes = vec![LANES, 2 * LANES];
        let runs = BLOCK / layout.run().min(BLOCK);
        if runs == 2 {
            lanes.push(1);
        }
        let firsts: Vec<_> = (0..layout.chunks()).step_by(GROUPS as usize).collect();
        for (block, firsts) in (0..).zip(firsts.chunks(reads)) {
            let chunks: Vec<_> = firsts.iter().map(|&first| self.read(k, floats, slice, first)).collect();
            let largest = chunks.iter().flatten().fold(k.f32(0.0), |most, x| most.max(x.abs()));
            let largest = lanes.iter().fold(largest, |most, &lanes| most.max(k.shuffle_xor(most, lanes)));
            let scale = largest * (1.0 / 127.0);
            let inverse = scale.ge(f32::MIN_POSITIVE).select(scale.rcp_approx(), 0.0);
            let words = chunks.iter().map(|chunk| {
                let [a, b, c, d] = chunk.map(|x| x.mul_add(inverse, TO_INTEGER).bits::<u32>());
                // The low byte of each.
                a.prmt(b, 0x0040).prmt(c.prmt(d, 0x0040), 0x5410)
            });
            let mut total = k.i32(0);
            for (&first, word) in firsts.iter().zip(words) {
                total = word.bits::<i32>().dp4a(k.i32(0x0101_0101), total);
                let place = first / GROUPS * LANES * GROUPS;
                stage.cast::<u32>().st(unit * GROUPS + self.row + place, word);
            }
            let total = lanes.iter().fold(total, |sum, &lanes| sum + k.shuffle_xor(sum, lanes));
            // Blocks in their order in the slice.
            let (at, keeps) = if layout.units() {
                (unit * 2 + block, self.row.eq(0))
            } else {
                (unit / runs + block * (LANES / runs), (self.row * LANES + unit % runs).eq(0))
            };
            let kept = stage.at(self.staging.staged());
            kept.st_vec_if(keeps, at * 2, [scale, total.f32() * scale]);
        }
    }
}
