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
}

impl FloatElement {
    /// Exponent of the smallest normal value.
    pub const fn least_exponent(self) -> i32 {
        match self {
            FloatElement::F16 | FloatElement::E5M2 => -14,
            FloatElement::BF16 | FloatElement::TF32 => -126,
            FloatElement::E4M3 => -6,
        }
    }

    /// The exact value of these bits, which are at the low end of `bits`.
    #[inline(always)]
    pub fn decode(self, bits: u32) -> f32 {
        match self {
            FloatElement::F16 => f16_to_f32(bits as u16),
            FloatElement::BF16 => f32::from_bits(bits << 16),
            FloatElement::TF32 => f32::from_bits(bits & 0xffff_e000),
            FloatElement::E4M3 => E4M3[(bits & 0xff) as usize],
            FloatElement::E5M2 => f16_to_f32((bits << 8) as u16),
        }
    }
}

/// Values of `e4m3`: 0 to 448, and a NaN where all seven bits are set.
static E4M3: [f32; 256] = {
    let mut values = [0.0; 256];
    let mut bits = 0;
    while bits < 256 {
        let (exponent, fraction) = ((bits >> 3) & 15, bits & 7);
        let magnitude = if bits & 0x7f == 0x7f {
            f32::NAN
        } else if exponent == 0 {
            fraction as f32 / 512.0
        } else {
            // (8 + fraction) / 8 · 2^(exponent − 7), put together as 127 + exponent − 7.
            f32::from_bits(((exponent as u32 + 120) << 23) | ((fraction as u32) << 20))
        };
        values[bits] = if bits & 0x80 != 0 { -magnitude } else { magnitude };
        bits += 1;
    }
    values
};

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
    fn tf32_does_not_look_at_the_low_bits() {
        assert_eq!(FloatElement::TF32.decode(0x3f80_1fff), 1.0);
        assert_eq!(FloatElement::TF32.decode(0x3f80_2000), 1.0 + 2f32.powi(-10));
        assert_eq!(FloatElement::BF16.decode(0xc040), -3.0);
    }
}
