//! Exact arithmetic, and the one function that rounds a value to a format.
//!
//! This module computes everything with a rounding direction other than the nearest, or in a format that the host
//! lacks. Operands are split into a sign, an integer and a power of two, combined exactly (except for a bit that
//! marks dropped small bits), and rounded once.
//!
//! It is slower than the host's arithmetic, which [`float`](super::float) and [`half`](super::half) use where it
//! gives the same results.

/// The rounding direction for a result that a format cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the nearest value; ties go to the one whose last bit is 0 (`.rn`).
    Nearest,
    /// To the nearest value; ties go away from zero (`.rna`).
    NearestAway,
    /// Toward zero (`.rz`).
    Zero,
    /// Toward minus infinity (`.rm`).
    Down,
    /// Toward plus infinity (`.rp`).
    Up,
}

/// A binary floating-point format of up to 64 bits: sign, exponent, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Bits of the whole number.
    pub width: u32,
    /// Significant bits, including the implied one.
    pub precision: u32,
    /// Exponent of the smallest normal number.
    pub min_exponent: i32,
    /// Bits of the largest finite magnitude.
    pub largest: u64,
    /// Bits of plus infinity, if the format has it.
    pub infinity: Option<u64>,
    /// Bits of the NaN that operations return, if the format has one.
    pub nan: Option<u64>,
    /// Number of bits by which the number is shifted up in its word.
    pub shift: u32,
}

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $width:expr, $precision:expr, $min_exponent:expr, $largest:expr, $infinity:expr,
        $nan:expr, $shift:expr;)*) => {
        impl Format {
            $($(#[$doc])*
            pub const $name: Format = Format {
                width: $width,
                precision: $precision,
                min_exponent: $min_exponent,
                largest: $largest,
                infinity: $infinity,
                nan: $nan,
                shift: $shift,
            };)*
        }
    };
}

// In the order of the fields.
formats! {
    /// IEEE 754 binary64.
    F64 = 64, 53, -1022, 0x7fef_ffff_ffff_ffff, Some(0x7ff0_0000_0000_0000), Some(0xfff8_0000_0000_0000), 0;
    /// IEEE 754 binary32.
    F32 = 32, 24, -126, 0x7f7f_ffff, Some(0x7f80_0000), Some(0x7fff_ffff), 0;
    /// The tensor cores' format of 19 bits, in the upper bits of a word.
    TF32 = 19, 11, -126, 0x3_fbff, Some(0x3_fc00), Some(0x3_ffff), 13;
    /// IEEE 754 binary16.
    F16 = 16, 11, -14, 0x7bff, Some(0x7c00), Some(0x7fff), 0;
    /// The upper half of binary32.
    BF16 = 16, 8, -126, 0x7f7f, Some(0x7f80), Some(0x7fff), 0;
    /// FP8 with 4 bits of exponent and no infinity.
    E4M3 = 8, 4, -6, 0x7e, None, Some(0x7f), 0;
    /// FP8 with 5 bits of exponent.
    E5M2 = 8, 3, -14, 0x7b, Some(0x7c), Some(0x7f), 0;
    /// FP6 with 2 bits of exponent: finite values only.
    E2M3 = 6, 4, 0, 0x1f, None, None, 0;
    /// FP6 with 3 bits of exponent: finite values only.
    E3M2 = 6, 3, -2, 0x1f, None, None, 0;
    /// FP4: finite values only.
    E2M1 = 4, 2, 0, 0x7, None, None, 0;
}

impl Format {
    const fn sign_bit(&self) -> u64 {
        1 << (self.width - 1)
    }

    /// Bits of a number of this sign and magnitude, in their place in the word.
    const fn encode(&self, negative: bool, magnitude: u64) -> u64 {
        (magnitude | if negative { self.sign_bit() } else { 0 }) << self.shift
    }

    /// The NaN that operations return; the largest positive number if the format has none.
    pub const fn nan_bits(&self) -> u64 {
        match self.nan {
            Some(nan) => nan << self.shift,
            None => self.largest << self.shift,
        }
    }

    /// Whether the bits are those of a subnormal number: a zero exponent field, and not zero.
    pub const fn is_subnormal(&self, bits: u64) -> bool {
        let magnitude = (bits >> self.shift) & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> (self.precision - 1) == 0
    }
}

/// `mantissa · 2^exponent`, with a sign. The mantissa is not zero and has at most 127 bits. If bits were dropped, its
/// last bit is set, and it still has enough bits to be rounded correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Whether it is below zero.
    pub negative: bool,
    /// The significant bits.
    pub mantissa: u128,
    /// The weight of the mantissa's last bit.
    pub exponent: i32,
}

/// The meaning of the bits of a floating-point number or integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity.
    Infinity {
        /// Whether it is minus infinity.
        negative: bool,
    },
    /// Zero.
    Zero {
        /// Its sign.
        negative: bool,
    },
    /// Any other number.
    Finite(Exact),
}

/// The bit to which the mantissas of a sum are aligned: two more fit above it.
const TOP: u32 = 125;

impl Exact {
    /// Position of the first one bit.
    fn top(&self) -> u32 {
        127 - self.mantissa.leading_zeros()
    }

    /// The same value with the first one bit of the mantissa at `TOP`, or below where it is higher.
    fn aligned(self) -> Exact {
        let up = TOP.saturating_sub(self.top());
        Exact { mantissa: self.mantissa << up, exponent: self.exponent - up as i32, ..self }
    }
}

/// Shifts right; what is shifted out leaves its trace in the last bit.
fn shift_right_sticky(mantissa: u128, by: u32) -> u128 {
    match by {
        0 => mantissa,
        1..=127 => mantissa >> by | u128::from(mantissa << (128 - by) != 0),
        _ => u128::from(mantissa != 0),
    }
}

/// The mantissa over `2^by`, rounded to an integer.
fn round_shift(negative: bool, mantissa: u128, by: u32, direction: Direction) -> u128 {
    // Beyond, all that counts is that something is there, and that it is less than a half.
    let (mantissa, by) = if by > 127 { (u128::from(mantissa != 0), 2) } else { (mantissa, by) };
    if by == 0 {
        return mantissa;
    }
    let (kept, dropped, half) = (mantissa >> by, mantissa & ((1 << by) - 1), 1 << (by - 1));
    let up = match direction {
        Direction::Nearest => dropped > half || dropped == half && kept & 1 == 1,
        Direction::NearestAway => dropped >= half,
        Direction::Zero => false,
        Direction::Down => negative && dropped != 0,
        Direction::Up => !negative && dropped != 0,
    };
    kept + u128::from(up)
}

impl Value {
    /// The meaning of the bits of a number of a format.
    pub fn unpack(format: &Format, bits: u64) -> Value {
        let code = bits >> format.shift;
        let negative = code & format.sign_bit() != 0;
        let magnitude = code & (format.sign_bit() - 1);
        if magnitude > format.largest {
            let infinite = format.infinity == Some(magnitude);
            return if infinite { Value::Infinity { negative } } else { Value::Nan };
        }
        if magnitude == 0 {
            return Value::Zero { negative };
        }
        let fraction_bits = format.precision - 1;
        let field = (magnitude >> fraction_bits) as i32;
        let fraction = magnitude & ((1 << fraction_bits) - 1);
        let implied = u64::from(field != 0) << fraction_bits;
        Value::Finite(Exact {
            negative,
            mantissa: (fraction | implied).into(),
            exponent: format.min_exponent + (field - 1).max(0) - fraction_bits as i32,
        })
    }

    /// An integer. Zero is plus zero.
    pub fn integer(value: i128) -> Value {
        match value {
            0 => Value::Zero { negative: false },
            _ => Value::Finite(Exact { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 }),
        }
    }

    /// Whether the sign is minus; false for NaN.
    pub fn is_negative(self) -> bool {
        match self {
            Value::Nan => false,
            Value::Infinity { negative } | Value::Zero { negative } => negative,
            Value::Finite(exact) => exact.negative,
        }
    }

    fn negated(self) -> Value {
        match self {
            Value::Nan => Value::Nan,
            Value::Infinity { negative } => Value::Infinity { negative: !negative },
            Value::Zero { negative } => Value::Zero { negative: !negative },
            Value::Finite(exact) => Value::Finite(Exact { negative: !exact.negative, ..exact }),
        }
    }

    /// `self + other`. The direction determines the sign of a zero that is the sum of opposites.
    pub fn add(self, other: Value, direction: Direction) -> Value {
        use Value::*;
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinity { negative: a }, Infinity { negative: b }) if a != b => Nan,
            (Infinity { .. }, _) => self,
            (_, Infinity { .. }) => other,
            (Zero { negative: a }, Zero { negative: b }) => {
                Zero { negative: if a == b { a } else { direction == Direction::Down } }
            }
            (Zero { .. }, Finite(_)) => other,
            (Finite(_), Zero { .. }) => self,
            (Finite(a), Finite(b)) => add_finite(a, b, direction),
        }
    }

    /// `self - other`.
    pub fn sub(self, other: Value, direction: Direction) -> Value {
        self.add(other.negated(), direction)
    }

    /// `self · other`: exact, for mantissas of up to 63 bits.
    pub fn times(self, other: Value) -> Value {
        use Value::*;
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinity { .. }, Zero { .. }) | (Zero { .. }, Infinity { .. }) => Nan,
            (Infinity { .. }, _) | (_, Infinity { .. }) => Infinity { negative },
            (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
            (Finite(a), Finite(b)) => Finite(Exact {
                negative,
                mantissa: a.mantissa * b.mantissa,
                exponent: a.exponent + b.exponent,
            }),
        }
    }

    /// `self · 2^by`: exact.
    pub fn scaled(self, by: i32) -> Value {
        match self {
            Value::Finite(exact) => Value::Finite(Exact { exponent: exact.exponent + by, ..exact }),
            _ => self,
        }
    }

    /// `self / other`, for mantissas of up to 63 bits.
    pub fn over(self, other: Value) -> Value {
        use Value::*;
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinity { .. }, Infinity { .. }) | (Zero { .. }, Zero { .. }) => Nan,
            (Infinity { .. }, _) | (_, Zero { .. }) => Infinity { negative },
            (Zero { .. }, _) | (_, Infinity { .. }) => Zero { negative },
            (Finite(a), Finite(b)) => {
                let a = a.aligned();
                let rest = a.mantissa % b.mantissa != 0;
                Finite(Exact {
                    negative,
                    mantissa: (a.mantissa / b.mantissa) | u128::from(rest),
                    exponent: a.exponent - b.exponent,
                })
            }
        }
    }

    /// The square root.
    pub fn sqrt(self) -> Value {
        use Value::*;
        match self {
            Nan => Nan,
            Zero { .. } => self,
            _ if self.is_negative() => Nan,
            Infinity { .. } => self,
            Finite(a) => {
                let a = a.aligned();
                let odd = a.exponent & 1;
                let (mantissa, exponent) = (a.mantissa << odd, a.exponent - odd);
                let root = mantissa.isqrt();
                let rest = root * root != mantissa;
                // The root has 63 bits; one more makes room for the trace of the rest.
                Finite(Exact {
                    negative: false,
                    mantissa: root << 1 | u128::from(rest),
                    exponent: exponent / 2 - 1,
                })
            }
        }
    }

    /// The value rounded to an integer. A zero keeps its sign.
    pub fn integral(self, direction: Direction) -> Value {
        let Value::Finite(Exact { negative, mantissa, exponent }) = self else { return self };
        if exponent >= 0 {
            return self;
        }
        match round_shift(negative, mantissa, exponent.unsigned_abs(), direction) {
            0 => Value::Zero { negative },
            mantissa => Value::Finite(Exact { negative, mantissa, exponent: 0 }),
        }
    }

    /// The value rounded to an integer and limited to a range; `None` for NaN.
    pub fn to_integer(self, direction: Direction, low: i128, high: i128) -> Option<i128> {
        Some(match self.integral(direction) {
            Value::Nan => return None,
            Value::Zero { .. } => 0i128.clamp(low, high),
            Value::Infinity { negative: true } => low,
            Value::Infinity { negative: false } => high,
            Value::Finite(Exact { negative, mantissa, exponent }) => {
                // The ranges have 64 bits: beyond, the value is on one side.
                let exponent = exponent.unsigned_abs();
                let fits = exponent < mantissa.leading_zeros().saturating_sub(1);
                match (fits, negative) {
                    (true, false) => ((mantissa << exponent) as i128).clamp(low, high),
                    (true, true) => (-((mantissa << exponent) as i128)).clamp(low, high),
                    (false, true) => low,
                    (false, false) => high,
                }
            }
        })
    }

    /// The value rounded to a format as if exponents had no upper bound: away from zero if the sum of a `random` number
    /// of `bits` bits and of as many bits from the highest one on that is cut off carries.
    pub fn rounded_at_random(self, format: &Format, random: u32, bits: u32) -> Value {
        let Value::Finite(Exact { negative, mantissa, exponent }) = self else { return self };
        let leading = exponent + mantissa.ilog2() as i32;
        let last = leading.max(format.min_exponent) - (format.precision as i32 - 1);
        let by = last - bits as i32 - exponent;
        let units = if by <= 0 {
            mantissa << by.unsigned_abs()
        } else {
            mantissa.checked_shr(by.unsigned_abs()).unwrap_or(0)
        };
        match (units + u128::from(random)) >> bits {
            0 => Value::Zero { negative },
            mantissa => Value::Finite(Exact { negative, mantissa, exponent: last }),
        }
    }

    /// Whether the value is below the smallest normal number of a format, after it is rounded as if exponents had no
    /// lower bound. False for zero.
    pub fn is_tiny(self, format: &Format, direction: Direction) -> bool {
        let Value::Finite(exact) = self else { return false };
        let below = format.min_exponent - (exact.exponent + exact.top() as i32);
        // One below, rounding may carry into the smallest normal number.
        let by = exact.top().saturating_sub(format.precision - 1);
        let carries = || round_shift(exact.negative, exact.mantissa, by, direction) >> format.precision != 0;
        below > 1 || below == 1 && !carries()
    }

    /// The bits of the value, rounded to a format. With `finite`, values that are too large, including infinity,
    /// become the largest finite number of their sign.
    pub fn round(self, format: &Format, direction: Direction, finite: bool) -> u64 {
        match self {
            Value::Nan => format.nan_bits(),
            Value::Zero { negative } => format.encode(negative, 0),
            Value::Infinity { negative } => {
                let magnitude = format.infinity.filter(|_| !finite).unwrap_or(format.largest);
                format.encode(negative, magnitude)
            }
            Value::Finite(exact) => round_finite(exact, format, direction, finite),
        }
    }
}

fn add_finite(a: Exact, b: Exact, direction: Direction) -> Value {
    let (a, b) = (a.aligned(), b.aligned());
    let (a, b) = if (a.exponent, a.mantissa) < (b.exponent, b.mantissa) { (b, a) } else { (a, b) };
    let small = shift_right_sticky(b.mantissa, a.exponent.abs_diff(b.exponent));
    let mantissa = if a.negative == b.negative { a.mantissa + small } else { a.mantissa - small };
    match mantissa {
        0 => Value::Zero { negative: direction == Direction::Down },
        _ => Value::Finite(Exact { mantissa, ..a }),
    }
}

fn round_finite(exact: Exact, format: &Format, direction: Direction, finite: bool) -> u64 {
    let Exact { negative, mantissa, exponent } = exact;
    let fraction_bits = format.precision - 1;
    // The weight of the last bit of the result: that of its exponent, or of the subnormals.
    let leading = exponent + exact.top() as i32;
    let last = leading.max(format.min_exponent) - fraction_bits as i32;
    let by = last - exponent;
    let kept = if by <= 0 {
        mantissa << by.unsigned_abs()
    } else {
        round_shift(negative, mantissa, by.unsigned_abs(), direction)
    };
    // A carry out of the fraction goes up into the exponent; a subnormal may become normal.
    let field = (last + fraction_bits as i32 - format.min_exponent) as u64;
    let magnitude = (field << fraction_bits) + kept as u64;
    if magnitude <= format.largest {
        return format.encode(negative, magnitude);
    }
    let outward = match direction {
        Direction::Nearest | Direction::NearestAway => true,
        Direction::Zero => false,
        Direction::Down => negative,
        Direction::Up => !negative,
    };
    match format.infinity {
        Some(infinity) if outward && !finite => format.encode(negative, infinity),
        _ => format.encode(negative, format.largest),
    }
}
