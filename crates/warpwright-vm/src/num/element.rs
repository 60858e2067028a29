//! The elements of packed formats: floating-point numbers, powers of two and fixed-point numbers.

use super::exact::{Direction, Exact, Format, Value};

/// The format of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A floating-point number.
    Float(Format),
    /// A power of two from 2^-127 to 2^127, by its exponent; the last code is NaN. It has no sign and no zero.
    Ue8m0,
    /// An integer of 8 bits in units of 2^-6.
    S2f6,
}

/// The exponent of the first code of `.ue8m0`.
const LEAST: i32 = -127;
/// The NaN of `.ue8m0`.
const NAN: u64 = 0xff;
/// Fraction bits of `.s2f6`.
const FRACTION: i32 = 6;

/// How a value becomes an element.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// The rounding direction.
    pub direction: Direction,
    /// Replaces values that are too large by the largest finite number.
    pub satfinite: bool,
    /// Replaces values below zero by zero.
    pub relu: bool,
}

impl Element {
    /// The meaning of its low bits.
    pub fn unpack(&self, bits: u64) -> Value {
        match self {
            Element::Float(format) => Value::unpack(format, bits & (u64::MAX >> (64 - format.width))),
            Element::Ue8m0 => match bits & NAN {
                NAN => Value::Nan,
                exponent => Value::integer(1).scaled(exponent as i32 + LEAST),
            },
            Element::S2f6 => Value::integer((bits as i8).into()).scaled(-FRACTION),
        }
    }

    /// The bits of a value.
    pub fn pack(&self, value: Value, how: Packing) -> u64 {
        let value = if how.relu && value.is_negative() { Value::Zero { negative: false } } else { value };
        match self {
            Element::Float(format) => value.round(format, how.direction, how.satfinite),
            Element::Ue8m0 => power_of_two(value, how.direction == Direction::Up, how.satfinite),
            Element::S2f6 => {
                let (low, high) = (i8::MIN.into(), i8::MAX.into());
                let units = value.scaled(FRACTION).to_integer(how.direction, low, high);
                u64::from(units.unwrap_or(high) as u8)
            }
        }
    }
}

/// `.ue8m0` of a magnitude: the largest power that is not above it, or with `up` the smallest that is not below it.
fn power_of_two(value: Value, up: bool, finite: bool) -> u64 {
    let largest = if finite { NAN - 1 } else { NAN };
    match value {
        Value::Nan => NAN,
        Value::Infinity { .. } => largest,
        Value::Zero { .. } => 0,
        Value::Finite(Exact { mantissa, exponent, .. }) => {
            let top = exponent + mantissa.ilog2() as i32;
            // All below the smallest power are that.
            let carry = up && top >= LEAST && !mantissa.is_power_of_two();
            let code = (top - LEAST + i32::from(carry)).max(0) as u64;
            if code < NAN { code } else { largest }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(element: Element, value: f32, direction: Direction, satfinite: bool, relu: bool) -> u64 {
        let value = Value::unpack(&Format::F32, value.to_bits().into());
        element.pack(value, Packing { direction, satfinite, relu })
    }

    #[test]
    fn powers_of_two_are_bounds_of_magnitudes() {
        let (tiny, normal) = (f32::from_bits(1), f32::MIN_POSITIVE);
        for (value, down, up, down_finite, up_finite) in [
            (0.0, 0, 0, 0, 0),
            (tiny, 0, 0, 0, 0),
            (normal / 2.0, 0, 0, 0, 0),
            (f32::from_bits(0x0040_0001), 0, 1, 0, 1),
            (normal, 1, 1, 1, 1),
            (1.0, 127, 127, 127, 127),
            (f32::from_bits(0x3f80_0001), 127, 128, 127, 128),
            (-1.5, 127, 128, 127, 128),
            (-4.0, 129, 129, 129, 129),
            (f32::MAX, 254, 255, 254, 254),
            (f32::INFINITY, 255, 255, 254, 254),
            (f32::NAN, 255, 255, 255, 255),
        ] {
            let found = [
                (Direction::Zero, false),
                (Direction::Up, false),
                (Direction::Zero, true),
                (Direction::Up, true),
            ]
            .map(|(direction, finite)| pack(Element::Ue8m0, value, direction, finite, false));
            assert_eq!(found, [down, up, down_finite, up_finite], "{value:e}");
        }
    }

    #[test]
    fn every_number_in_units_is_itself_and_others_are_rounded() {
        for units in i8::MIN..=i8::MAX {
            let value = f32::from(units) / 64.0;
            for direction in [Direction::Nearest, Direction::Zero] {
                assert_eq!(pack(Element::S2f6, value, direction, true, false), u64::from(units as u8));
                // Half of a unit more: ties are even.
                let more = f64::from(value) * 64.0 + 0.5;
                let rounded =
                    if direction == Direction::Zero { more.trunc() } else { more.round_ties_even() };
                let found = pack(Element::S2f6, value + 1.0 / 128.0, direction, true, false) as u8 as i8;
                assert_eq!(f64::from(found), rounded.min(127.0), "{value} {direction:?}");
            }
            assert_eq!(Element::S2f6.unpack(u64::from(units as u8)), {
                Value::integer(units.into()).scaled(-6)
            });
            let relu = pack(Element::S2f6, value, Direction::Nearest, true, true);
            assert_eq!(relu, u64::from(units.max(0) as u8));
        }
        let of = |value| pack(Element::S2f6, value, Direction::Nearest, true, false) as u8 as i8;
        assert_eq!(
            [2.0, -2.1, f32::INFINITY, f32::NEG_INFINITY, f32::NAN].map(of),
            [127, -128, 127, -128, 127]
        );
    }
}
