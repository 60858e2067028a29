//! The floating-point factors of tensor cores, and their values.

use crate::num::half::f16_to_f32;

/// A floating-point type of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatElement {
    /// 5 bits of exponent, 10 of fraction.
    F16,
    /// 8 bits of exponent, 7 of fraction.
    BF16,
    /// 8 bits of exponent, 10 of fraction, in the upper bits of a word; the lower 13 are ignored.
    TF32,
    /// 4 bits of exponent, 3 of fraction; no infinity.
    E4M3,
    /// 5 bits of exponent, 2 of fraction.
    E5M2,
    /// 3 bits of exponent, 2 of fraction; finite values only.
    E3M2,
    /// 2 bits of exponent, 3 of fraction; finite values only.
    E2M3,
    /// 2 bits of exponent, 1 of fraction; finite values only.
    E2M1,
}

impl FloatElement {
    /// Exponent of the smallest normal value.
    pub const fn least_exponent(self) -> i32 {
        match self {
            FloatElement::F16 | FloatElement::E5M2 => -14,
            FloatElement::BF16 | FloatElement::TF32 => -126,
            FloatElement::E4M3 => -6,
            FloatElement::E3M2 => -2,
            FloatElement::E2M3 | FloatElement::E2M1 => 0,
        }
    }

    /// Whether `f64` sums of up to 2^16 products of factors of such types are exact: products are multiples of 2^-18
    /// and below 2^18.
    pub(super) const fn sums_exactly(self) -> bool {
        use FloatElement::*;
        matches!(self, E4M3 | E3M2 | E2M3 | E2M1)
    }

    /// The exact value of these bits, which are at the low end of `bits`. What is above them has no effect.
    #[inline(always)]
    pub fn decode(self, bits: u32) -> f32 {
        match self {
            FloatElement::F16 => f16_to_f32(bits as u16),
            FloatElement::BF16 => f32::from_bits(bits << 16),
            FloatElement::TF32 => f32::from_bits(bits & 0xffff_e000),
            FloatElement::E4M3 => E4M3[(bits & 0xff) as usize],
            FloatElement::E5M2 => f16_to_f32((bits << 8) as u16),
            FloatElement::E3M2 => E3M2[(bits & 0x3f) as usize],
            FloatElement::E2M3 => E2M3[(bits & 0x3f) as usize],
            FloatElement::E2M1 => E2M1[(bits & 0xf) as usize],
        }
    }
}

/// Values of `e4m3`: 0 to 448, and a NaN where all seven bits are set.
static E4M3: [f32; 256] = {
    let mut values = table(3, 7);
    (values[0x7f], values[0xff]) = (f32::NAN, -f32::NAN);
    values
};
static E3M2: [f32; 64] = table(2, 3);
static E2M3: [f32; 64] = table(3, 1);
static E2M1: [f32; 16] = table(1, 1);

/// The values of all codes of a small format by its bits of fraction and its offset of exponents: finite ones.
const fn table<const N: usize>(fraction_bits: u32, offset: u32) -> [f32; N] {
    let mut values = [0.0; N];
    let mut bits = 0;
    while bits < N {
        let code = (bits % (N / 2)) as u32;
        let magnitude = if code >> fraction_bits == 0 {
            code as f32 * f32::from_bits((128 - offset - fraction_bits) << 23)
        } else {
            // Exponent and fraction move up together.
            f32::from_bits((code << (23 - fraction_bits)) + ((127 - offset) << 23))
        };
        values[bits] = if bits >= N / 2 { -magnitude } else { magnitude };
        bits += 1;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An independent reading of a small float, by its definition.
    fn value(bits: u32, exponent_bits: u32, fraction_bits: u32) -> f64 {
        let bias = (1 << (exponent_bits - 1)) - 1;
        let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1u32 << fraction_bits);
        let exponent = ((bits >> fraction_bits) & ((1 << exponent_bits) - 1)) as i32;
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
        };
        if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -magnitude } else { magnitude }
    }

    #[test]
    fn every_fp8_value_is_decoded_exactly() {
        for bits in 0..=0xff_u32 {
            let e4m3 = FloatElement::E4M3.decode(bits);
            if bits & 0x7f == 0x7f {
                assert!(e4m3.is_nan());
            } else {
                assert_eq!(f64::from(e4m3), value(bits, 4, 3), "{bits:#04x}");
            }
            let e5m2 = FloatElement::E5M2.decode(bits);
            match bits & 0x7f {
                0x7c => assert!(e5m2.is_infinite()),
                0x7d.. => assert!(e5m2.is_nan()),
                _ => assert_eq!(f64::from(e5m2), value(bits, 5, 2), "{bits:#04x}"),
            }
        }
    }

    #[test]
    fn every_value_of_six_or_four_bits_is_decoded_exactly() {
        for (element, width, exponent_bits, fraction_bits) in
            [(FloatElement::E3M2, 6, 3, 2), (FloatElement::E2M3, 6, 2, 3), (FloatElement::E2M1, 4, 2, 1)]
        {
            for bits in 0..1 << width {
                let found = element.decode(bits | 0xff << width);
                assert_eq!(
                    f64::from(found),
                    value(bits, exponent_bits, fraction_bits),
                    "{element:?} {bits:#x}"
                );
                assert_eq!(found.is_sign_negative(), bits >> (width - 1) == 1);
            }
        }
    }

    #[test]
    fn tf32_does_not_look_at_the_low_bits() {
        assert_eq!(FloatElement::TF32.decode(0x3f80_1fff), 1.0);
        assert_eq!(FloatElement::TF32.decode(0x3f80_2000), 1.0 + 2f32.powi(-10));
        assert_eq!(FloatElement::BF16.decode(0xc040), -3.0);
    }
}
