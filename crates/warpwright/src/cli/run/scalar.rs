//! Scalars as a user writes them, such as `s32:-1`, `b32:0x3f800000` or `f16:0.5`, as the bytes that
//! a kernel gets.

use warpwright_ptx::ir::{Type, TypeKind};

/// The types that a scalar argument can have.
pub(super) const TYPES: &[Type] = &[
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::F16,
    Type::BF16,
    Type::F32,
    Type::F64,
];

/// The bytes of a value, little-endian. The error is what is wrong with the text.
pub(super) fn parse(ty: Type, text: &str) -> Result<Vec<u8>, String> {
    let bits = match ty.kind() {
        TypeKind::Float => float(ty, text)?,
        _ => integer(ty, text)?,
    };
    Ok(bits.to_le_bytes()[..ty.bytes() as usize].to_vec())
}

/// Digits of a number written as `0x…`, `0o…` or `0b…`, with their base.
fn prefixed(text: &str) -> Option<(&str, u32)> {
    [("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((text.strip_prefix(prefix)?, radix)))
}

/// A magnitude. Only digits: the standard parser would take a sign.
fn magnitude(digits: &str, radix: u32) -> Option<u128> {
    let fine = !digits.is_empty() && digits.bytes().all(|byte| (byte as char).is_digit(radix));
    fine.then(|| u128::from_str_radix(digits, radix).unwrap_or(u128::MAX))
}

/// Bits of an integer. Decimal numbers are values of the type; with a prefix they are its bits, so
/// that `s32:0xffffffff` is −1.
fn integer(ty: Type, text: &str) -> Result<u64, String> {
    let width = ty.bits();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = prefixed(unsigned).unwrap_or((unsigned, 10));
    let value = magnitude(digits, radix)
        .ok_or_else(|| format!("`{text}` is not an integer: decimal digits, or hexadecimal ones after 0x"))?;
    let ones = (1u128 << width) - 1;
    let half = 1u128 << (width - 1);
    // Untyped bits may be meant either way.
    let max = match ty.kind() {
        TypeKind::Signed if radix == 10 => half - 1,
        _ => ones,
    };
    let least = match ty.kind() {
        TypeKind::Unsigned => 0,
        _ => half,
    };
    if value > if negative { least } else { max } {
        let low = if least == 0 { "0".to_string() } else { format!("-{least}") };
        return Err(format!("{text} does not fit .{}, which holds {low} to {max}", ty.name()));
    }
    let bits = if negative { value.wrapping_neg() } else { value };
    Ok((bits & ones) as u64)
}

/// Bits of a floating-point number: a decimal number is rounded to the nearest value, `0x` is
/// followed by the bits themselves.
fn float(ty: Type, text: &str) -> Result<u64, String> {
    if let Some((digits, 16)) = prefixed(text) {
        let wanted = ty.bits() as usize / 4;
        return match magnitude(digits, 16) {
            Some(bits) if digits.len() == wanted => Ok(bits as u64),
            _ => Err(format!("`{text}`: 0x is followed by the bits of .{}, {wanted} digits", ty.name())),
        };
    }
    let not_a_number = || {
        format!(
            "`{text}` is not a number such as 1.5, -2e-3, inf or nan, nor bits such as 0x followed by {} digits",
            ty.bits() / 4
        )
    };
    let value: f64 = text.parse().map_err(|_| not_a_number())?;
    let (bits, rounded) = match ty {
        Type::F64 => (value.to_bits(), value),
        Type::F32 => {
            // From the text: by way of f64 it would be rounded twice.
            let value: f32 = text.parse().map_err(|_| not_a_number())?;
            (value.to_bits().into(), value.into())
        }
        Type::BF16 => narrow(value, 8, 7),
        _ => narrow(value, 5, 10),
    };
    let spelled_out = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    if rounded.is_infinite() && !spelled_out {
        return Err(format!("{text} exceeds the range of .{}; `inf` is its infinity", ty.name()));
    }
    Ok(bits)
}

/// Rounds to a format with that many bits of exponent and of mantissa, to nearest, ties to even.
/// Gives the bits and their value.
fn narrow(value: f64, exponent: u32, mantissa: u32) -> (u64, f64) {
    let sign = u64::from(value.is_sign_negative()) << (exponent + mantissa);
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    if value.is_nan() {
        return (sign | infinity | 1 << (mantissa - 1), value);
    }
    let bias = (1i32 << (exponent - 1)) - 1;
    let magnitude = value.abs();
    // The exponent of the last place: that of the value's leading bit, or of subnormals.
    let leading = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // Powers of two this large and small are exact in f64, and so is the quotient.
    let unit = 2f64.powi(leading - mantissa as i32);
    let units = (magnitude / unit).round_ties_even();
    let rounded = units * unit;
    if rounded >= 2f64.powi(bias + 1) {
        return (sign | infinity, f64::INFINITY.copysign(value));
    }
    // A carry out of the mantissa counts up the exponent, as it should.
    let bits = ((leading + bias - 1) as u64) * (1 << mantissa) + units as u64;
    (sign | bits, rounded.copysign(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(ty: Type, text: &str) -> Result<u64, String> {
        let bytes = parse(ty, text)?;
        assert_eq!(bytes.len(), ty.bytes() as usize);
        Ok(bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    #[test]
    fn integers_hold_their_type_s_range_and_no_more() {
        for &(ty, least, max) in &[
            (Type::U8, 0, u8::MAX.into()),
            (Type::S8, i8::MIN.into(), i8::MAX.into()),
            (Type::B8, i8::MIN.into(), u8::MAX.into()),
            (Type::U16, 0, u16::MAX.into()),
            (Type::S32, i32::MIN.into(), i32::MAX.into()),
            (Type::B32, i32::MIN.into(), u32::MAX.into()),
            (Type::U64, 0, u64::MAX.into()),
            (Type::S64, i64::MIN.into(), i64::MAX.into()),
            (Type::B64, i64::MIN.into(), i128::from(u64::MAX)),
        ] {
            let mask = u64::MAX >> (64 - ty.bits());
            for value in [least, 0, 1, max] {
                assert_eq!(bits(ty, &value.to_string()), Ok(value as u64 & mask), "{ty} {value}");
            }
            assert!(bits(ty, &(least - 1).to_string()).is_err(), "{ty}");
            assert!(bits(ty, &(max + 1).to_string()).is_err(), "{ty}");
        }
        assert!(bits(Type::U64, "99999999999999999999999999999999999999999999").is_err());
    }

    #[test]
    fn integers_in_other_bases_are_bits() {
        assert_eq!(bits(Type::S32, "0xffffffff"), Ok(0xffff_ffff));
        assert_eq!(bits(Type::S32, "-0x1"), Ok(0xffff_ffff));
        assert_eq!(bits(Type::U8, "0b101"), Ok(5));
        assert_eq!(bits(Type::U8, "0o17"), Ok(15));
        assert!(bits(Type::U8, "0x100").is_err());
        for text in ["", "-", "0x", "+-1", "1.0", "1e3", "one", "0x-1", "1_000", " 1"] {
            assert!(bits(Type::U32, text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn floats_round_to_nearest_even() {
        assert_eq!(bits(Type::F32, "0.1"), Ok(0.1f32.to_bits().into()));
        assert_eq!(bits(Type::F64, "0.1"), Ok(0.1f64.to_bits()));
        for (text, f16) in [
            ("0", 0x0000),
            ("-0", 0x8000),
            ("1", 0x3c00),
            ("1.5", 0x3e00),
            ("-2", 0xc000),
            ("65504", 0x7bff),
            // Half-way between 1 and the next value, and between that and the one after.
            ("1.00048828125", 0x3c00),
            ("1.00146484375", 0x3c02),
            ("1.9999", 0x4000),
            ("6.103515625e-5", 0x0400),
            ("6.097555160522461e-5", 0x03ff),
            ("5.960464477539063e-8", 0x0001),
            ("2.9802322387695312e-8", 0x0000),
            ("2.9802322387695316e-8", 0x0001),
            ("1e-300", 0x0000),
            ("inf", 0x7c00),
            ("-infinity", 0xfc00),
            ("nan", 0x7e00),
        ] {
            assert_eq!(bits(Type::F16, text), Ok(f16), "{text}");
        }
        // bf16 is the upper half of f32: of numbers with few digits exactly, else the nearest.
        for text in ["1", "-3.5", "1e38", "3.3895313892515355e38", "1.1754943508222875e-38", "9.2e-41"] {
            let wide = text.parse::<f32>().expect("a number").to_bits();
            let nearest = wide.wrapping_add(0x7fff + (wide >> 16 & 1)) >> 16;
            assert_eq!(bits(Type::BF16, text), Ok(nearest.into()), "{text}");
        }
    }

    #[test]
    fn floats_out_of_range_are_refused() {
        for (ty, text) in [
            (Type::F16, "65520"),
            (Type::F16, "-1e9"),
            (Type::BF16, "3.4e38"),
            (Type::F32, "1e39"),
            (Type::F64, "1e309"),
        ] {
            assert!(bits(ty, text).is_err(), "{ty} {text}");
        }
        assert_eq!(bits(Type::F16, "65519"), Ok(0x7bff));
    }

    #[test]
    fn floats_can_be_bits() {
        assert_eq!(bits(Type::F16, "0x3c01"), Ok(0x3c01));
        assert_eq!(bits(Type::F32, "0x7fc00001"), Ok(0x7fc0_0001));
        for text in ["0x3c", "0x3c000", "0x", "", "1.5f", "one", "0xzzzz"] {
            assert!(bits(Type::F16, text).is_err(), "{text}");
        }
    }
}
