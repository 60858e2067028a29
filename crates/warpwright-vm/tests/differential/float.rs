//! Floating-point arithmetic of the evaluator, on values as their bits.
//!
//! It shares nothing with the VM: `rustc_apfloat` computes exactly and rounds once, and roots are taken
//! of integers. NaNs are where the ISA leaves a choice; [`nan`] and [`Format::nan`] state the one that
//! the VM documents.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::cmp::Ordering;
use warpwright_ptx::ir::{Rounding, Type};

/// A binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F16,
    BF16,
    F32,
    F64,
}

/// Runs `$body` with `$f` as the type of the format.
macro_rules! with {
    ($format:expr, $f:ident => $body:expr) => {
        match $format {
            Format::F16 => {
                type $f = Half;
                $body
            }
            Format::BF16 => {
                type $f = BFloat;
                $body
            }
            Format::F32 => {
                type $f = Single;
                $body
            }
            Format::F64 => {
                type $f = Double;
                $body
            }
        }
    };
}

impl Format {
    /// The format of a type, and of each element of a packed one.
    pub(crate) fn of(ty: Type) -> Format {
        match ty {
            Type::F16 | Type::F16X2 => Format::F16,
            Type::BF16 | Type::BF16X2 => Format::BF16,
            Type::F32 | Type::F32X2 => Format::F32,
            Type::F64 => Format::F64,
            other => panic!("no floating-point arithmetic on {other}"),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Format::F16 | Format::BF16 => 16,
            Format::F32 => 32,
            Format::F64 => 64,
        }
    }

    fn mantissa_bits(self) -> u32 {
        match self {
            Format::F16 => 10,
            Format::BF16 => 7,
            Format::F32 => 23,
            Format::F64 => 52,
        }
    }

    fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    fn infinity(self) -> u64 {
        (self.sign() - 1) & !((1 << self.mantissa_bits()) - 1)
    }

    /// What an operation without NaN operands yields where there is no number.
    pub(crate) fn nan(self) -> u64 {
        match self {
            Format::F16 | Format::BF16 => 0x7fff,
            Format::F32 => 0x7fff_ffff,
            Format::F64 => 0xfff8_0000_0000_0000,
        }
    }

    pub(crate) fn is_nan(self, x: u64) -> bool {
        x & (self.sign() - 1) > self.infinity()
    }

    pub(crate) fn is_infinite(self, x: u64) -> bool {
        x & (self.sign() - 1) == self.infinity()
    }

    fn is_negative(self, x: u64) -> bool {
        x & self.sign() != 0
    }

    fn is_subnormal(self, x: u64) -> bool {
        let magnitude = x & (self.sign() - 1);
        magnitude != 0 && magnitude < 1 << self.mantissa_bits()
    }

    pub(crate) fn one(self) -> u64 {
        with!(self, F => F::from_u128(1).value.to_bits() as u64)
    }

    /// Subnormal numbers become zeros of their sign.
    pub(crate) fn flush(self, ftz: bool, x: u64) -> u64 {
        if ftz && self.is_subnormal(x) { x & self.sign() } else { x }
    }
}

/// The rounding direction, nearest where none is said.
pub(crate) fn direction(rounding: Option<Rounding>) -> Round {
    match rounding {
        None | Some(Rounding::Rn | Rounding::Rni) => Round::NearestTiesToEven,
        Some(Rounding::Rz | Rounding::Rzi) => Round::TowardZero,
        Some(Rounding::Rm | Rounding::Rmi) => Round::TowardNegative,
        Some(Rounding::Rp | Rounding::Rpi) => Round::TowardPositive,
        Some(Rounding::Rna) => Round::NearestTiesToAway,
        Some(Rounding::Rs) => panic!("stochastic rounding is not generated"),
    }
}

/// The NaN that an operation on these operands yields, if one of them is NaN: in `f64` one of them, made
/// quiet; else the one NaN that arithmetic yields. A quotient prefers its first operand. All others take the
/// first one last.
fn nan(operation: Arithmetic, format: Format, operands: &[u64]) -> Option<u64> {
    let mut candidates = operands.to_vec();
    if !matches!(operation, Arithmetic::Div) {
        candidates.rotate_left(1);
    }
    let chosen = candidates.into_iter().find(|&x| format.is_nan(x))?;
    Some(if format == Format::F64 { chosen | 1 << 51 } else { format.nan() })
}

/// Whether a result, rounded to as many bits as the format has but with any exponent, is not zero and below the
/// smallest normal number.
fn is_tiny(operation: Arithmetic, format: Format, round: Round, operands: &[u64]) -> bool {
    with!(format, F => {
        let x: Vec<Quad> = (operands.iter())
            .map(|&x| F::from_bits(x.into()).convert(&mut false).value)
            .collect();
        // The exact result lies between the two, and on one of them if that has few bits.
        let within = |round| match operation {
            Arithmetic::Add => x[0].add_r(x[1], round).value,
            Arithmetic::Sub => x[0].sub_r(x[1], round).value,
            Arithmetic::Mul => x[0].mul_r(x[1], round).value,
            Arithmetic::Fma => x[0].mul_add_r(x[1], x[2], round).value,
            Arithmetic::Div => x[0].div_r(x[1], round).value,
            Arithmetic::Sqrt => x[0],
        };
        let (low, high) = (within(Round::TowardNegative), within(Round::TowardPositive));
        let negative = high.is_negative();
        let (inner, outer) = if negative { (-high, -low) } else { (low, high) };
        let normal: Quad = F::from_bits(1 << format.mantissa_bits()).convert(&mut false).value;
        let precision = format.mantissa_bits() as i32 + 1;
        let less = |power: i32| (normal - normal.scalbn(-power)).value;
        !outer.is_zero() && match round {
            Round::TowardZero => inner < normal,
            Round::TowardNegative if !negative => inner < normal,
            Round::TowardPositive if negative => inner < normal,
            Round::TowardNegative | Round::TowardPositive => outer <= less(precision),
            _ => inner < less(precision + 1),
        }
    })
}

/// What an operation does beside its arithmetic.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    pub(crate) rounding: Option<Rounding>,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
}

/// An arithmetic operation.
#[derive(Clone, Copy)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
}

/// `operation` on as many operands as it takes.
pub(crate) fn arithmetic(operation: Arithmetic, format: Format, mode: Mode, operands: &[u64]) -> u64 {
    let operands: Vec<u64> = operands.iter().map(|&x| format.flush(mode.ftz, x)).collect();
    let round = direction(mode.rounding);
    let raw = nan(operation, format, &operands).unwrap_or_else(|| {
        with!(format, F => {
            let x: Vec<F> = operands.iter().map(|&x| F::from_bits(x.into())).collect();
            let result = match operation {
                Arithmetic::Add => x[0].add_r(x[1], round).value,
                Arithmetic::Sub => x[0].sub_r(x[1], round).value,
                Arithmetic::Mul => x[0].mul_r(x[1], round).value,
                Arithmetic::Fma => x[0].mul_add_r(x[1], x[2], round).value,
                Arithmetic::Div => x[0].div_r(x[1], round).value,
                Arithmetic::Sqrt => F::from_bits(sqrt(format, round, operands[0]).into()),
            };
            if result.is_nan() { format.nan() } else { result.to_bits() as u64 }
        })
    });
    let number = !format.is_nan(raw) && !format.is_infinite(raw);
    let flushed = mode.ftz && number && is_tiny(operation, format, round, &operands);
    finish(format, mode, if flushed { raw & format.sign() } else { raw })
}

/// Flushing, saturation and clamping of a result.
fn finish(format: Format, mode: Mode, x: u64) -> u64 {
    let x = format.flush(mode.ftz, x);
    if mode.sat {
        saturate(format, x)
    } else if mode.relu {
        relu(format, x)
    } else {
        x
    }
}

/// Into [0, 1]; NaN and both zeros become +0.
pub(crate) fn saturate(format: Format, x: u64) -> u64 {
    if format.is_nan(x) || format.is_negative(x) { 0 } else { x.min(format.one()) }
}

/// Negative numbers become +0; NaN becomes the NaN of arithmetic.
pub(crate) fn relu(format: Format, x: u64) -> u64 {
    match x {
        x if format.is_nan(x) => format.nan(),
        x if format.is_negative(x) => 0,
        x => x,
    }
}

/// The root of a number that is not NaN, from the integer root of its significand.
fn sqrt(format: Format, round: Round, x: u64) -> u64 {
    if x & (format.sign() - 1) == 0 || x == format.infinity() {
        return x;
    }
    if format.is_negative(x) {
        return format.nan();
    }
    with!(format, F => {
        // Exact in the wider format, where nothing is subnormal.
        let wide: Quad = F::from_bits(x.into()).convert(&mut false).value;
        let exponent = wide.ilogb();
        // significand · 2^(2 · half), the significand an integer of 124 or 125 bits.
        let half = (exponent - 124).div_euclid(2);
        let significand = wide.scalbn(-2 * half).to_u128(128).value;
        let root = significand.isqrt();
        // Below the root's last bit, one bit says whether something is left. The root has 63 bits: more
        // than any of these formats keeps, fewer than the wide one does.
        let sticky = u128::from(root * root != significand);
        let root = Quad::from_u128(root << 1 | sticky).value.scalbn(half - 1);
        let result: F = root.convert_r(round, &mut false).value;
        result.to_bits() as u64
    })
}

/// The order of two numbers; `None` where one is NaN.
pub(crate) fn compare(format: Format, ftz: bool, a: u64, b: u64) -> Option<Ordering> {
    let (a, b) = (format.flush(ftz, a), format.flush(ftz, b));
    with!(format, F => F::from_bits(a.into()).partial_cmp(&F::from_bits(b.into())))
}

/// What `min` and `max` do beside comparing.
#[derive(Clone, Copy)]
pub(crate) struct Extremum {
    pub(crate) larger: bool,
    pub(crate) ftz: bool,
    pub(crate) nan: bool,
    pub(crate) xorsign: bool,
}

/// `min` or `max`, with -0 below +0.
pub(crate) fn extremum(format: Format, how: Extremum, a: u64, b: u64) -> u64 {
    let (a, b) = (format.flush(how.ftz, a), format.flush(how.ftz, b));
    let sign = (a ^ b) & format.sign();
    let magnitude = |x: u64| if how.xorsign { x & (format.sign() - 1) } else { x };
    let result = match (format.is_nan(a), format.is_nan(b)) {
        (false, false) => {
            let (a, b) = (magnitude(a), magnitude(b));
            let below = match compare(format, false, a, b) {
                Some(Ordering::Equal) => format.is_negative(a),
                order => order == Some(Ordering::Less),
            };
            if below == how.larger { b } else { a }
        }
        (true, true) if format == Format::F64 => return b | 1 << 51,
        (true, true) => return format.nan(),
        _ if how.nan => return format.nan(),
        (true, false) => magnitude(b),
        (false, true) => magnitude(a),
    };
    if how.xorsign { result | sign } else { result }
}

/// One format to another.
pub(crate) fn convert(to: Format, from: Format, round: Round, x: u64) -> u64 {
    if from.is_nan(x) {
        // Double precision keeps the sign and what it can of the payload, and makes it quiet.
        let payload = (x & (from.sign() - 1) & !from.infinity()) << (52 - from.mantissa_bits());
        let sign = if from.is_negative(x) { to.sign() } else { 0 };
        let quiet = 1 << (to.mantissa_bits() - 1);
        return match (to, from) {
            (Format::F64, _) | (_, Format::F64) => {
                sign | to.infinity() | quiet | payload >> (52 - to.mantissa_bits())
            }
            // Its upper half.
            (Format::F32, Format::BF16) => x << 16,
            _ => to.nan(),
        };
    }
    with!(from, A => with!(to, D => {
        let wide: Quad = A::from_bits(x.into()).convert(&mut false).value;
        let result: D = wide.convert_r(round, &mut false).value;
        result.to_bits() as u64
    }))
}

/// To an integral value of the same format.
pub(crate) fn integral(format: Format, round: Round, x: u64) -> u64 {
    if format.is_nan(x) {
        return if format == Format::F64 { x | 1 << 51 } else { format.nan() };
    }
    with!(format, F => F::from_bits(x.into()).round_to_integral(round).value.to_bits() as u64)
}

/// To an integer of `bits` bits, clamped. NaN is 0, or the middle of the range where one of the two has
/// 64 bits.
pub(crate) fn to_integer(format: Format, round: Round, x: u64, bits: u32, signed: bool) -> i128 {
    if format.is_nan(x) {
        let middle = 1i128 << (bits - 1);
        let wide = format == Format::F64 || bits == 64;
        return if !wide {
            0
        } else if signed {
            -middle
        } else {
            middle
        };
    }
    let (min, max) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    with!(format, F => F::from_bits(x.into()).to_i128_r(128, round, &mut false).value).clamp(min, max)
}

/// From an integer.
pub(crate) fn of_integer(format: Format, round: Round, x: i128) -> u64 {
    with!(format, F => F::from_i128_r(x, round).value.to_bits() as u64)
}

/// The arithmetic here against the host's, which rounds to nearest.
#[test]
fn agrees_with_the_host() {
    let mut random = crate::random::Random::new(7);
    let mode = Mode::default();
    for _ in 0..20_000 {
        let [a, b, c] = [0; 3].map(|_| crate::generate::interesting(&mut random, 32));
        let [x, y, z] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
        let same = |operation, operands: &[u64], host: f32| {
            let ours = arithmetic(operation, Format::F32, mode, operands);
            assert!(
                ours == u64::from(host.to_bits()) || host.is_nan() && Format::F32.is_nan(ours),
                "{operands:x?}: {ours:x} {host}"
            );
        };
        same(Arithmetic::Add, &[a, b], x + y);
        same(Arithmetic::Mul, &[a, b], x * y);
        same(Arithmetic::Div, &[a, b], x / y);
        same(Arithmetic::Fma, &[a, b, c], x.mul_add(y, z));
        same(Arithmetic::Sqrt, &[a], x.sqrt());
    }
}
