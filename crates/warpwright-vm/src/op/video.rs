//! Video instructions. They are rare, so all of them are closures over a description.

use crate::decode::{Decoder, Rows};
use crate::num::video::{Mad, Primary, Scalar, Secondary, Simd, Subword};
use warpwright_ptx::ir::Type::{S32, U32};
use warpwright_ptx::ir::{Imm, PartDst, PartSrc, RegSrc, Selector, SelectorUnit, Src, Type};
use warpwright_ptx::op::family::Video as Op;
use warpwright_ptx::op::logic::ShiftMode;
use warpwright_ptx::op::video::{Scale, SecondaryOp, Vmad};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    /// A scalar instruction whose fields have the usual names.
    macro_rules! scalar {
        ($op:ident, $primary:expr) => {
            scalar(
                d,
                $primary,
                [$op.d_type, $op.a_type, $op.b_type],
                $op.sat,
                $op.secondary,
                ($op.d, &$op.a, &$op.b, $op.c.as_ref()),
            )
        };
    }
    macro_rules! simd {
        ($op:ident, $bits:expr, $primary:expr) => {
            simd(
                d,
                ($primary, $bits),
                [$op.d_type, $op.a_type, $op.b_type],
                ($op.sat, $op.add),
                ($op.d, &$op.a, &$op.b, $op.c),
            )
        };
    }
    match op {
        Op::Vadd(op) => scalar!(op, Primary::Add),
        Op::Vsub(op) => scalar!(op, Primary::Sub),
        Op::Vabsdiff(op) => scalar!(op, Primary::Distance),
        Op::Vmin(op) => scalar!(op, Primary::Min),
        Op::Vmax(op) => scalar!(op, Primary::Max),
        Op::Vshl(op) => scalar!(op, Primary::ShiftLeft { wrap: op.mode == ShiftMode::Wrap }),
        Op::Vshr(op) => scalar!(op, Primary::ShiftRight { wrap: op.mode == ShiftMode::Wrap }),
        Op::Vset(op) => scalar(
            d,
            Primary::Compare(op.cmp),
            [U32, op.a_type, op.b_type],
            false,
            op.secondary,
            (op.d, &op.a, &op.b, op.c.as_ref()),
        ),
        Op::Vmad(op) => vmad(op, d),
        Op::Vadd2(op) => simd!(op, 16, Primary::Add),
        Op::Vsub2(op) => simd!(op, 16, Primary::Sub),
        Op::Vavrg2(op) => simd!(op, 16, Primary::Average),
        Op::Vabsdiff2(op) => simd!(op, 16, Primary::Distance),
        Op::Vmin2(op) => simd!(op, 16, Primary::Min),
        Op::Vmax2(op) => simd!(op, 16, Primary::Max),
        Op::Vadd4(op) => simd!(op, 8, Primary::Add),
        Op::Vsub4(op) => simd!(op, 8, Primary::Sub),
        Op::Vavrg4(op) => simd!(op, 8, Primary::Average),
        Op::Vabsdiff4(op) => simd!(op, 8, Primary::Distance),
        Op::Vmin4(op) => simd!(op, 8, Primary::Min),
        Op::Vmax4(op) => simd!(op, 8, Primary::Max),
        Op::Vset2(op) => {
            let types = [U32, op.a_type, op.b_type];
            simd(d, (Primary::Compare(op.cmp), 16), types, (false, op.add), (op.d, &op.a, &op.b, op.c));
        }
        Op::Vset4(op) => {
            let types = [U32, op.a_type, op.b_type];
            simd(d, (Primary::Compare(op.cmp), 8), types, (false, op.add), (op.d, &op.a, &op.b, op.c));
        }
    }
    true
}

/// The part of a word that a selector names.
fn part(selector: Option<Selector>) -> Option<Subword> {
    let selector = selector?;
    let bits = 32 / selector.unit().per_register() as u32;
    Some(Subword { bits, index: selector.positions().first().copied().unwrap_or(0).into() })
}

fn rows(d: &mut Decoder<'_, '_>, dst: PartDst, a: &PartSrc, b: &PartSrc, c: &Src) -> Rows {
    let [a, b, c] = [&a.value, &b.value, c].map(|src| d.src32(src, U32));
    Rows { d: d.row(dst.reg), a, b, c, ..Rows::default() }
}

fn scalar(
    d: &mut Decoder<'_, '_>,
    primary: Primary,
    types: [Type; 3],
    sat: bool,
    secondary: Option<SecondaryOp>,
    (dst, a, b, c): (PartDst, &PartSrc, &PartSrc, Option<&Src>),
) {
    let [d_signed, a_signed, b_signed] = types.map(|ty| ty == S32);
    let op = Scalar {
        primary,
        d_signed,
        a: (part(a.selector).unwrap_or(Subword::WORD), a_signed),
        b: (part(b.selector).unwrap_or(Subword::WORD), b_signed),
        sat,
        merge: part(dst.selector),
        secondary: secondary.map(|secondary| match secondary {
            SecondaryOp::Add => Secondary::Add,
            SecondaryOp::Min => Secondary::Min,
            SecondaryOp::Max => Secondary::Max,
        }),
    };
    let zero = Src::Imm(Imm::Int(0));
    let rows = rows(d, dst, a, b, c.unwrap_or(&zero));
    d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| op.apply(a, b, c));
}

/// The positions of a selector, the least significant first.
fn positions(selector: Option<Selector>, default: [u8; 4]) -> [u8; 4] {
    let Some(selector) = selector else { return default };
    let mut positions = [0; 4];
    for (to, from) in positions.iter_mut().zip(selector.positions().iter().rev()) {
        *to = *from;
    }
    positions
}

fn simd(
    d: &mut Decoder<'_, '_>,
    (primary, bits): (Primary, u32),
    types: [Type; 3],
    (sat, add): (bool, bool),
    (dst, a, b, c): (PartDst, &PartSrc, &PartSrc, RegSrc),
) {
    let [d_signed, a_signed, b_signed] = types.map(|ty| ty == S32);
    let unit = if bits == 8 { SelectorUnit::Byte } else { SelectorUnit::Half };
    let count = unit.per_register() as u8;
    let op = Simd {
        primary,
        bits,
        d_signed,
        a: (positions(a.selector, [0, 1, 2, 3]), a_signed),
        b: (positions(b.selector, [count, count + 1, count + 2, count + 3]), b_signed),
        sat,
        mask: dst.selector.map_or(0xf, |selector| {
            selector.positions().iter().fold(0, |mask, position| mask | 1 << position)
        }),
        add,
    };
    let rows = rows(d, dst, a, b, &Src::Reg(c.0));
    d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| op.apply(a, b, c));
}

fn vmad(op: &Vmad, d: &mut Decoder<'_, '_>) {
    let mad = Mad {
        a: (part(op.a.selector).unwrap_or(Subword::WORD), op.a_type == S32),
        b: (part(op.b.selector).unwrap_or(Subword::WORD), op.b_type == S32),
        negate_product: op.a.negated != op.b.negated,
        negate_c: op.c.negated,
        plus_one: op.plus_one,
        scale: match op.scale {
            None => 0,
            Some(Scale::Shr7) => 7,
            Some(Scale::Shr15) => 15,
        },
        sat: op.sat,
    };
    let rows = rows(d, op.d.0.into(), &op.a, &op.b, &op.c.value);
    d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| mad.apply(a, b, c));
}
