//! `cvt` between single values, and into and out of packed ones.

use super::{packed, special_needs};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::instruction;

instruction! {
    /// Converts between types.
    pub struct Cvt("cvt") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        satfinite: bool = "satfinite",
        relu: bool = "relu",
        /// The result has no negative zero.
        positive_zero: bool = "pzo",
        d_type: Type,
        a_type: Type,
    }(d: Dst, a: Src, b: Option<Src>) -> pointwise,
        needs: |op, needs| {
            if let Src::Special(special) = op.a {
                special_needs(needs, special);
            }
            if !op.is_scalar() {
                return op.form().needs(needs);
            }
            needs.both_if(op.relu, "`.relu`", (7, 0), 80);
            needs.version_if(op.satfinite, "`.satfinite` to a half", 8, 1);
            if op.positive_zero {
                packed::sm107(needs, "`.pzo`");
            }
            match (op.d_type, op.a_type) {
                (BF16, F32) => needs.both("`.bf16`", (7, 0), 80),
                (F32, BF16) if !op.ftz => needs.both("`.f32.bf16`", (7, 1), 80),
                (BF16, _) | (_, BF16) => needs.both("this conversion of `.bf16`", (7, 8), 90),
                _ => {}
            }
        },
        check: |op, check| {
            if op.is_scalar() {
                return op.check_scalar(check);
            }
            check.combination(!op.ftz && !op.sat, "`.ftz` and `.sat` are for conversions of single values");
            if !op.form().check(check) {
                return;
            }
            packed::check_fp8_version(check, op.d_type, op.a_type);
            // Halves of `.f16x2` follow the rule of single values: registers may be wider.
            let plain = op.d_type == F16X2 && op.a_type == F32;
            match (plain, op.d) {
                (true, d) => value_dst(check, d, op.d_type),
                (false, d) => check.dst("d", d, op.d_type),
            }
            let two = op.a_type == F32 && op.d_type != TF32;
            if two != op.b.is_some() {
                let rule = if two { "two values are packed: `a` and `b`" } else { "there is no operand `b`" };
                check.report(Code::OperandCount, rule);
            }
            for (name, src) in [("a", Some(&op.a)), ("b", op.b.as_ref())] {
                match src {
                    Some(src) if plain => value_src(check, name, src, op.a_type),
                    Some(src) => check.src(name, src, op.a_type),
                    None => {}
                }
            }
        };
}

/// A type that a single value can be converted from and to.
pub(super) const SCALARS: &[Type] = &[U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64];

impl Cvt {
    /// Whether it converts one value to one value, neither of a format for tensor cores alone.
    fn is_scalar(&self) -> bool {
        SCALARS.contains(&self.d_type) && SCALARS.contains(&self.a_type)
    }

    fn involves(&self, ty: Type) -> bool {
        self.d_type == ty || self.a_type == ty
    }

    fn form(&self) -> packed::Form {
        packed::Form {
            rounding: self.rounding,
            satfinite: self.satfinite,
            relu: self.relu,
            positive_zero: self.positive_zero,
            d_type: self.d_type,
            a_type: self.a_type,
            scale: None,
        }
    }

    /// Whether the range of `a` goes beyond that of `d`, both integers.
    fn narrows(&self) -> bool {
        let (d, a) = (self.d_type, self.a_type);
        match (d.is_signed(), a.is_signed()) {
            (false, true) => true,
            (true, false) => d.bits() <= a.bits(),
            _ => d.bits() < a.bits(),
        }
    }

    fn check_rounding(&self, check: &mut Check<'_>) {
        use Rounding::*;
        let (d, a) = (self.d_type, self.a_type);
        let (floating, integral) = (
            matches!(self.rounding, Some(Rn | Rz | Rm | Rp)),
            matches!(self.rounding, Some(Rni | Rzi | Rmi | Rpi)),
        );
        let bf16 = self.involves(BF16) && d != a;
        let narrows = d.bits() < a.bits();
        let none = self.rounding.is_none();
        let (fine, rule) = match (d.is_float(), a.is_float()) {
            (false, false) => (none, "a conversion between integers has no rounding"),
            (false, true) => (integral, "a conversion to an integer needs `.rni`, `.rzi`, `.rmi` or `.rpi`"),
            (true, false) => (floating, "a conversion of an integer needs `.rn`, `.rz`, `.rm` or `.rp`"),
            (true, true) if d == a => {
                (none || integral, "a rounding to an integral value is `.rni`, `.rzi`, `.rmi` or `.rpi`")
            }
            (true, true) if narrows => {
                (floating, "a conversion to a smaller type needs `.rn`, `.rz`, `.rm` or `.rp`")
            }
            (true, true) if bf16 => (none || floating, "the roundings are `.rn`, `.rz`, `.rm` and `.rp`"),
            (true, true) => (none, "a conversion to a larger type has no rounding"),
        };
        check.combination(fine, rule);
    }

    fn check_scalar(&self, check: &mut Check<'_>) {
        let (d, a) = (self.d_type, self.a_type);
        self.check_rounding(check);
        check.combination(!self.ftz || self.involves(F32), "`.ftz` goes with `.f32`");
        let saturates = if d.is_float() || a.is_float() { !self.involves(BF16) } else { self.narrows() };
        check.combination(
            !self.sat || saturates,
            "`.sat` goes with conversions that can overflow, and not with `.bf16`",
        );
        let to_half = matches!(d, F16 | BF16) && a == F32;
        let clamped = self.relu || self.satfinite;
        check.combination(
            !clamped || to_half && matches!(self.rounding, Some(Rounding::Rn | Rounding::Rz)) && !self.ftz && !self.sat,
            "`.relu` and `.satfinite` go with `.rn` or `.rz` from `.f32` to `.f16` or `.bf16`, without `.ftz` and `.sat`",
        );
        check.combination(
            !self.positive_zero || to_half && !self.sat && !(self.ftz && d == F16),
            "`.pzo` goes with `.f16.f32` and `.bf16.f32`, without `.ftz` and `.sat`",
        );
        check.that(self.b.is_none(), Code::OperandCount, "one value is converted: there is no operand `b`");
        if self.involves(BF16) {
            check.dst("d", self.d, d);
            return check.src("a", &self.a, a);
        }
        value_dst(check, self.d, d);
        match &self.a {
            Src::Special(special) => self.special(check, *special),
            src => value_src(check, "a", src, a),
        }
    }

    /// A special register as the source of a conversion between integers.
    fn special(&self, check: &mut Check<'_>, special: Special) {
        let integers = !self.d_type.is_float() && !self.a_type.is_float();
        let whole = special.register.is_vector() && special.component.is_none();
        let ty = special.register.ty();
        if !integers || whole || ty == Pred || ty.bits() < self.a_type.bits() {
            check.report_with_help(
                Code::SpecialRegister,
                format!("operand `a` cannot be the special register `{}` here", special.register.name()),
                "move it into a register with `mov` first",
            );
        }
    }
}

/// A register that takes a value of type `ty`: it may be wider, unless the value is a `.bf16`.
pub(super) fn value_dst(check: &mut Check<'_>, d: Dst, ty: Type) {
    match ty {
        BF16 | BF16X2 | TF32 => check.reg("d", d.0, ty),
        _ => check.reg_at_least("d", d.0, ty),
    }
}

/// A source of type `ty`: a register, which may be wider, or a constant.
pub(super) fn value_src(check: &mut Check<'_>, name: &str, src: &Src, ty: Type) {
    match src {
        Src::Reg(reg) if ty != BF16 => check.reg_at_least(name, *reg, ty),
        Src::Sum(reg, _) if ty != BF16 => {
            check.summand(name, *reg);
            check.reg_at_least(name, *reg, ty);
        }
        _ => check.src(name, src, ty),
    }
}
