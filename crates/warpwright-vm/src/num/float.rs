//! Arithmetic on `.f32` and `.f64`.
//!
//! Operations that round to nearest use the host's arithmetic, with PTX's rules for NaN, subnormals and saturation
//! around it. They have no branches, so that loops over lanes become vector code. The other directions go through
//! [`exact`](super::exact), except for sums and products of `.f32`, which doubles represent.
//!
//! The ISA leaves open which NaN an operation returns; here it is the one of NVIDIA's hardware. In `.f32` that is
//! always [`NAN_F32`]. An `.f64` operation returns one of its NaN operands, made quiet, or [`NAN_F64`] if no operand
//! is NaN: of a sum or a product the second, of `fma` the second, then the third, of a quotient the first. (NVIDIA's
//! compiler sometimes exchanges operands before.)
//!
//! `FTZ` is the modifier `.ftz`: subnormal operands and results become zeros of their sign. A result counts as
//! subnormal if it is below the smallest normal number after it is rounded as if exponents had no lower bound, as on
//! NVIDIA's hardware: what would become that number only because subnormal numbers have fewer bits is flushed. `SAT`
//! is `.sat`: the result is limited to `[0, 1]`, and NaN becomes plus zero.

use super::exact::{Direction, Format, Value};

/// The bits of the NaN that `.f32` operations return.
pub const NAN_F32: u32 = 0x7fff_ffff;

/// The bits of the NaN that `.f64` operations on numbers return.
pub const NAN_F64: u64 = 0xfff8_0000_0000_0000;

const SIGN_F32: u32 = 0x8000_0000;
const EXPONENT_F32: u32 = 0x7f80_0000;
/// What makes a NaN of `.f64` quiet.
pub const QUIET_F64: u64 = 0x0008_0000_0000_0000;

/// Replaces a subnormal number by the zero of its sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    let keep = if bits & EXPONENT_F32 == 0 { SIGN_F32 } else { u32::MAX };
    f32::from_bits(bits & keep)
}

/// [`flush`] if `FTZ` is true.
#[inline(always)]
pub fn flush_if<const FTZ: bool>(x: f32) -> f32 {
    if FTZ { flush(x) } else { x }
}

/// Replaces any NaN by [`NAN_F32`].
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    // By bits: between two NaNs of floating-point type the optimiser may choose.
    let bits = x.to_bits();
    f32::from_bits(if bits & !SIGN_F32 > EXPONENT_F32 { NAN_F32 } else { bits })
}

/// Limits to `[0, 1]`; NaN becomes plus zero.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// [`saturate`] in double precision.
#[inline(always)]
pub fn saturate_f64(x: f64) -> f64 {
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// A power of two: a product that may be subnormal is normal after both factors are multiplied by it.
pub const LARGER: f32 = (1u64 << 32) as f32;

/// `x`, or a zero of its sign if `larger`, which is the same result multiplied by the square of [`LARGER`] before it
/// was rounded, is that of a subnormal number. Where `larger` is infinite or NaN because a factor of it is too large,
/// the result is zero or far from subnormal.
#[inline(always)]
fn flush_by(x: f32, larger: f32) -> f32 {
    let tiny = larger.abs() < f32::MIN_POSITIVE * LARGER * LARGER;
    let keep = if tiny { SIGN_F32 } else { u32::MAX };
    f32::from_bits(x.to_bits() & keep)
}

/// Finishes a result: flushes it, limits it, and makes its NaN canonical.
#[inline(always)]
pub fn finish<const FTZ: bool, const SAT: bool>(x: f32) -> f32 {
    let x = flush_if::<FTZ>(x);
    if SAT { saturate(x) } else { canonical(x) }
}

/// `add.rn.f32`.
#[inline(always)]
pub fn add<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    finish::<FTZ, SAT>(flush_if::<FTZ>(a) + flush_if::<FTZ>(b))
}

/// `sub.rn.f32`.
#[inline(always)]
pub fn sub<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    finish::<FTZ, SAT>(flush_if::<FTZ>(a) - flush_if::<FTZ>(b))
}

/// `mul.rn.f32`.
#[inline(always)]
pub fn mul<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let product = if FTZ { flush_by(a * b, (a * LARGER) * (b * LARGER)) } else { a * b };
    finish::<FTZ, SAT>(product)
}

/// `fma.rn.f32`, and `mad.rn.f32`.
#[inline(always)]
pub fn fma<const FTZ: bool, const SAT: bool>(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b), flush_if::<FTZ>(c));
    let larger = || (a * LARGER).mul_add(b * LARGER, c * LARGER * LARGER);
    let sum = if FTZ { flush_by(a.mul_add(b, c), larger()) } else { a.mul_add(b, c) };
    finish::<FTZ, SAT>(sum)
}

/// `div.rn.f32`; it is also within the error of `div.full.f32`.
#[inline(always)]
pub fn div<const FTZ: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let quotient = if FTZ { flush_by(a / b, a * LARGER * LARGER / b) } else { a / b };
    finish::<FTZ, false>(quotient)
}

/// `rcp.rn.f32`; it is also within the error of `rcp.approx.f32`.
#[inline(always)]
pub fn rcp<const FTZ: bool>(a: f32) -> f32 {
    div::<FTZ>(1.0, a)
}

/// `sqrt.rn.f32`; it is also within the error of `sqrt.approx.f32`.
#[inline(always)]
pub fn sqrt<const FTZ: bool>(a: f32) -> f32 {
    finish::<FTZ, false>(flush_if::<FTZ>(a).sqrt())
}

/// `abs.f32`.
#[inline(always)]
pub fn abs<const FTZ: bool>(a: f32) -> f32 {
    canonical(flush_if::<FTZ>(a).abs())
}

/// `neg.f32`.
#[inline(always)]
pub fn neg<const FTZ: bool>(a: f32) -> f32 {
    canonical(-flush_if::<FTZ>(a))
}

/// `copysign.f32`: the magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign(a: f32, b: f32) -> f32 {
    f32::from_bits(b.to_bits() & !SIGN_F32 | a.to_bits() & SIGN_F32)
}

/// `copysign.f64`: the magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign_f64(a: f64, b: f64) -> f64 {
    const SIGN: u64 = 1 << 63;
    f64::from_bits(b.to_bits() & !SIGN | a.to_bits() & SIGN)
}

/// A NaN with its payload, made quiet.
#[inline(always)]
pub fn quiet(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | QUIET_F64)
}

/// The result of an operation; if it is NaN, the first of two operands that is NaN, made quiet.
#[inline(always)]
pub fn propagate(result: f64, a: f64, b: f64) -> f64 {
    // By bits: between two NaNs of floating-point type the optimiser may choose.
    let is_nan = |bits: u64| bits & !(1 << 63) > 0x7ff0_0000_0000_0000;
    let (a, b, bits) = (a.to_bits(), b.to_bits(), result.to_bits());
    let nan = if is_nan(b) { b | QUIET_F64 } else { NAN_F64 };
    let nan = if is_nan(a) { a | QUIET_F64 } else { nan };
    f64::from_bits(if is_nan(bits) { nan } else { bits })
}

/// `add.rn.f64`.
#[inline(always)]
pub fn add_f64(a: f64, b: f64) -> f64 {
    propagate(a + b, b, a)
}

/// `sub.rn.f64`.
#[inline(always)]
pub fn sub_f64(a: f64, b: f64) -> f64 {
    propagate(a - b, b, a)
}

/// `mul.rn.f64`.
#[inline(always)]
pub fn mul_f64(a: f64, b: f64) -> f64 {
    propagate(a * b, b, a)
}

/// `fma.rn.f64`, and `mad.rn.f64`.
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    let result = a.mul_add(b, c);
    propagate(result, if b.is_nan() { b } else { c }, a)
}

/// `div.rn.f64`.
#[inline(always)]
pub fn div_f64(a: f64, b: f64) -> f64 {
    propagate(a / b, a, b)
}

/// `rcp.rn.f64`.
#[inline(always)]
pub fn rcp_f64(a: f64) -> f64 {
    propagate(1.0 / a, a, a)
}

/// `sqrt.rn.f64`.
#[inline(always)]
pub fn sqrt_f64(a: f64) -> f64 {
    propagate(a.sqrt(), a, a)
}

/// `abs.f64`: a NaN keeps its sign and payload, and is made quiet.
#[inline(always)]
pub fn abs_f64(a: f64) -> f64 {
    propagate(f64::from_bits(a.to_bits() & !(1 << 63)), a, a)
}

/// `neg.f64`: a NaN keeps its sign and payload, and is made quiet.
#[inline(always)]
pub fn neg_f64(a: f64) -> f64 {
    propagate(f64::from_bits(a.to_bits() ^ (1 << 63)), a, a)
}

/// `atom.global.add.f64` and `red`: memory takes the operand if it is NaN, or stays NaN, without any change.
#[inline(always)]
pub fn add_to_memory_f64(old: u64, b: u64) -> u64 {
    let is_nan = |bits: u64| f64::from_bits(bits).is_nan();
    match (is_nan(old), is_nan(b)) {
        (_, true) => b,
        (true, false) => old,
        (false, false) => add_f64(f64::from_bits(old), f64::from_bits(b)).to_bits(),
    }
}

/// An operation that can be rounded in any direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a · b`.
    Mul,
    /// `a / b`.
    Div,
    /// `1 / a`.
    Rcp,
    /// `√a`.
    Sqrt,
    /// `a · b + c`.
    Fma,
}

impl Operation {
    /// The exact result, up to differences that do not affect rounding to nearest or in `direction`.
    fn apply(self, [a, b, c]: [Value; 3], direction: Direction) -> Value {
        match self {
            Operation::Add => a.add(b, direction),
            Operation::Sub => a.sub(b, direction),
            Operation::Mul => a.times(b),
            Operation::Div => a.over(b),
            Operation::Rcp => Value::integer(1).over(a),
            Operation::Sqrt => a.sqrt(),
            Operation::Fma => a.times(b).add(c, direction),
        }
    }

    /// The operands that it reads, in the order in which an `.f64` operation looks for a NaN to return.
    fn nan_order(self) -> &'static [usize] {
        match self {
            Operation::Rcp | Operation::Sqrt => &[0],
            Operation::Div => &[0, 1],
            Operation::Add | Operation::Sub | Operation::Mul => &[1, 0],
            Operation::Fma => &[1, 2, 0],
        }
    }
}

/// An operation of any format on the bits of its operands, rounded once. Operands that it does not read are ignored.
pub fn directed(operation: Operation, format: &Format, direction: Direction, operands: [u64; 3]) -> u64 {
    let values = operands.map(|bits| Value::unpack(format, bits));
    operation.apply(values, direction).round(format, direction, false)
}

/// The exact result as the sum of two doubles, the second no more than half a unit in the last place of
/// the first. `None` for operations whose results have no such form.
fn exact_pair(operation: Operation, operands: [f32; 3]) -> Option<(f64, f64)> {
    let [a, b, c] = operands.map(f64::from);
    // Neither products nor sums of them leave the range in which this is exact.
    let sum = |x: f64, y: f64| {
        let high = x + y;
        let rest = high - x;
        (high, (x - (high - rest)) + (y - rest))
    };
    match operation {
        Operation::Add => Some(sum(a, b)),
        Operation::Sub => Some(sum(a, -b)),
        Operation::Mul => Some((a * b, 0.0)),
        Operation::Fma => Some(sum(a * b, c)),
        Operation::Div | Operation::Rcp | Operation::Sqrt => None,
    }
}

/// The sum of two doubles, as [`exact_pair`] gives them, rounded toward zero, down or up. `None` for other
/// directions, and for zeros, infinities and NaN, which have rules of their own.
fn round_pair((high, low): (f64, f64), direction: Direction) -> Option<f32> {
    if high == 0.0 || !high.is_finite() {
        return None;
    }
    let nearest = high as f32;
    let wide = f64::from(nearest);
    let is_above = wide > high || wide == high && low < 0.0;
    let is_below = wide < high || wide == high && low > 0.0;
    match direction {
        Direction::Down if is_above => Some(nearest.next_down()),
        Direction::Up if is_below => Some(nearest.next_up()),
        Direction::Zero if is_above && high > 0.0 => Some(nearest.next_down()),
        Direction::Zero if is_below && high < 0.0 => Some(nearest.next_up()),
        Direction::Zero | Direction::Down | Direction::Up => Some(nearest),
        Direction::Nearest | Direction::NearestAway => None,
    }
}

/// An operation on `.f32` in any direction, with `.ftz` and `.sat`.
pub fn directed_f32(
    operation: Operation,
    direction: Direction,
    ftz: bool,
    sat: bool,
    operands: [f32; 3],
) -> f32 {
    let flushed = |x: f32| if ftz { flush(x) } else { x };
    let operands = [flushed(operands[0]), flushed(operands[1]), flushed(operands[2])];
    let rounded = exact_pair(operation, operands).and_then(|pair| round_pair(pair, direction));
    let bits = operands.map(|x| u64::from(x.to_bits()));
    let result = flushed(
        rounded.unwrap_or_else(|| f32::from_bits(directed(operation, &Format::F32, direction, bits) as u32)),
    );
    let result = if ftz && result.abs() == f32::MIN_POSITIVE {
        let exact = operation.apply(bits.map(|bits| Value::unpack(&Format::F32, bits)), direction);
        if exact.is_tiny(&Format::F32, direction) { 0f32.copysign(result) } else { result }
    } else {
        result
    };
    if sat { saturate(result) } else { result }
}

/// An operation on `.f64` in any direction.
pub fn directed_f64(operation: Operation, direction: Direction, operands: [f64; 3]) -> f64 {
    match operation.nan_order().iter().find(|&&i| operands[i].is_nan()) {
        Some(&i) => quiet(operands[i]),
        None => f64::from_bits(directed(operation, &Format::F64, direction, operands.map(f64::to_bits))),
    }
}
