//! Numbers and arrays as a file writes them.
//!
//! Numbers are read here and not with the virtual GPU's own conversions, which these files test.

use std::fmt;

/// Type of a scalar or of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `u8` to `u64`, and `b8` to `b64`.
    Unsigned(u32),
    /// `s8` to `s64`.
    Signed(u32),
    F16,
    BF16,
    F32,
    F64,
}

impl Type {
    pub(crate) fn parse(text: &str) -> Option<Type> {
        match text {
            "f16" => return Some(Type::F16),
            "bf16" => return Some(Type::BF16),
            "f32" => return Some(Type::F32),
            "f64" => return Some(Type::F64),
            _ => {}
        }
        let (kind, bits) = text.split_at_checked(1)?;
        let bits: u32 = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
        match kind {
            "u" | "b" => Some(Type::Unsigned(bits)),
            "s" => Some(Type::Signed(bits)),
            _ => None,
        }
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Type::Unsigned(bits) | Type::Signed(bits) => bits as usize / 8,
            Type::F16 | Type::BF16 => 2,
            Type::F32 => 4,
            Type::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Type::Unsigned(_) | Type::Signed(_))
    }

    /// Fraction bits and exponent bits.
    fn format(self) -> (u32, u32) {
        match self {
            Type::F16 => (10, 5),
            Type::BF16 => (7, 8),
            Type::F32 => (23, 8),
            _ => (52, 11),
        }
    }

    /// Bits of a decimal number.
    fn float_bits(self, text: &str) -> Option<u64> {
        match self {
            Type::F64 => text.parse().ok().map(f64::to_bits),
            Type::F32 => text.parse().ok().map(|value: f32| u64::from(value.to_bits())),
            _ => text.parse().ok().map(|value| self.rounded(value)),
        }
    }

    /// The nearest number of a narrow format, ties to even.
    fn rounded(self, value: f64) -> u64 {
        let (fraction, exponent) = self.format();
        let bias = (1 << (exponent - 1)) - 1;
        let sign = u64::from(value.is_sign_negative()) << (fraction + exponent);
        let max = ((1_u64 << exponent) - 1) << fraction;
        if value.is_nan() {
            return sign | max | 1 << (fraction - 1);
        }
        let size = value.abs();
        if size.is_infinite() {
            return sign | max;
        }
        // Subnormal numbers share the smallest normal exponent.
        let power = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let quantum = 2_f64.powi(power - fraction as i32);
        let steps = (size / quantum).round_ties_even();
        let biased = if steps < (1_u64 << fraction) as f64 { 0 } else { (power + bias) as u64 };
        // A carry out of the fraction runs into the exponent, as it should.
        let bits = match biased {
            0 => steps as u64,
            _ => (biased << fraction) + (steps as u64 - (1 << fraction)),
        };
        sign | bits.min(max)
    }

    fn as_f64(self, bits: u64) -> f64 {
        match self {
            Type::F64 => f64::from_bits(bits),
            Type::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => {
                let (fraction, exponent) = self.format();
                let bias = (1 << (exponent - 1)) - 1;
                let sign = if bits >> (fraction + exponent) & 1 == 1 { -1.0 } else { 1.0 };
                let power = (bits >> fraction & ((1 << exponent) - 1)) as i32;
                let low = (bits & ((1 << fraction) - 1)) as f64;
                let one = 2_f64.powi(fraction as i32);
                match power {
                    0 => sign * low * 2_f64.powi(1 - bias - fraction as i32),
                    _ if power == (1 << exponent) - 1 => {
                        if low == 0.0 {
                            sign * f64::INFINITY
                        } else {
                            f64::NAN
                        }
                    }
                    _ => sign * (one + low) * 2_f64.powi(power - bias - fraction as i32),
                }
            }
        }
    }

    /// How the bits are written where a test fails.
    pub(crate) fn show(self, bits: u64) -> String {
        match self {
            Type::Unsigned(_) => bits.to_string(),
            Type::Signed(width) => ((bits << (64 - width)) as i64 >> (64 - width)).to_string(),
            _ => {
                let value = self.as_f64(bits);
                let digits = self.bytes() * 2;
                if value.is_nan() {
                    format!("nan {bits:#0width$x}", width = digits + 2)
                } else {
                    format!("{value:?} {bits:#0width$x}", width = digits + 2)
                }
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unsigned(bits) => write!(f, "u{bits}"),
            Type::Signed(bits) => write!(f, "s{bits}"),
            Type::F16 => f.write_str("f16"),
            Type::BF16 => f.write_str("bf16"),
            Type::F32 => f.write_str("f32"),
            Type::F64 => f.write_str("f64"),
        }
    }
}

/// An element of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    /// `?`: not initialised.
    Unwritten,
    /// `_`: whatever it is.
    Any,
    /// `nan`: any NaN, where it is expected.
    Nan,
    /// These bits.
    Bits(u64),
    /// `V~T`: within `T` of the value.
    Within(f64, f64),
    /// `V~Nulp`: at most `N` numbers away.
    Ulps(u64, u64),
}

impl Element {
    /// The bits that a buffer begins with.
    pub(crate) fn bits(self, ty: Type) -> u64 {
        match self {
            Element::Bits(bits) | Element::Ulps(bits, _) => bits,
            Element::Nan => ty.rounded_nan(),
            Element::Within(..) | Element::Unwritten | Element::Any => 0,
        }
    }

    /// Whether a result is what is expected here.
    pub(crate) fn accepts(self, ty: Type, bits: u64) -> bool {
        match self {
            Element::Unwritten | Element::Any => true,
            Element::Nan => ty.as_f64(bits).is_nan(),
            Element::Bits(expected) => bits == expected,
            Element::Within(value, tolerance) => (ty.as_f64(bits) - value).abs() <= tolerance,
            Element::Ulps(expected, ulps) => ty.ordered(bits).abs_diff(ty.ordered(expected)) <= ulps,
        }
    }

    pub(crate) fn show(self, ty: Type) -> String {
        match self {
            Element::Unwritten => "?".to_string(),
            Element::Any => "_".to_string(),
            Element::Nan => "nan".to_string(),
            Element::Bits(bits) => ty.show(bits),
            Element::Within(value, tolerance) => format!("{value:?}~{tolerance:?}"),
            Element::Ulps(bits, ulps) => format!("{}~{ulps}ulp", ty.show(bits)),
        }
    }
}

impl Type {
    fn rounded_nan(self) -> u64 {
        let (fraction, exponent) = self.format();
        (((1_u64 << exponent) - 1) << fraction) | 1 << (fraction - 1)
    }

    /// A number that counts up from one floating-point number to the next.
    fn ordered(self, bits: u64) -> i64 {
        let (fraction, exponent) = self.format();
        let sign = 1_u64 << (fraction + exponent);
        let size = (bits & (sign - 1)) as i64;
        if bits & sign != 0 { -size } else { size }
    }
}

/// A number: decimal, hexadecimal bits, `inf`, `nan`, or one with a tolerance.
pub(crate) fn number(ty: Type, text: &str) -> Result<Element, String> {
    let bad = || format!("`{text}` is no {ty}");
    match text {
        "?" => return Ok(Element::Unwritten),
        "_" => return Ok(Element::Any),
        "nan" if ty.is_float() => return Ok(Element::Nan),
        _ => {}
    }
    if let Some((value, tolerance)) = text.split_once('~') {
        let value_bits = ty.float_bits(value).filter(|_| ty.is_float()).ok_or_else(bad)?;
        if let Some(ulps) = tolerance.strip_suffix("ulp") {
            return Ok(Element::Ulps(value_bits, ulps.parse().map_err(|_| bad())?));
        }
        let value = value.parse().map_err(|_| bad())?;
        return Ok(Element::Within(value, tolerance.parse().map_err(|_| bad())?));
    }
    let width = ty.bytes() as u32 * 8;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    if let Some(hex) = digits.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).ok().filter(|bits| width == 64 || bits >> width == 0);
        return match bits {
            Some(bits) if sign == 1 => Ok(Element::Bits(bits)),
            _ => Err(bad()),
        };
    }
    if ty.is_float() {
        return ty.float_bits(text).map(Element::Bits).ok_or_else(bad);
    }
    let value = sign * digits.parse::<i128>().map_err(|_| bad())?;
    let (min, max) = match ty {
        Type::Signed(_) => (-(1_i128 << (width - 1)), (1_i128 << (width - 1)) - 1),
        _ => (0, (1_i128 << width) - 1),
    };
    if !(min..=max).contains(&value) {
        return Err(bad());
    }
    Ok(Element::Bits(value as u64 & (u64::MAX >> (64 - width))))
}

/// The elements between brackets.
pub(crate) fn elements(ty: Type, text: &str) -> Result<Vec<Element>, String> {
    let mut list = Vec::new();
    for part in text.split(',').map(str::trim) {
        if let Some((value, count)) = part.split_once(" x ") {
            let count: usize = count.trim().parse().map_err(|_| format!("`{count}` is no count"))?;
            list.extend(std::iter::repeat_n(number(ty, value.trim())?, count));
        } else if let Some((first, rest)) = part.split_once("..") {
            let bad = || format!("`{part}` is no range: it is written `FIRST..END` or `FIRST..END step N`");
            let (end, step) = rest.split_once(" step ").unwrap_or((rest, "1"));
            let [first, end, step]: [i64; 3] = [
                first.trim().parse().map_err(|_| bad())?,
                end.trim().parse().map_err(|_| bad())?,
                step.trim().parse().map_err(|_| bad())?,
            ];
            if step <= 0 {
                return Err(bad());
            }
            for value in (first..end).step_by(step as usize) {
                list.push(number(ty, &value.to_string())?);
            }
        } else if !part.is_empty() {
            list.push(number(ty, part)?);
        }
    }
    Ok(list)
}

#[test]
fn numbers_of_narrow_formats() {
    let half = |text: &str| number(Type::F16, text).unwrap().bits(Type::F16);
    for (text, bits) in [
        ("1", 0x3c00),
        ("-2.5", 0xc100),
        ("65504", 0x7bff),
        ("65520", 0x7c00),
        ("65519", 0x7bff),
        ("1e9", 0x7c00),
        ("6e-8", 0x0001),
        ("-0", 0x8000),
        ("6.1e-5", 0x03ff),
        ("0.00006103515625", 0x0400),
        ("inf", 0x7c00),
        ("0x7e01", 0x7e01),
    ] {
        assert_eq!(half(text), bits, "{text}");
        if let Ok(back) = text.parse::<f64>()
            && bits & 0x7c00 != 0x7c00
        {
            assert!((Type::F16.as_f64(bits) - back).abs() <= back.abs() / 1024.0 + 3e-8, "{text}");
        }
    }
    assert_eq!(number(Type::BF16, "1.00390625"), Ok(Element::Bits(0x3f80)));
    assert_eq!(number(Type::BF16, "1.01171875"), Ok(Element::Bits(0x3f82)));
}

#[test]
fn arrays() {
    let u32s = |text| {
        elements(Type::Unsigned(32), text)
            .map(|list| list.iter().map(|element| element.bits(Type::Unsigned(32))).collect::<Vec<_>>())
    };
    assert_eq!(u32s("1, 2 x 3, 5..8, 0..7 step 3"), Ok(vec![1, 2, 2, 2, 5, 6, 7, 0, 3, 6]));
    assert!(u32s("-1").is_err());
    assert!(u32s("4294967296").is_err());
    assert_eq!(number(Type::Signed(16), "-1"), Ok(Element::Bits(0xffff)));
    let close = number(Type::F32, "1.5~1ulp").unwrap();
    assert!(close.accepts(Type::F32, 0x3fc0_0001) && !close.accepts(Type::F32, 0x3fc0_0002));
    let close = number(Type::F64, "1.5~0.25").unwrap();
    assert!(close.accepts(Type::F64, 1.75_f64.to_bits()) && !close.accepts(Type::F64, 1.8_f64.to_bits()));
}
