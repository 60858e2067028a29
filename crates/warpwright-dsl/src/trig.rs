//! Sine and cosine of turns.

use super::reg::Reg;
use std::panic::Location;

/// `sin 2πt ≈ t · Σ SINE[i] · t²ⁱ` for |t| ≤ 1/8, to 2⁻²⁸ relative: minimax, coefficients rounded to `f32`.
const SINE: [f32; 4] = [6.283_185_5, -41.341_663, 81.592_354, -75.393_56];

/// `cos 2πt ≈ Σ COSINE[i] · t²ⁱ` for |t| ≤ 1/8, to 2⁻³⁴ absolute: minimax, coefficients rounded to `f32`.
const COSINE: [f32; 5] = [1.0, -19.739_208, 64.939_34, -85.443_74, 59.245_964];

impl<'k> Reg<'k, u32> {
    /// Cosine and sine of the angle that is `self / 2³²` of a turn, each to 2⁻²³ absolute.
    ///
    /// Multiples of a fraction of a turn wrap where angles do, so the multiplication itself reduces an angle exactly
    /// that is a product with an integer: `(n * fraction).cos_sin_turns()`. The rest is a rotation by quarters, in
    /// integers, and two polynomials. The result has the same bits on every device.
    #[track_caller]
    pub fn cos_sin_turns(self) -> [Reg<'k, f32>; 2] {
        self.k.on_line(Location::caller(), || {
            // The nearest quarter, and what remains: between -1/8 and 1/8 of a turn.
            let quarter = (self + (1 << 29)) >> 30;
            let rest = (self - (quarter << 30)).bits::<i32>();
            let t = rest.f32() * 2f32.powi(-32);
            let square = t * t;
            let polynomial = |coefficients: &[f32]| {
                let (&last, others) = coefficients.split_last().unwrap_or((&0.0, &[]));
                others.iter().rev().fold(self.k.f32(last), |sum, &c| sum.mul_add(square, c))
            };
            let (sine, cosine) = (polynomial(&SINE) * t, polynomial(&COSINE));
            // A quarter turns the cosine into the sine, and the sine into the negative cosine.
            let odd = (quarter & 1).eq(1);
            let (x, y) = (odd.select(sine, cosine), odd.select(cosine, sine));
            let negative = |value: Reg<'k, f32>, two: Reg<'k, u32>| {
                (value.bits::<u32>() ^ ((two & 2) << 30)).bits::<f32>()
            };
            [negative(x, quarter + 1), negative(y, quarter)]
        })
    }
}
