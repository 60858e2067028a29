//! The floating-point factors of tensor cores, and their values.

/// A floating-point type that a factor may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatElement {
    /// 5 bits of exponent, 10 of fraction.
    F16,
    /// 8 bits of exponent, 7 of fraction.
    BF16,
    /// 8 bits of exponent, 10 of fraction, in the upper bits of a word; the lower 13 are not looked at.
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

    /// The value of these bits, which stand at the low end of `bits`; exact.
    #[inline(always)]
    pub fn decode(self, bits: u32) -> f32 {
        match self {
            FloatElement::F16 => half_to_f32(bits as u16),
            FloatElement::BF16 => f32::from_bits(bits << 16),
            FloatElement::TF32 => f32::from_bits(bits & 0xffff_e000),
            FloatElement::E4M3 => E4M3[(bits & 0xff) as usize],
            FloatElement::E5M2 => half_to_f32((bits << 8) as u16),
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

/// The value of an `f16`; exact. Without branches, so that loops over it vectorise.
#[inline(always)]
pub fn half_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let magnitude = (bits as u32 & 0x7fff) << 13;
    let is_normal = magnitude >= 0x0080_0000;
    let is_special = magnitude >= 0x0f80_0000;
    let normal = magnitude + ((127 - 15) << 23) + if is_special { (127 - 15) << 23 } else { 0 };
    // Its fraction is read as an integer number of 2^-24.
    let subnormal = ((bits & 0x3ff) as i32 as f32 * f32::from_bits(103 << 23)).to_bits();
    f32::from_bits(sign | if is_normal { normal } else { subnormal })
}

/// The nearest `f16`, ties to even; NaN is 0x7fff. Without branches, so that loops over it vectorise.
#[inline(always)]
pub fn half_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // A carry out of the fraction moves into the exponent, and from the last exponent to infinity.
    let normal = (magnitude.wrapping_sub(112 << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Adding 0.5 leaves the multiples of 2^-24 at the low end of the fraction, rounded.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(126 << 23);
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let large = if magnitude > 0x7f80_0000 { 0x7fff } else { 0x7c00 };
    let result = if magnitude >= 143 << 23 { large } else { finite };
    let is_nan = magnitude > 0x7f80_0000;
    (result | if is_nan { 0 } else { sign }) as u16
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
    fn every_half_is_decoded_exactly_and_encoded_back() {
        for bits in 0..=u16::MAX {
            let found = half_to_f32(bits);
            match (bits & 0x7fff).cmp(&0x7c00) {
                std::cmp::Ordering::Less => {
                    assert_eq!(f64::from(found), value(bits.into(), 5, 10), "{bits:#06x}");
                    assert_eq!(half_from_f32(found), bits, "{bits:#06x}");
                }
                std::cmp::Ordering::Equal => {
                    assert!(found.is_infinite() && found.is_sign_negative() == (bits >> 15 == 1));
                    assert_eq!(half_from_f32(found), bits);
                }
                std::cmp::Ordering::Greater => {
                    assert!(found.is_nan(), "{bits:#06x}");
                    assert_eq!(half_from_f32(found), 0x7fff);
                }
            }
        }
    }

    #[test]
    fn between_two_halves_the_nearest_is_taken_and_of_two_the_even() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (half_to_f32(bits), half_to_f32(bits + 1));
            let middle = (low + high) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            assert_eq!(half_from_f32(middle), even, "{middle:e}");
            assert_eq!(half_from_f32(middle.next_down()), bits, "{middle:e}");
            assert_eq!(half_from_f32(middle.next_up()), bits + 1, "{middle:e}");
            assert_eq!(half_from_f32(-middle), even | 0x8000, "{middle:e}");
        }
        assert_eq!(half_from_f32(65519.996), 0x7bff);
        assert_eq!(half_from_f32(65520.0), 0x7c00);
        assert_eq!(half_from_f32(f32::MAX), 0x7c00);
        assert_eq!(half_from_f32(f32::MIN_POSITIVE), 0);
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
