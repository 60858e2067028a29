//! What instructions compute, on the registers of one thread.

use crate::conversion;
use crate::evaluate::Frame;
use crate::float::{self, Arithmetic, Extremum, Format, Mode, arithmetic};
use crate::integer;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::arith::FloatClass;

/// A little-endian number of as many bytes as there are, up to 16.
pub(crate) fn from_bytes(bytes: &[u8]) -> u128 {
    bytes.iter().take(16).rev().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// Runs an instruction that neither touches memory nor leads elsewhere.
pub(crate) fn operate(frame: &mut Frame<'_>, op: &Op) {
    match op {
        Op::Add(o) if o.ty.is_float() => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, sat: o.sat, relu: false };
            floats(frame, Arithmetic::Add, mode, o.ty, o.d, &[&o.a, &o.b]);
        }
        Op::Sub(o) if o.ty.is_float() => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, sat: o.sat, relu: false };
            floats(frame, Arithmetic::Sub, mode, o.ty, o.d, &[&o.a, &o.b]);
        }
        Op::Mul(o) if o.ty.is_float() => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, sat: o.sat, relu: false };
            floats(frame, Arithmetic::Mul, mode, o.ty, o.d, &[&o.a, &o.b]);
        }
        Op::Mad(o) if o.ty.is_float() => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, sat: o.sat, relu: false };
            floats(frame, Arithmetic::Fma, mode, o.ty, o.d, &[&o.a, &o.b, &o.c]);
        }
        Op::Fma(o) => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, sat: o.sat, relu: o.relu };
            floats(frame, Arithmetic::Fma, mode, o.ty, o.d, &[&o.a, &o.b, &o.c]);
        }
        Op::Div(o) if o.ty.is_float() => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, ..Mode::default() };
            floats(frame, Arithmetic::Div, mode, o.ty, o.d, &[&o.a, &o.b]);
        }
        Op::Rcp(o) => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, ..Mode::default() };
            let one = if o.ty == Type::F32 { Imm::F32(1f32.to_bits()) } else { Imm::F64(1f64.to_bits()) };
            floats(frame, Arithmetic::Div, mode, o.ty, o.d, &[&Src::Imm(one), &o.a]);
        }
        Op::Sqrt(o) => {
            let mode = Mode { rounding: o.rounding, ftz: o.ftz, ..Mode::default() };
            floats(frame, Arithmetic::Sqrt, mode, o.ty, o.d, &[&o.a]);
        }
        Op::Abs(o) if o.ty.is_float() => sign(frame, o.ftz, o.ty, o.d, &o.a, |x, sign| x & !sign),
        Op::Neg(o) if o.ty.is_float() => sign(frame, o.ftz, o.ty, o.d, &o.a, |x, sign| x ^ sign),
        Op::Min(o) if o.ty.is_float() => {
            let how = Extremum { larger: false, ftz: o.ftz, nan: o.nan, xorsign: o.xorsign };
            extremum(frame, how, o.ty, o.d, &o.a, &o.b);
        }
        Op::Max(o) if o.ty.is_float() => {
            let how = Extremum { larger: true, ftz: o.ftz, nan: o.nan, xorsign: o.xorsign };
            extremum(frame, how, o.ty, o.d, &o.a, &o.b);
        }
        Op::Copysign(o) => {
            let sign = 1u128 << (o.ty.bits() - 1);
            let (a, b) = (frame.bits(&o.a, o.ty), frame.bits(&o.b, o.ty));
            frame.set(o.d, o.ty, (a & sign | b & !sign) as i128);
        }
        Op::Testp(o) => {
            let x = frame.bits(&o.a, o.ty) as u64;
            frame.set_pred(o.p.0, is_of_class(Format::of(o.ty), o.class, x));
        }
        Op::Setp(o) => {
            let [low, high] = comparisons(frame, o.cmp, o.ftz, o.ty, &o.a, &o.b);
            let c = o.c.as_ref().map(|c| frame.holds(c));
            // Two results: of the two elements, or the comparison and its complement.
            let second = if o.ty.bits() == 32 && o.ty.kind() == TypeKind::PackedFloat { high } else { !low };
            if let Some(p) = o.d.first {
                frame.set_pred(p, combine(o.bool_op, low, c));
            }
            if let Some(Some(q)) = o.d.second {
                frame.set_pred(q, combine(o.bool_op, second, c));
            }
        }
        Op::Set(o) => {
            let c = o.c.as_ref().map(|c| frame.holds(c));
            let results = comparisons(frame, o.cmp, o.ftz, o.ty, &o.a, &o.b);
            let [low, high] = results.map(|result| combine(o.bool_op, result, c));
            let truth = |holds: bool, ty: Type| match (holds, ty.is_float()) {
                (false, _) => 0,
                (true, true) => i128::from(Format::of(ty).one()),
                (true, false) => -1,
            };
            let d = match o.d_type {
                Type::F16X2 | Type::BF16X2 => truth(low, o.d_type) | truth(high, o.d_type) << 16,
                ty if o.ty.kind() == TypeKind::PackedFloat => {
                    (integer::low(truth(low, ty), 16) | integer::low(truth(high, ty), 16) << 16) as i128
                }
                ty => truth(low, ty),
            };
            frame.set(o.d, o.d_type, d);
        }
        Op::Selp(o) => {
            let chosen = if frame.holds(&o.c) { &o.a } else { &o.b };
            frame.set(o.d, o.ty, frame.bits(chosen, o.ty) as i128);
        }
        Op::Slct(o) => {
            let c = frame.bits(&o.c, o.c_type) as u64;
            let first = match o.c_type {
                Type::F32 => float::compare(Format::F32, o.ftz, c, 0).is_some_and(|order| order.is_ge()),
                _ => (c as u32 as i32) >= 0,
            };
            let chosen = if first { &o.a } else { &o.b };
            frame.set(o.d, o.ty, frame.bits(chosen, o.ty) as i128);
        }
        Op::Cvt(o) => conversion::convert(frame, o),
        Op::CvtPack(o) => conversion::pack(frame, o),
        Op::Mov(o) => copy(frame, &o.d, &o.a, o.vector, o.ty),
        other if simd(frame, other) => {}
        other => integers(frame, other),
    }
}

/// Arithmetic on one value, or on both of a packed pair.
fn floats(frame: &mut Frame<'_>, operation: Arithmetic, mode: Mode, ty: Type, d: Dst, sources: &[&Src]) {
    let format = Format::of(ty);
    let values: Vec<u128> = sources.iter().map(|src| frame.bits(src, ty)).collect();
    let result = elements(ty).fold(0, |result, at| {
        let values: Vec<u64> = values.iter().map(|x| element(ty, *x, at)).collect();
        result | u128::from(arithmetic(operation, format, mode, &values)) << at
    });
    frame.set(d, ty, result as i128);
}

/// Positions of the elements in a register.
fn elements(ty: Type) -> impl Iterator<Item = u32> {
    (0..ty.bits()).step_by(Format::of(ty).bits() as usize)
}

fn element(ty: Type, x: u128, at: u32) -> u64 {
    integer::low((x >> at) as i128, Format::of(ty).bits()) as u64
}

fn sign(frame: &mut Frame<'_>, ftz: bool, ty: Type, d: Dst, a: &Src, change: impl Fn(u64, u64) -> u64) {
    let format = Format::of(ty);
    let a = frame.bits(a, ty);
    let result = elements(ty).fold(0, |result, at| {
        let x = format.flush(ftz, element(ty, a, at));
        // Double precision keeps a NaN, made quiet; the other formats have one NaN.
        let x = match format.is_nan(x) {
            true if format == Format::F64 => x | 1 << 51,
            true => format.nan(),
            false => change(x, 1 << (format.bits() - 1)),
        };
        result | u128::from(x) << at
    });
    frame.set(d, ty, result as i128);
}

fn extremum(frame: &mut Frame<'_>, how: Extremum, ty: Type, d: Dst, a: &Src, b: &Src) {
    let format = Format::of(ty);
    let (a, b) = (frame.bits(a, ty), frame.bits(b, ty));
    let result = elements(ty).fold(0, |result, at| {
        result | u128::from(float::extremum(format, how, element(ty, a, at), element(ty, b, at))) << at
    });
    frame.set(d, ty, result as i128);
}

fn is_of_class(format: Format, class: FloatClass, x: u64) -> bool {
    let magnitude = x & ((1 << (format.bits() - 1)) - 1);
    let infinity = arithmetic(Arithmetic::Div, format, Mode::default(), &[format.one(), 0]);
    let subnormal = magnitude != 0 && format.flush(true, magnitude) == 0;
    match class {
        FloatClass::Finite => magnitude < infinity,
        FloatClass::Infinite => magnitude == infinity,
        FloatClass::Number => magnitude <= infinity,
        FloatClass::NotANumber => magnitude > infinity,
        FloatClass::Normal => magnitude < infinity && !subnormal,
        FloatClass::Subnormal => subnormal,
    }
}

/// The comparison of the low elements, and of the high ones where there are two.
fn comparisons(frame: &Frame<'_>, cmp: Cmp, ftz: bool, ty: Type, a: &Src, b: &Src) -> [bool; 2] {
    use std::cmp::Ordering::*;
    if !ty.is_float() {
        let (a, b) = (frame.int(a, ty), frame.int(b, ty));
        return [ordered(cmp, Some(a.cmp(&b))); 2];
    }
    let format = Format::of(ty);
    let (a, b) = (frame.bits(a, ty), frame.bits(b, ty));
    let compare = |at| {
        let order = float::compare(format, ftz, element(ty, a, at), element(ty, b, at));
        match (cmp, order) {
            (Cmp::Num, order) => order.is_some(),
            (Cmp::Nan, order) => order.is_none(),
            (Cmp::Equ, order) => matches!(order, None | Some(Equal)),
            (Cmp::Neu, order) => order != Some(Equal),
            (Cmp::Ltu, order) => matches!(order, None | Some(Less)),
            (Cmp::Leu, order) => order != Some(Greater),
            (Cmp::Gtu, order) => matches!(order, None | Some(Greater)),
            (Cmp::Geu, order) => order != Some(Less),
            (cmp, order) => ordered(cmp, order),
        }
    };
    [compare(0), ty.kind() == TypeKind::PackedFloat && compare(16)]
}

fn ordered(cmp: Cmp, order: Option<std::cmp::Ordering>) -> bool {
    let Some(order) = order else { return false };
    match cmp {
        Cmp::Eq => order.is_eq(),
        Cmp::Ne => order.is_ne(),
        Cmp::Lt | Cmp::Lo => order.is_lt(),
        Cmp::Le | Cmp::Ls => order.is_le(),
        Cmp::Gt | Cmp::Hi => order.is_gt(),
        Cmp::Ge | Cmp::Hs => order.is_ge(),
        other => panic!("`{other}` is for floating point"),
    }
}

fn combine(op: Option<BoolOp>, result: bool, c: Option<bool>) -> bool {
    match (op, c) {
        (Some(BoolOp::And), Some(c)) => result && c,
        (Some(BoolOp::Or), Some(c)) => result || c,
        (Some(BoolOp::Xor), Some(c)) => result != c,
        _ => result,
    }
}

/// Copies, packs and unpacks.
fn copy(frame: &mut Frame<'_>, d: &Dsts, a: &Srcs, vector: Option<VectorWidth>, ty: Type) {
    let sources = a.as_slice();
    let part = ty.bits() / if vector.is_some() { 1 } else { d.len().max(sources.len()) as u32 };
    let part_type = *Type::ALL.iter().find(|t| t.is_bits() && t.bits() == part).unwrap_or(&ty);
    if vector.is_some() {
        let values: Vec<u128> = sources.iter().map(|src| frame.bits(src, ty)).collect();
        for (reg, value) in d.as_slice().zip(values) {
            if let Some(reg) = reg {
                frame.set(Dst(reg), ty, value as i128);
            }
        }
        return;
    }
    let read = if sources.len() > 1 { part_type } else { ty };
    let value = (sources.iter().enumerate())
        .fold(0, |value, (i, src)| value | frame.bits(src, read) << (part * i as u32));
    let written = if d.len() > 1 { part_type } else { ty };
    for (i, reg) in d.as_slice().enumerate() {
        if let Some(reg) = reg {
            frame.set(Dst(reg), written, (value >> (part * i as u32)) as i128);
        }
    }
}

/// Integer arithmetic, logic and shifts.
fn integers(frame: &mut Frame<'_>, op: &Op) {
    match op {
        Op::Add(o) if o.ty.kind() == TypeKind::PackedInteger => {
            pairwise(frame, o.ty, o.d, &o.a, &o.b, |a, b| a + b);
        }
        Op::Min(o) if o.ty.kind() == TypeKind::PackedInteger => {
            pairwise(frame, o.ty, o.d, &o.a, &o.b, |a, b| if o.relu { a.min(b).max(0) } else { a.min(b) });
        }
        Op::Max(o) if o.ty.kind() == TypeKind::PackedInteger => {
            pairwise(frame, o.ty, o.d, &o.a, &o.b, |a, b| if o.relu { a.max(b).max(0) } else { a.max(b) });
        }
        Op::Add(o) => {
            let sum = frame.int(&o.a, o.ty) + frame.int(&o.b, o.ty);
            carried(frame, o.cc, o.ty, [&o.a, &o.b], [false, false]);
            frame.set(o.d, o.ty, if o.sat { integer::clamp(sum, o.ty) } else { sum });
        }
        Op::Sub(o) => {
            let difference = frame.int(&o.a, o.ty) - frame.int(&o.b, o.ty);
            carried(frame, o.cc, o.ty, [&o.a, &o.b], [true, false]);
            frame.set(o.d, o.ty, if o.sat { integer::clamp(difference, o.ty) } else { difference });
        }
        Op::Addc(o) => {
            let sum = frame.int(&o.a, o.ty) + frame.int(&o.b, o.ty) + i128::from(frame.carry);
            carried(frame, o.cc, o.ty, [&o.a, &o.b], [false, true]);
            frame.set(o.d, o.ty, sum);
        }
        Op::Subc(o) => {
            let difference = frame.int(&o.a, o.ty) - frame.int(&o.b, o.ty) - i128::from(!frame.carry);
            carried(frame, o.cc, o.ty, [&o.a, &o.b], [true, true]);
            frame.set(o.d, o.ty, difference);
        }
        Op::Mul(o) => {
            let half = o.half.expect("a half");
            let product = integer::product(half, o.ty, frame.int(&o.a, o.ty), frame.int(&o.b, o.ty));
            frame.set(o.d, doubled(half, o.ty), product);
        }
        Op::Mul24(o) => {
            let product = integer::product24(o.half, o.ty, frame.int(&o.a, o.ty), frame.int(&o.b, o.ty));
            frame.set(o.d, o.ty, product);
        }
        Op::Mad(o) => {
            let half = o.half.expect("a half");
            let product = integer::product(half, o.ty, frame.int(&o.a, o.ty), frame.int(&o.b, o.ty));
            let ty = doubled(half, o.ty);
            let sum = product.wrapping_add(frame.int(&o.c, ty));
            if o.cc {
                frame.carry = (integer::low(product, ty.bits()) + frame.bits(&o.c, ty)) >> ty.bits() != 0;
            }
            frame.set(o.d, ty, if o.sat { integer::clamp(sum, ty) } else { sum });
        }
        Op::Madc(o) => {
            let half = o.half.expect("a half");
            let product = integer::product(half, o.ty, frame.int(&o.a, o.ty), frame.int(&o.b, o.ty));
            let sum = integer::low(product, o.ty.bits()) + frame.bits(&o.c, o.ty) + u128::from(frame.carry);
            if o.cc {
                frame.carry = sum >> o.ty.bits() != 0;
            }
            frame.set(o.d, o.ty, sum as i128);
        }
        Op::Mad24(o) => {
            let product = integer::product24(o.half, o.ty, frame.int(&o.a, o.ty), frame.int(&o.b, o.ty));
            let sum = product + frame.int(&o.c, o.ty);
            frame.set(o.d, o.ty, if o.sat { integer::clamp(sum, o.ty) } else { sum });
        }
        Op::Clmad(o) => {
            let product = integer::carryless(o.half, frame.bits(&o.a, o.ty), frame.bits(&o.b, o.ty));
            frame.set(o.d, o.ty, (product ^ frame.bits(&o.c, o.ty)) as i128);
        }
        Op::Sad(o) => {
            let difference = frame.int(&o.a, o.ty) - frame.int(&o.b, o.ty);
            frame.set(o.d, o.ty, difference.abs() + frame.int(&o.c, o.ty));
        }
        Op::Div(o) => frame.set(o.d, o.ty, frame.int(&o.a, o.ty) / frame.int(&o.b, o.ty)),
        Op::Rem(o) => frame.set(o.d, o.ty, frame.int(&o.a, o.ty) % frame.int(&o.b, o.ty)),
        Op::Abs(o) => frame.set(o.d, o.ty, frame.int(&o.a, o.ty).abs()),
        Op::Neg(o) => frame.set(o.d, o.ty, -frame.int(&o.a, o.ty)),
        Op::Min(o) => {
            let least = frame.int(&o.a, o.ty).min(frame.int(&o.b, o.ty));
            frame.set(o.d, o.ty, if o.relu { least.max(0) } else { least });
        }
        Op::Max(o) => {
            let most = frame.int(&o.a, o.ty).max(frame.int(&o.b, o.ty));
            frame.set(o.d, o.ty, if o.relu { most.max(0) } else { most });
        }
        Op::Dp4a(o) => {
            let (a, b) = (word(frame, &o.a), word(frame, &o.b));
            let dot = integer::dot([o.a_type, o.b_type], (a, 8), (b, 0));
            frame.set(o.d, Type::U32, dot + i128::from(word(frame, &o.c)));
        }
        Op::Dp2a(o) => {
            let (a, b) = (word(frame, &o.a), word(frame, &o.b));
            let first = if o.half == MulHalf::Hi { 2 } else { 0 };
            let dot = integer::dot([o.a_type, o.b_type], (a, 16), (b, first));
            frame.set(o.d, Type::U32, dot + i128::from(word(frame, &o.c)));
        }
        other => bitwise(frame, other),
    }
}

/// Arithmetic on the bytes or half words of a register: `f` is the ISA's `t[i]`, of two of them.
fn simd(frame: &mut Frame<'_>, op: &Op) -> bool {
    let average = |sum: i128| if sum >= 0 { (sum + 1) >> 1 } else { sum >> 1 };
    macro_rules! lanes {
        ($o:ident, $bits:literal, $f:expr) => {{
            let how =
                Picked { d: $o.d_type, a: $o.a_type, b: $o.b_type, sat: $o.sat, add: $o.add, bits: $bits };
            picked(frame, how, $o.d, [&$o.a, &$o.b], $o.c, $f)
        }};
    }
    macro_rules! compared {
        ($o:ident, $bits:literal) => {{
            let how =
                Picked { d: Type::U32, a: $o.a_type, b: $o.b_type, sat: false, add: $o.add, bits: $bits };
            let f = |a: i128, b: i128| ordered($o.cmp, Some(a.cmp(&b))).into();
            picked(frame, how, $o.d, [&$o.a, &$o.b], $o.c, f)
        }};
    }
    match op {
        Op::Vadd2(o) => lanes!(o, 16, |a, b| a + b),
        Op::Vadd4(o) => lanes!(o, 8, |a, b| a + b),
        Op::Vsub2(o) => lanes!(o, 16, |a, b| a - b),
        Op::Vsub4(o) => lanes!(o, 8, |a, b| a - b),
        Op::Vavrg2(o) => lanes!(o, 16, |a, b| average(a + b)),
        Op::Vavrg4(o) => lanes!(o, 8, |a, b| average(a + b)),
        Op::Vabsdiff2(o) => lanes!(o, 16, |a, b| (a - b).abs()),
        Op::Vabsdiff4(o) => lanes!(o, 8, |a, b| (a - b).abs()),
        Op::Vmin2(o) => lanes!(o, 16, |a, b| a.min(b)),
        Op::Vmin4(o) => lanes!(o, 8, |a, b| a.min(b)),
        Op::Vmax2(o) => lanes!(o, 16, |a, b| a.max(b)),
        Op::Vmax4(o) => lanes!(o, 8, |a, b| a.max(b)),
        Op::Vset2(o) => compared!(o, 16),
        Op::Vset4(o) => compared!(o, 8),
        _ => return false,
    }
    true
}

/// How elements are picked and put together: the types that say whether they are signed, and their bits.
struct Picked {
    d: Type,
    a: Type,
    b: Type,
    sat: bool,
    add: bool,
    bits: u32,
}

fn picked(
    frame: &mut Frame<'_>,
    how: Picked,
    d: PartDst,
    sources: [&PartSrc; 2],
    c: RegSrc,
    f: impl Fn(i128, i128) -> i128,
) {
    let Picked { bits, sat, add, .. } = how;
    let count = 32 / bits;
    let element = |ty: Type| match (ty, bits) {
        (Type::S32, 8) => Type::S8,
        (Type::S32, _) => Type::S16,
        (_, 8) => Type::U8,
        _ => Type::U16,
    };
    // The elements of `a`, and behind them those of `b`: selectors count through both, the highest first.
    let [low, high] = sources.map(|src| frame.bits(&src.value, Type::B32) as i128);
    let both = low | high << 32;
    let pick = |i: u32, src: &PartSrc, first: u32, ty: Type| {
        let place = match src.selector {
            Some(selector) => selector.positions()[(count - 1 - i) as usize].into(),
            None => first + i,
        };
        integer::wrap(both >> (place * bits), element(ty))
    };
    let written =
        |i: u32| d.selector.is_none_or(|mask| mask.positions().iter().any(|&place| u32::from(place) == i));
    let c = frame.bits(&Src::Reg(c.0), Type::B32) as i128;
    let mut result = c;
    for i in (0..count).filter(|&i| written(i)) {
        let mut t = f(pick(i, sources[0], 0, how.a), pick(i, sources[1], count, how.b));
        if sat {
            let signed = how.d == Type::S32;
            let least = if signed { -(1 << (bits - 1)) } else { 0 };
            t = t.clamp(least, least + (1 << bits) - 1);
        }
        let at = i * bits;
        let all = (1i128 << bits) - 1;
        result = if add { result + t } else { result & !(all << at) | (t & all) << at };
    }
    frame.set(Dst(d.reg), Type::B32, result);
}

fn word(frame: &Frame<'_>, src: &Src) -> u32 {
    frame.bits(src, Type::B32) as u32
}

/// The type of a product.
fn doubled(half: MulHalf, ty: Type) -> Type {
    match (half, ty) {
        (MulHalf::Wide, Type::U16) => Type::U32,
        (MulHalf::Wide, Type::S16) => Type::S32,
        (MulHalf::Wide, Type::U32) => Type::U64,
        (MulHalf::Wide, Type::S32) => Type::S64,
        _ => ty,
    }
}

/// Sets the carry of a sum, or that of a difference, which is set where nothing is borrowed; with or
/// without one coming in.
fn carried(frame: &mut Frame<'_>, cc: bool, ty: Type, sources: [&Src; 2], [minus, with]: [bool; 2]) {
    if !cc {
        return;
    }
    let [a, b] = sources.map(|src| frame.bits(src, ty));
    let incoming = u128::from(with && frame.carry != minus);
    frame.carry = if minus { a >= b + incoming } else { (a + b + incoming) >> ty.bits() != 0 };
}

/// An operation on both halves of a word.
fn pairwise(frame: &mut Frame<'_>, ty: Type, d: Dst, a: &Src, b: &Src, f: impl Fn(i128, i128) -> i128) {
    let element = if ty == Type::S16X2 { Type::S16 } else { Type::U16 };
    let (a, b) = (frame.bits(a, Type::B32) as i128, frame.bits(b, Type::B32) as i128);
    let half = |at: u32| {
        let result = f(integer::wrap(a >> at, element), integer::wrap(b >> at, element));
        integer::low(result, 16) << at
    };
    frame.set(d, Type::B32, (half(0) | half(16)) as i128);
}

/// Logic, shifts and bit fields.
fn bitwise(frame: &mut Frame<'_>, op: &Op) {
    match op {
        Op::And(o) => frame.set(o.d, o.ty, (frame.bits(&o.a, o.ty) & frame.bits(&o.b, o.ty)) as i128),
        Op::Or(o) => frame.set(o.d, o.ty, (frame.bits(&o.a, o.ty) | frame.bits(&o.b, o.ty)) as i128),
        Op::Xor(o) => frame.set(o.d, o.ty, (frame.bits(&o.a, o.ty) ^ frame.bits(&o.b, o.ty)) as i128),
        Op::Not(o) => frame.set(o.d, o.ty, !frame.bits(&o.a, o.ty) as i128),
        Op::Cnot(o) => frame.set(o.d, o.ty, (frame.bits(&o.a, o.ty) == 0).into()),
        Op::Lop3(o) => {
            let [a, b, c] = [&o.a, &o.b, &o.c].map(|src| frame.bits(src, o.ty));
            let result = integer::table(a, b, c, frame.bits(&o.table, Type::B8));
            let q = o.q.as_ref().map(|q| frame.holds(q));
            if let Some(d) = o.d.first {
                frame.set(Dst(d), o.ty, result as i128);
            }
            if let Some(Some(p)) = o.d.second {
                frame.set_pred(p, combine(o.bool_op, result != 0, q));
            }
        }
        Op::Shl(o) => {
            let count = word(frame, &o.b).min(64);
            frame.set(o.d, o.ty, (frame.bits(&o.a, o.ty) << count) as i128);
        }
        Op::Shr(o) => {
            let count = word(frame, &o.b).min(64);
            frame.set(o.d, o.ty, frame.int(&o.a, o.ty) >> count);
        }
        Op::Shf(o) => {
            let [a, b, c] = [&o.a, &o.b, &o.c].map(|src| frame.bits(src, o.ty));
            frame.set(o.d, o.ty, integer::funnel(o.direction, o.mode, a, b, c) as i128);
        }
        Op::Bfe(o) => {
            let (position, length) = (word(frame, &o.b).into(), word(frame, &o.c).into());
            frame.set(o.d, o.ty, integer::extract(o.ty, frame.int(&o.a, o.ty), position, length));
        }
        Op::Bfi(o) => {
            let (position, length) = (word(frame, &o.c).into(), word(frame, &o.length).into());
            let (a, b) = (frame.bits(&o.a, o.ty), frame.bits(&o.b, o.ty));
            frame.set(o.d, o.ty, integer::insert(o.ty.bits(), a, b, position, length) as i128);
        }
        Op::Popc(o) => frame.set(o.d, Type::U32, frame.bits(&o.a, o.ty).count_ones().into()),
        Op::Clz(o) => {
            let zeros = frame.bits(&o.a, o.ty).leading_zeros() - (128 - o.ty.bits());
            frame.set(o.d, Type::U32, zeros.into());
        }
        Op::Brev(o) => {
            let reversed = frame.bits(&o.a, o.ty).reverse_bits() >> (128 - o.ty.bits());
            frame.set(o.d, o.ty, reversed as i128);
        }
        Op::Bfind(o) => {
            frame.set(o.d, Type::U32, integer::find(o.ty, o.shiftamt, frame.int(&o.a, o.ty)) as i128);
        }
        Op::Fns(o) => {
            let (mask, base) = (frame.bits(&o.mask, Type::B32), frame.bits(&o.base, Type::B32));
            let found = integer::find_nth(mask, base, frame.int(&o.offset, Type::S32));
            frame.set(o.d, o.ty, found as i128);
        }
        Op::Szext(o) => {
            let (a, count) = (frame.bits(&o.a, o.ty), frame.bits(&o.b, Type::U32));
            frame.set(o.d, o.ty, integer::extend(o.mode, o.ty, a, count));
        }
        Op::Bmsk(o) => {
            let (a, b) = (frame.bits(&o.a, Type::U32), frame.bits(&o.b, Type::U32));
            frame.set(o.d, o.ty, integer::mask(o.mode, a, b) as i128);
        }
        Op::Prmt(o) => {
            let [a, b, c] = [&o.a, &o.b, &o.c].map(|src| frame.bits(src, o.ty));
            frame.set(o.d, o.ty, integer::permute(o.mode, a, b, c) as i128);
        }
        other => panic!("`{}` is not generated", other.name()),
    }
}
