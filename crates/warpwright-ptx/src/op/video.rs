//! Video instructions: arithmetic on bytes and half words selected from registers.
//!
//! A scalar instruction works on one selected value and may merge its result into a third operand, or combine it with
//! that. A SIMD instruction works on all the half words (`vadd2`) or bytes (`vadd4`) of a register, each selected
//! from those of `a` and `b` together.

use super::logic::ShiftMode;
use super::{Instr, instruction, modifiers};
use crate::diag::Code;
use crate::ir::Type::{S32, U32};
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// How the result of a video instruction is combined with `c`.
    pub enum SecondaryOp {
        /// Sum.
        Add = "add",
        /// The smaller.
        Min = "min",
        /// The larger.
        Max = "max",
    }

    /// The number of bits by which `vmad` scales its result down.
    pub enum Scale {
        /// By 2⁷.
        Shr7 = "shr7",
        /// By 2¹⁵.
        Shr15 = "shr15",
    }
}

instruction! {
    /// Sum.
    pub struct Vadd("vadd")
    /// Difference.
    pub struct Vsub("vsub")
    /// Absolute difference.
    pub struct Vabsdiff("vabsdiff")
    /// The smaller.
    pub struct Vmin("vmin")
    /// The larger.
    pub struct Vmax("vmax") {
        d_type: Type,
        a_type: Type,
        b_type: Type,
        sat: bool = "sat",
        secondary: Option<SecondaryOp>,
    }(d: PartDst, a: PartSrc, b: PartSrc, c: Option<Src>) -> pointwise,
        check: |op, check| {
            types(check, &[op.d_type, op.a_type, op.b_type]);
            scalar(check, op.d, [&op.a, &op.b], op.c.as_ref(), op.secondary);
        };

    /// Shift left.
    pub struct Vshl("vshl")
    /// Shift right, arithmetic for signed types.
    pub struct Vshr("vshr") {
        d_type: Type,
        a_type: Type,
        b_type: Type,
        sat: bool = "sat",
        mode: ShiftMode,
        secondary: Option<SecondaryOp>,
    }(d: PartDst, a: PartSrc, b: PartSrc, c: Option<Src>) -> pointwise,
        check: |op, check| {
            types(check, &[op.d_type, op.a_type]);
            check.combination(op.b_type == U32, "the amount of a shift is of type `.u32`");
            scalar(check, op.d, [&op.a, &op.b], op.c.as_ref(), op.secondary);
        };

    /// Product and sum, scaled.
    pub struct Vmad("vmad") {
        d_type: Type,
        a_type: Type,
        b_type: Type,
        /// Adds one to the sum.
        plus_one: bool = "po",
        sat: bool = "sat",
        scale: Option<Scale>,
    }(d: Dst, a: PartSrc, b: PartSrc, c: PartSrc) -> pointwise,
        check: |op, check| {
            types(check, &[op.d_type, op.a_type, op.b_type]);
            check.dst("d", op.d, U32);
            for (name, src) in [("a", &op.a), ("b", &op.b), ("c", &op.c)] {
                scalar_src(check, name, src);
            }
            check.that(op.c.selector.is_none(), Code::OperandForm, "operand `c` takes no selector");
            let product = op.a.negated != op.b.negated;
            check.combination(!(product && op.c.negated), "either the product or `c` is negated, not both");
            check.combination(
                !(op.plus_one && (product || op.c.negated)),
                "`.po` and negation do not go together",
            );
        };

    /// 1 where the comparison holds, else 0.
    pub struct Vset("vset") {
        a_type: Type,
        b_type: Type,
        cmp: Cmp,
        secondary: Option<SecondaryOp>,
    }(d: PartDst, a: PartSrc, b: PartSrc, c: Option<Src>) -> pointwise,
        check: |op, check| {
            types(check, &[op.a_type, op.b_type]);
            comparison(check, op.cmp);
            scalar(check, op.d, [&op.a, &op.b], op.c.as_ref(), op.secondary);
        };

    /// Sums of half words.
    pub struct Vadd2("vadd2")
    /// Differences of half words.
    pub struct Vsub2("vsub2")
    /// Averages of half words.
    pub struct Vavrg2("vavrg2")
    /// Absolute differences of half words.
    pub struct Vabsdiff2("vabsdiff2")
    /// The smaller half words.
    pub struct Vmin2("vmin2")
    /// The larger half words.
    pub struct Vmax2("vmax2")
    /// Sums of bytes.
    pub struct Vadd4("vadd4")
    /// Differences of bytes.
    pub struct Vsub4("vsub4")
    /// Averages of bytes.
    pub struct Vavrg4("vavrg4")
    /// Absolute differences of bytes.
    pub struct Vabsdiff4("vabsdiff4")
    /// The smaller bytes.
    pub struct Vmin4("vmin4")
    /// The larger bytes.
    pub struct Vmax4("vmax4") {
        d_type: Type,
        a_type: Type,
        b_type: Type,
        sat: bool = "sat",
        /// Adds the results to `c`.
        add: bool = "add",
    }(d: PartDst, a: PartSrc, b: PartSrc, c: RegSrc) -> pointwise,
        check: |op, check| {
            types(check, &[op.d_type, op.a_type, op.b_type]);
            no_saturated_sum(check, op.sat, op.add);
            simd(check, unit(Self::NAME), op.d, [&op.a, &op.b], op.c);
        };

    /// 1 for each half word where the comparison holds, else 0.
    pub struct Vset2("vset2")
    /// 1 for each byte where the comparison holds, else 0.
    pub struct Vset4("vset4") {
        a_type: Type,
        b_type: Type,
        cmp: Cmp,
        /// Adds the results to `c`.
        add: bool = "add",
    }(d: PartDst, a: PartSrc, b: PartSrc, c: RegSrc) -> pointwise,
        check: |op, check| {
            types(check, &[op.a_type, op.b_type]);
            comparison(check, op.cmp);
            simd(check, unit(Self::NAME), op.d, [&op.a, &op.b], op.c);
        };
}

/// The selection of an instruction on all parts of a register: its name ends with their number.
fn unit(name: &str) -> SelectorUnit {
    if name.ends_with('4') { SelectorUnit::Byte } else { SelectorUnit::Half }
}

fn types(check: &mut Check<'_>, types: &[Type]) {
    for &ty in types {
        check.type_among(ty, &[U32, S32]);
    }
}

fn comparison(check: &mut Check<'_>, cmp: Cmp) {
    check.combination(
        matches!(cmp, Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge),
        "the comparison is one of `.eq`, `.ne`, `.lt`, `.le`, `.gt` and `.ge`",
    );
}

fn selector(check: &mut Check<'_>, name: &str, selector: Selector, fits: bool, allowed: &str) {
    check.that(
        fits,
        Code::OperandForm,
        format_args!("operand `{name}` has the selector `{selector}`, where it takes {allowed}"),
    );
}

/// One byte or half word of one register.
fn scalar_selector(check: &mut Check<'_>, name: &str, given: Option<Selector>) {
    if let Some(given) = given {
        let within = matches!(given.positions(), &[one] if usize::from(one) < given.unit().per_register());
        selector(check, name, given, within, "one of `.b0` to `.b3`, `.h0` and `.h1`");
    }
}

fn scalar_src(check: &mut Check<'_>, name: &str, src: &PartSrc) {
    check.src(name, &src.value, U32);
    scalar_selector(check, name, src.selector);
}

fn not_negated(check: &mut Check<'_>, name: &str, src: &PartSrc) {
    if src.negated {
        check.report(Code::OperandForm, format!("operand `{name}` is negated, which only `vmad` offers"));
    }
}

/// The operands of a scalar instruction. The third one is there to take the result in: merged, as a
/// selector on the destination says, or combined by a secondary operation; else it is not used.
fn scalar(
    check: &mut Check<'_>,
    d: PartDst,
    [a, b]: [&PartSrc; 2],
    c: Option<&Src>,
    secondary: Option<SecondaryOp>,
) {
    check.reg("d", d.reg, U32);
    scalar_selector(check, "d", d.selector);
    for (name, src) in [("a", a), ("b", b)] {
        scalar_src(check, name, src);
        not_negated(check, name, src);
    }
    check.src("c", c, U32);
    check.combination(
        !(d.selector.is_some() && secondary.is_some()),
        "a selector on the destination and a secondary operation do not go together",
    );
    check.that(
        !(d.selector.is_some() || secondary.is_some()) || c.is_some(),
        Code::OperandCount,
        "a selector on the destination and a secondary operation need the operand `c`",
    );
}

/// The operands of an instruction on all bytes or half words of a register.
fn simd(check: &mut Check<'_>, unit: SelectorUnit, d: PartDst, sources: [&PartSrc; 2], c: RegSrc) {
    let count = unit.per_register();
    let (mask, all) = match unit {
        SelectorUnit::Byte => {
            ("bytes 3 to 0 in falling order, as `.b3210`", "four digits of 0 to 7, as `.b7531`")
        }
        SelectorUnit::Half => ("`.h0`, `.h1` or `.h10`", "two digits of 0 to 3, as `.h32`"),
    };
    check.reg("d", d.reg, U32);
    if let Some(given) = d.selector {
        let positions = given.positions();
        let falling = positions.is_sorted_by(|a, b| a > b);
        let within = positions.iter().all(|&position| usize::from(position) < count);
        selector(check, "d", given, given.unit() == unit && falling && within, mask);
    }
    for (name, src) in ["a", "b"].into_iter().zip(sources) {
        check.src(name, &src.value, U32);
        if src.value.imm().is_some() {
            check.report(Code::OperandForm, format!("operand `{name}` must be a register"));
        }
        not_negated(check, name, src);
        if let Some(given) = src.selector {
            selector(check, name, given, given.unit() == unit && given.positions().len() == count, all);
        }
    }
    check.reg("c", c.0, U32);
}

fn no_saturated_sum(check: &mut Check<'_>, sat: bool, add: bool) {
    check.combination(!(sat && add), "`.sat` and `.add` do not go together");
}
