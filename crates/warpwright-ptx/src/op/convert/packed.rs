//! Conversions into and out of packed formats of 16, 8, 6 and 4 bits; `cvt.pack`.

use super::scalar::{value_dst, value_src};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::instruction;

instruction! {
    /// Converts with stochastic rounding: two values, or a vector of four.
    pub struct CvtRs("cvt.rs") {
        relu: bool = "relu",
        satfinite: bool = "satfinite",
        d_type: Type,
        a_type: Type,
    }(d: Dst, a: Srcs, b: Option<Src> = crate::op::Presence::Before(true, 1), random: Src) -> pointwise,
        needs: |_, needs| needs.targets("`.rs`", (8, 7), Requirement::specific(&[100, 103, 107])),
        check: |op, check| {
            use Type::*;
            let four = matches!(op.d_type, E4M3X4 | E5M2X4 | E2M1X4 | E2M3X4 | E3M2X4);
            check.type_among(op.a_type, &[F32]);
            if !four && !check.type_among(op.d_type, &[F16X2, BF16X2, E4M3X4, E5M2X4, E2M1X4, E2M3X4, E3M2X4])
            {
                return;
            }
            check.combination(!four || op.satfinite, "this conversion needs `.satfinite`");
            match (&op.a, &op.b) {
                (Srcs::Many(values), None) if four && values.len() == 4 => {
                    check.dst("d", op.d, op.d_type);
                    values.iter().for_each(|value| check.src("a", value, F32));
                }
                (Srcs::One(a), Some(b)) if !four => {
                    value_dst(check, op.d, op.d_type);
                    for (name, src) in [("a", a), ("b", b)] {
                        match op.d_type {
                            F16X2 => value_src(check, name, src, F32),
                            _ => check.src(name, src, F32),
                        }
                    }
                }
                _ if four => check.report(Code::VectorShape, "operand `a` must be a vector of 4 elements"),
                _ => check.report(Code::OperandCount, "two values are packed: `a` and `b`"),
            }
            register(check, "random", &op.random, B32);
        };

    /// Converts two values with one common scale factor.
    pub struct CvtScaledOne("cvt.scaled::n1::ue8m0") {
        rounding: Option<Rounding>,
        relu: bool = "relu",
        satfinite: bool = "satfinite",
        /// The result has no negative zero.
        positive_zero: bool = "pzo",
        d_type: Type,
        a_type: Type,
    }(d: Dst, a: Src, b: Option<Src> = crate::op::Presence::Before(true, 1), scale: Src) -> pointwise,
        needs: |op, needs| op.form().needs(needs),
        check: |op, check| {
            if op.form().check(check) {
                scaled_operands(check, &op.form(), op.d, &op.a, &op.b);
                register(check, "scale", &op.scale, Type::B8);
            }
        };

    /// Converts two values, each with its own scale factor.
    pub struct CvtScaledTwo("cvt.scaled::n2::ue8m0") {
        rounding: Option<Rounding>,
        relu: bool = "relu",
        satfinite: bool = "satfinite",
        d_type: Type,
        a_type: Type,
    }(d: Dst, a: Src, b: Option<Src> = crate::op::Presence::Before(true, 1), scale: Src) -> pointwise,
        needs: |op, needs| op.form().needs(needs),
        check: |op, check| {
            if op.form().check(check) {
                scaled_operands(check, &op.form(), op.d, &op.a, &op.b);
                register(check, "scale", &op.scale, Type::B16);
            }
        };

    /// Converts two integers with saturation and packs them, above the low bits of `c`.
    pub struct CvtPack("cvt.pack") {
        sat: bool = "sat",
        d_type: Type,
        a_type: Type,
        c_type: Option<Type>,
    }(d: Dst, a: Src, b: Src, c: Option<Src>) -> pointwise,
        needs: |op, needs| {
            needs.both("`cvt.pack`", (6, 5), 72);
            needs.sm_if(op.d_type.bits() < 8, "`cvt.pack` below 8 bits", 75);
        },
        check: |op, check| {
            use Type::*;
            check.combination(op.sat, "`.sat` is needed");
            check.type_among(op.a_type, &[S32]);
            match op.c_type {
                None => check.type_among(op.d_type, &[U16, S16]),
                Some(c_type) => {
                    check.type_among(c_type, &[B32]) && check.type_among(op.d_type, &[U2, S2, U4, S4, U8, S8])
                }
            };
            if op.c_type.is_some() != op.c.is_some() {
                check.report(Code::OperandCount, "the operand `c` and its type go together");
            }
            check.reg_at_least("d", op.d.0, U32);
            value_src(check, "a", &op.a, S32);
            value_src(check, "b", &op.b, S32);
            if let Some(c) = &op.c {
                value_src(check, "c", c, B32);
            }
        };
}

/// How many factors scale a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    One,
    Two,
}

/// The modifiers of a conversion of packed values.
pub(super) struct Form {
    pub(super) rounding: Option<Rounding>,
    pub(super) satfinite: bool,
    pub(super) relu: bool,
    pub(super) positive_zero: bool,
    pub(super) d_type: Type,
    pub(super) a_type: Type,
    pub(super) scale: Option<Scale>,
}

/// What a pair of types allows.
struct Allowed {
    rounding: &'static [Rounding],
    relu: bool,
    satfinite: Presence,
    positive_zero: bool,
    scale: Option<Scale>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Never,
    May,
    Must,
}

/// The FP8, FP6 and FP4 formats, two in a register.
fn is_small(ty: Type) -> bool {
    matches!(ty, Type::E4M3X2 | Type::E5M2X2 | Type::E2M1X2 | Type::E2M3X2 | Type::E3M2X2)
}

fn is_fp8(ty: Type) -> bool {
    matches!(ty, Type::E4M3X2 | Type::E5M2X2)
}

/// The FP8 formats came to sm_90 with PTX 7.8, and to sm_89 later.
pub(super) fn check_fp8_version(check: &mut Check<'_>, d: Type, a: Type) {
    if (is_fp8(d) || is_fp8(a)) && check.arch().sm == 89 && check.version() < Version::new(8, 1) {
        check.report(Code::NeedsVersion, "an FP8 format on sm_89 needs PTX 8.1 or later");
    }
}

/// Values that are narrowed: two `.f32`, or packed halves.
fn is_wide(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F16X2 | Type::BF16X2)
}

impl Form {
    fn allowed(&self) -> Option<Allowed> {
        use Presence::*;
        use Rounding::*;
        use Type::*;
        let allowed = |rounding, relu, satfinite, positive_zero, scale| {
            Some(Allowed { rounding, relu, satfinite, positive_zero, scale })
        };
        match (self.d_type, self.a_type) {
            (F16X2 | BF16X2, F32) => allowed(&[Rn, Rz], true, May, true, None),
            (TF32, F32) if self.rounding == Some(Rna) => allowed(&[Rna], false, May, false, None),
            (TF32, F32) => allowed(&[Rn, Rz, Rna], true, May, true, None),
            (F16X2, a) if is_small(a) => allowed(&[Rn], true, Never, false, None),
            (F16X2, UE5M3X2) | (BF16X2, UE8M0X2) => allowed(&[Rn], false, Never, false, None),
            (BF16X2, UE5M3X2) => allowed(&[Rn], false, May, false, Some(Scale::Two)),
            (BF16X2, a) if is_small(a) || a == S2F6X2 => allowed(&[Rn], true, May, false, Some(Scale::Two)),
            (d, a) if is_small(d) && is_wide(a) => allowed(&[Rn, Rz], true, Must, true, Some(Scale::One)),
            (UE8M0X2, F32 | BF16X2) => allowed(&[Rz, Rp], false, May, false, None),
            (S2F6X2, F32 | BF16X2) => allowed(&[Rn, Rz], true, Must, false, Some(Scale::Two)),
            (UE5M3X2, a) if is_wide(a) && self.scale.is_some() => {
                allowed(&[Rn, Rz], false, May, false, Some(Scale::One))
            }
            (UE5M3X2, a) if is_wide(a) => allowed(&[Rn, Rz, Rp], false, May, false, Some(Scale::One)),
            _ => None,
        }
    }

    /// Checks the modifiers; whether there is such a conversion at all.
    pub(super) fn check(&self, check: &mut Check<'_>) -> bool {
        let Some(allowed) = self.allowed() else {
            check.report(
                Code::ModifierCombination,
                format!("there is no conversion from `{}` to `{}` in this form", self.a_type, self.d_type),
            );
            return false;
        };
        if !self.rounding.is_some_and(|rounding| allowed.rounding.contains(&rounding)) {
            let names: Vec<_> = allowed.rounding.iter().map(|rounding| format!("`{rounding}`")).collect();
            check.report(
                Code::ModifierCombination,
                format!("this conversion needs the rounding {}", names.join(" or ")),
            );
        }
        check.combination(!self.relu || allowed.relu, "`.relu` is not offered for this conversion");
        match allowed.satfinite {
            Presence::Never => {
                check.combination(!self.satfinite, "`.satfinite` is not offered for this conversion")
            }
            Presence::Must => check.combination(self.satfinite, "this conversion needs `.satfinite`"),
            Presence::May => {}
        }
        check.combination(
            !self.positive_zero || allowed.positive_zero,
            "`.pzo` is not offered for this conversion",
        );
        check.combination(
            self.scale.is_none() || self.scale == allowed.scale,
            "these scale factors are not offered for this conversion",
        );
        true
    }

    pub(super) fn needs(&self, needs: &mut Needs) {
        use Type::*;
        let (d, a) = (self.d_type, self.a_type);
        match (d, a) {
            (F16X2 | BF16X2, F32) => {
                needs.both("this conversion to halves", (7, 0), 80);
                needs.version_if(self.satfinite, "`.satfinite` to halves", 8, 1);
            }
            (TF32, _) if self.rounding == Some(Rounding::Rna) => {
                needs.both("`.tf32`", (7, 0), 80);
                needs.version_if(self.satfinite, "`.satfinite` to `.tf32`", 8, 1);
            }
            (TF32, _) if self.satfinite => {
                needs.both("`.satfinite` with this rounding to `.tf32`", (8, 6), 100)
            }
            (TF32, _) => needs.both("this rounding to `.tf32`", (7, 8), 90),
            (UE5M3X2, _) | (_, UE5M3X2) => sm107(needs, "`.ue5m3x2`"),
            (S2F6X2, _) if self.rounding == Some(Rounding::Rz) => {
                needs.targets("`.rz` to `.s2f6x2`", (9, 4), Requirement::specific(&[107]))
            }
            (S2F6X2, _) | (_, S2F6X2) => {
                needs.targets("`.s2f6x2`", (9, 1), Requirement::specific(&[100, 103, 107, 110, 120, 121]))
            }
            (BF16X2, a) if is_small(a) => {
                needs.version("`.bf16x2` from this format", 9, 2);
                blackwell(needs, "`.bf16x2` from this format");
            }
            (d, BF16X2) if is_small(d) => {
                needs.version("this format from `.bf16x2`", 9, 1);
                blackwell(needs, "this format from `.bf16x2`");
            }
            (d, a) if is_fp8(d) || is_fp8(a) => needs.both("an FP8 format", (7, 8), 89),
            (d, F16X2) if is_small(d) => {
                needs.version("this format from `.f16x2`", 9, 1);
                blackwell(needs, "this format from `.f16x2`");
            }
            _ => {
                needs.version("this format", 8, 6);
                blackwell(needs, "this format");
            }
        }
        if is_small(d) && self.rounding == Some(Rounding::Rz) {
            sm107(needs, "`.rz` to this format");
        }
        if self.positive_zero {
            sm107(needs, "`.pzo`");
        }
        if self.scale == Some(Scale::One) {
            sm107(needs, "`.scaled::n1::ue8m0`");
        }
    }
}

/// What sm_107 and the rest of its family have.
pub(super) fn sm107(needs: &mut Needs, feature: &'static str) {
    needs.targets(feature, (9, 4), Requirement::family(&[107]));
}

/// What all families from sm_100 on have.
fn blackwell(needs: &mut Needs, feature: &'static str) {
    needs.add(feature, Requirement::family(&[100, 110, 120]));
}

/// The operands `d`, `a` and `b` of a scaled conversion.
fn scaled_operands(check: &mut Check<'_>, form: &Form, d: Dst, a: &Src, b: &Option<Src>) {
    check.dst("d", d, form.d_type);
    check.src("a", a, form.a_type);
    let two = form.a_type == Type::F32;
    if two != b.is_some() {
        let rule = if two { "two values are packed: `a` and `b`" } else { "there is no operand `b`" };
        check.report(Code::OperandCount, rule);
    }
    check.src("b", b, form.a_type);
}

/// A factor or random bits: an untyped register.
fn register(check: &mut Check<'_>, name: &str, src: &Src, ty: Type) {
    match src {
        Src::Reg(reg) if check.reg_type(*reg).is_bits() => check.reg(name, *reg, ty),
        _ => check.report(Code::OperandType, format!("operand `{name}` must be a `{ty}` register")),
    }
}

impl CvtScaledOne {
    fn form(&self) -> Form {
        Form {
            rounding: self.rounding,
            satfinite: self.satfinite,
            relu: self.relu,
            positive_zero: self.positive_zero,
            d_type: self.d_type,
            a_type: self.a_type,
            scale: Some(Scale::One),
        }
    }
}

impl CvtScaledTwo {
    fn form(&self) -> Form {
        Form {
            rounding: self.rounding,
            satfinite: self.satfinite,
            relu: self.relu,
            positive_zero: false,
            d_type: self.d_type,
            a_type: self.a_type,
            scale: Some(Scale::Two),
        }
    }
}
