//! Division by values known when the kernel is built.
//!
//! `ptxas` divides by a constant as by any other number, with a reciprocal and corrections, which takes some twenty
//! instructions. Here a power of two becomes a shift. Any other divisor of an unsigned number becomes a
//! multiplication whose upper half is used (Granlund and Montgomery, "Division by invariant integers using
//! multiplication", 1994).

use super::reg::{Binary, IntoReg, Reg};
use super::state::{Loc, State};
use super::types::*;
use std::ops;
use std::panic::Location;
use warpwright_ptx::ir::{self, Imm, Type};

/// Elements that can be divided by one another.
pub trait Divide: Number {
    /// The factor that divides by `divisor` exactly, for powers of two.
    #[doc(hidden)]
    fn inverse(_divisor: Imm) -> Option<Imm> {
        None
    }
}

macro_rules! divide {
    ($($ty:ty)*) => {
        $(impl Divide for $ty {})*
    };
}
divide!(u16 i16 u32 i32 u64 i64);

impl Divide for f32 {
    fn inverse(divisor: Imm) -> Option<Imm> {
        let Imm::F32(bits) = divisor else { return None };
        let inverse = 1.0 / f32::from_bits(bits);
        (bits & 0x7f_ffff == 0 && inverse.is_normal()).then(|| Imm::F32(inverse.to_bits()))
    }
}

impl Divide for f64 {
    fn inverse(divisor: Imm) -> Option<Imm> {
        let Imm::F64(bits) = divisor else { return None };
        let inverse = 1.0 / f64::from_bits(bits);
        (bits & ((1 << 52) - 1) == 0 && inverse.is_normal()).then(|| Imm::F64(inverse.to_bits()))
    }
}

impl<'k, T: Divide, R: IntoReg<'k, T>> ops::Div<R> for Reg<'k, T> {
    type Output = Reg<'k, T>;
    #[track_caller]
    fn div(self, other: R) -> Reg<'k, T> {
        let loc = Location::caller();
        let other = other.into_reg(self.k, loc);
        let constant = self.k.state().constant_of(other.id);
        match constant.and_then(T::inverse) {
            Some(inverse) => self.binary(Binary::Mul, self.k.constant::<T>(inverse), loc),
            None => self.binary(Binary::Div, other, loc),
        }
    }
}

/// How to divide 32-bit numbers by a number that is not a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Magic {
    factor: u32,
    shift: u32,
    /// The factor has a 33rd bit: half of the number is added to the product.
    long: bool,
}

impl Magic {
    /// For a divisor of at least 3.
    fn new(divisor: u32) -> Self {
        let bits = u32::BITS - (divisor - 1).leading_zeros();
        for shift in 0..bits {
            let power = 1u64 << (32 + shift);
            let factor = power.div_ceil(divisor.into());
            // The product is too large by less than the quotient's distance to the next one.
            if factor <= u64::from(u32::MAX) && factor * u64::from(divisor) - power <= 1 << shift {
                return Magic { factor: factor as u32, shift, long: false };
            }
        }
        let over = ((1u64 << bits) - u64::from(divisor)) << 32;
        Magic { factor: (over / u64::from(divisor)) as u32 + 1, shift: bits - 1, long: true }
    }
}

impl State {
    /// An unsigned quotient or remainder by a constant.
    pub(super) fn divided(
        &mut self,
        op: Binary,
        ty: Type,
        a: ir::Reg,
        b: ir::Reg,
        loc: Loc,
    ) -> Option<ir::Reg> {
        if !matches!(op, Binary::Div | Binary::Rem) || !matches!(ty, Type::U16 | Type::U32 | Type::U64) {
            return None;
        }
        let divisor = self.int_of(b).filter(|&divisor| divisor > 0)?;
        if divisor & (divisor - 1) == 0 {
            let (op, other) = match op {
                Binary::Div => {
                    (Binary::Shr, self.constant(Type::U32, Imm::Int(divisor.trailing_zeros().into())))
                }
                _ => (Binary::And, self.constant(ty, Imm::Int(divisor - 1))),
            };
            return Some(self.binary(op, ty, a, other, loc));
        }
        if ty != Type::U32 {
            return None;
        }
        let Magic { factor, shift, long } = Magic::new(u32::try_from(divisor).ok()?);
        let mut with = |op, x, constant: u32| {
            let constant = self.constant(ty, Imm::Int(constant.into()));
            self.binary(op, ty, x, constant, loc)
        };
        let product = with(Binary::MulHi, a, factor);
        let quotient = if long {
            let rest = self.binary(Binary::Sub, ty, a, product, loc);
            let one = self.constant(ty, Imm::Int(1));
            let half = self.binary(Binary::Shr, ty, rest, one, loc);
            let sum = self.binary(Binary::Add, ty, half, product, loc);
            let shift = self.constant(ty, Imm::Int((shift).into()));
            self.binary(Binary::Shr, ty, sum, shift, loc)
        } else {
            with(Binary::Shr, product, shift)
        };
        if op == Binary::Div {
            return Some(quotient);
        }
        let whole = self.binary(Binary::Mul, ty, quotient, b, loc);
        Some(self.binary(Binary::Sub, ty, a, whole, loc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Magic {
        fn quotient(self, n: u32) -> u32 {
            let product = ((u64::from(n) * u64::from(self.factor)) >> 32) as u32;
            let sum = if self.long { ((n - product) >> 1) + product } else { product };
            sum >> self.shift
        }
    }

    #[test]
    fn quotients_are_right_where_they_could_be_wrong() {
        let divisors = (3..5000).chain([65535, 65537, 1 << 20 | 1, 641, 6_700_417, u32::MAX / 2, u32::MAX]);
        for divisor in divisors.filter(|divisor: &u32| !divisor.is_power_of_two()) {
            let magic = Magic::new(divisor);
            let last = u32::MAX / divisor;
            for quotient in (0..20).chain(last.saturating_sub(20)..=last).filter(|&q| q <= last) {
                let first = quotient * divisor;
                for n in [first.saturating_sub(1), first, first.saturating_add(divisor - 1)] {
                    assert_eq!(magic.quotient(n), n / divisor, "{n} / {divisor} by {magic:?}");
                }
            }
        }
    }
}
