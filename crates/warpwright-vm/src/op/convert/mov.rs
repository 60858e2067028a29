//! `mov`: copies, packs and unpacks.

use crate::decode::{Decoder, File, Rows};
use crate::machine::{Inst, LANES, Machine, NONE, Step, lanewise};
use crate::native::{Lane, Operation};
use crate::op::special::Constancy;
use crate::simd::{LaneOp, lane_op, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::convert::Mov;

lane_op! {
    Copy32(a: u32) -> u32 { a } => Some(Operation::Copy(Lane::U32));
    Copy64(a: u64) -> u64 { a } => Some(Operation::Copy(Lane::U64));
    CopyPredicate(a: bool) -> bool { a } => Some(Operation::CopyPredicate);
    PackHalves(a: u32, b: u32) -> u32 { a & 0xffff | b << 16 } => Some(Operation::PackHalves);
    PackWords(a: u32, b: u32) -> u64 { u64::from(a) | u64::from(b) << 32 } => Some(Operation::PackWords);
}

/// A word into two halves: the low one to `d`, the high one to `b`, either of which may be [`NONE`].
struct SplitWord;

impl LaneOp for SplitWord {
    const NATIVE: Option<Operation> = Some(Operation::SplitHalves);

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let words = *m.registers.row32(i.a);
        if i.d != NONE {
            m.registers.set32(i.d, &lanewise(&words, |word| word & 0xffff), m.mask);
        }
        if i.b != NONE {
            m.registers.set32(i.b, &lanewise(&words, |word| word >> 16), m.mask);
        }
        Step::Next
    }
}

/// 64 bits into two words, as [`SplitWord`] does.
struct SplitPair;

impl LaneOp for SplitPair {
    const NATIVE: Option<Operation> = Some(Operation::SplitPair);

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let pairs = *m.registers.row64(i.a);
        if i.d != NONE {
            m.registers.set32(i.d, &lanewise(&pairs, |pair| pair as u32), m.mask);
        }
        if i.b != NONE {
            m.registers.set32(i.b, &lanewise(&pairs, |pair| (pair >> 32) as u32), m.mask);
        }
        Step::Next
    }
}

pub(super) fn mov(op: &Mov, d: &mut Decoder<'_, '_>) {
    match (&op.d, &op.a) {
        (Dsts::One(reg), Srcs::One(src)) => copy(d, *reg, src, op.ty),
        (Dsts::One(reg), Srcs::Many(parts)) => pack(d, *reg, parts, op.ty),
        (Dsts::Many(parts), Srcs::One(src)) if op.vector.is_none() => unpack(d, parts, src, op.ty),
        (Dsts::Many(to), Srcs::Many(from)) => vector(d, to, from, op.ty),
        (Dsts::Many(to), Srcs::One(src)) => {
            for reg in to.iter().flatten() {
                copy(d, *reg, src, op.ty);
            }
        }
        (Dsts::Sink, _) => d.emit_nothing(),
    }
}

/// All sources are read before a destination is written: the vectors may share registers.
fn vector(d: &mut Decoder<'_, '_>, to: &[Option<Reg>], from: &[Src], ty: Type) {
    let rows: Vec<(File, u32, u32)> = to
        .iter()
        .zip(from)
        .filter_map(|(reg, src)| {
            let (file, row) = d.register((*reg)?);
            let source = if file == File::Wide { d.src64(src, ty) } else { d.src32(src, ty) };
            Some((file, row, source))
        })
        .collect();
    d.emit_boxed(move |m, _| {
        let values: Vec<[u64; LANES]> = rows
            .iter()
            .map(|&(file, _, source)| match file {
                File::Wide => *m.registers.row64(source),
                _ => lanewise(m.registers.row32(source), u64::from),
            })
            .collect();
        for (&(file, row, _), values) in rows.iter().zip(&values) {
            match file {
                File::Wide => m.registers.set64(row, values, m.mask),
                _ => m.registers.set32(row, &lanewise(values, |value| value as u32), m.mask),
            }
        }
        Step::Next
    });
}

fn copy(d: &mut Decoder<'_, '_>, reg: Reg, src: &Src, ty: Type) {
    let (file, row) = d.register(reg);
    if let Src::Special(special) = src
        && (file != File::Narrow || Constancy::of(special.register) == Constancy::None)
    {
        return crate::op::special::emit(d, *special, file, row);
    }
    match file {
        File::Narrow => {
            let a = d.src32(src, ty);
            d.emit(lanes::<Copy32>(), Rows { d: row, a, ..Rows::default() });
        }
        File::Wide => {
            let a = d.src64(src, ty);
            d.emit(lanes::<Copy64>(), Rows { d: row, a, ..Rows::default() });
        }
        File::Predicate => {
            let a = d.predicate(src);
            d.emit(lanes::<CopyPredicate>(), Rows { d: row, a, ..Rows::default() });
        }
        File::Double => {
            let a = d.src128(src, ty);
            super::copy64(d, row, a);
            super::copy64(d, row + 1, a + 1);
        }
    }
}

/// The register row of a source of up to 64 bits.
#[derive(Clone, Copy)]
enum SourceRow {
    Narrow(u32),
    Wide(u32),
}

/// `d = {parts}`, the first in the lowest bits.
fn pack(d: &mut Decoder<'_, '_>, reg: Reg, parts: &[Src], ty: Type) {
    let width = ty.bits() / parts.len() as u32;
    let (file, row) = d.register(reg);
    if let [low, high] = parts
        && (ty.bits(), file) == (2 * width, if width == 16 { File::Narrow } else { File::Wide })
        && matches!(width, 16 | 32)
    {
        let (a, b) = (d.src32(low, bits(width)), d.src32(high, bits(width)));
        let pack = if width == 16 { lanes::<PackHalves>() } else { lanes::<PackWords>() };
        return d.emit(pack, Rows { d: row, a, b, ..Rows::default() });
    }
    let parts: Vec<SourceRow> = parts
        .iter()
        .map(|part| {
            if width == 64 {
                SourceRow::Wide(d.src64(part, Type::B64))
            } else {
                SourceRow::Narrow(d.src32(part, bits(width)))
            }
        })
        .collect();
    d.emit_boxed(move |m, _| {
        let mut out = [0u128; LANES];
        for (index, part) in parts.iter().enumerate() {
            let shift = width * index as u32;
            for (lane, out) in out.iter_mut().enumerate() {
                let value = match *part {
                    SourceRow::Narrow(row) => u128::from(m.registers.row32(row)[lane]),
                    SourceRow::Wide(row) => u128::from(m.registers.row64(row)[lane]),
                };
                let ones = (1u128 << width) - 1;
                *out |= (value & ones) << shift;
            }
        }
        match file {
            File::Narrow | File::Predicate => {
                m.registers.set32(row, &lanewise(&out, |value| value as u32), m.mask);
            }
            File::Wide => m.registers.set64(row, &lanewise(&out, |value| value as u64), m.mask),
            File::Double => {
                m.registers.set64(row, &lanewise(&out, |value| value as u64), m.mask);
                m.registers.set64(row + 1, &lanewise(&out, |value| (value >> 64) as u64), m.mask);
            }
        }
        Step::Next
    });
}

/// The untyped type of a width.
fn bits(width: u32) -> Type {
    match width {
        8 => Type::B8,
        16 => Type::B16,
        _ => Type::B32,
    }
}

/// `{parts} = a`, the first from the lowest bits.
fn unpack(d: &mut Decoder<'_, '_>, parts: &[Option<Reg>], src: &Src, ty: Type) {
    let width = ty.bits() / parts.len() as u32;
    let source = match ty.bits() {
        ..=32 => SourceRow::Narrow(d.src32(src, ty)),
        _ => SourceRow::Wide(d.src64(src, ty)),
    };
    let double = ty.bits() == 128;
    let parts: Vec<Option<(File, u32)>> = parts.iter().map(|part| part.map(|reg| d.register(reg))).collect();
    let narrow = parts.iter().flatten().all(|&(file, _)| file == File::Narrow);
    if let ([low, high], true, 16 | 32) = (&parts[..], narrow, width) {
        let (split, a) = match source {
            SourceRow::Narrow(a) => (lanes::<SplitWord>(), a),
            SourceRow::Wide(a) => (lanes::<SplitPair>(), a),
        };
        let row = |part: &Option<(File, u32)>| part.map_or(NONE, |(_, row)| row);
        return d.emit(split, Rows { d: row(low), a, b: row(high), ..Rows::default() });
    }
    d.emit_boxed(move |m, _| {
        let value: [u128; LANES] = std::array::from_fn(|lane| match source {
            SourceRow::Narrow(row) => m.registers.row32(row)[lane].into(),
            SourceRow::Wide(row) => {
                let high = if double { m.registers.row64(row + 1)[lane] } else { 0 };
                u128::from(m.registers.row64(row)[lane]) | u128::from(high) << 64
            }
        });
        for (index, part) in parts.iter().enumerate() {
            let Some((file, row)) = *part else { continue };
            let ones = (1u128 << width) - 1;
            let values = lanewise(&value, |value| value >> (width * index as u32) & ones);
            match file {
                File::Wide => m.registers.set64(row, &lanewise(&values, |value| value as u64), m.mask),
                _ => m.registers.set32(row, &lanewise(&values, |value| value as u32), m.mask),
            }
        }
        Step::Next
    });
}
