//! Quantisation to eight bits with one scale for each 32 numbers, as used for `int8` activations and for q8_0 rows of
//! the KV cache.

use warpwright_dsl::{Global, K, Pred, Ptr, Reg};

/// Numbers that share a scale.
pub(crate) const BLOCK: u32 = 32;

/// What becomes of a lane's numbers, which are `1 / lanes` of a block.
pub(crate) struct Quantized<'k> {
    quants: Vec<Reg<'k, i32>>,
    /// What a quant is worth: the same in all lanes of the block.
    pub(crate) scale: Reg<'k, f32>,
    lanes: u32,
}

/// The bits of a magnitude, in the order of the magnitudes. NaN is the largest, so that a maximum does not lose it.
pub(crate) fn magnitude<'k>(value: Reg<'k, f32>) -> Reg<'k, u32> {
    value.bits::<u32>() & 0x7fff_ffff
}

/// Quantises the lanes' numbers, as many in each lane: neighbouring lanes hold the parts of a block of
/// [`BLOCK`], and all lanes of the warp take part.
///
/// `q = round(x / scale)` within ±127, where `scale` is what `rounded` makes of the largest magnitude
/// divided by 127: the scale as it is stored, so that its rounding costs nothing. `|x - scale · q| ≤
/// 0.5 · scale` and what `rounded` took from 127 · scale. A scale whose reciprocal is not finite is zero. The scale of a
/// block with a NaN is NaN.
#[track_caller]
pub(crate) fn quantize<'k>(
    k: K<'k>,
    values: &[Reg<'k, f32>],
    rounded: impl Fn(Reg<'k, f32>) -> Reg<'k, f32>,
) -> Quantized<'k> {
    let lanes = BLOCK / values.len() as u32;
    let largest = values.iter().fold(k.u32(0), |largest, &value| largest.max(magnitude(value)));
    let scale = rounded(k.group_max(largest, lanes).bits::<f32>() * (1.0 / 127.0));
    let scale = scale.lt(f32::MIN_POSITIVE).select(0.0, scale);
    let inverse = scale.gt(0.0).select(scale.rcp_approx(), 0.0);
    let quants = values.iter().map(|&value| (value * inverse).round_i32().max(-127).min(127)).collect();
    Quantized { quants, scale, lanes }
}

impl<'k> Quantized<'k> {
    /// Whether this is the first of the block's lanes: the one that stores what the block has once.
    #[track_caller]
    pub(crate) fn is_first(&self, k: K<'k>) -> Reg<'k, Pred> {
        (k.lane() & (self.lanes - 1)).eq(0)
    }

    /// Stores the quants from `index` on, where the predicate holds.
    #[track_caller]
    pub(crate) fn store(&self, inside: Option<Reg<'k, Pred>>, to: Ptr<'k, Global, i8>, index: Reg<'k, u32>) {
        let to = to.at(index);
        if !self.quants.len().is_multiple_of(4) {
            (0..).zip(&self.quants).for_each(|(i, &quant)| to.st_if(inside, i, quant.to()));
            return;
        }
        let words: Vec<_> = self.quants.chunks_exact(4).map(bytes).collect();
        to.cast::<u32>().st_many(inside, 0, &words);
    }
}

/// The low bytes of four words in one.
#[track_caller]
fn bytes<'k>(quants: &[Reg<'k, i32>]) -> Reg<'k, u32> {
    let pair = |pair: &[Reg<'k, i32>]| pair[0].bits::<u32>().prmt(pair[1].bits::<u32>(), 0x0040);
    pair(&quants[..2]).prmt(pair(&quants[2..]), 0x5410)
}
