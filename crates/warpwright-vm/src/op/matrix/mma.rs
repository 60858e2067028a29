//! `mma` and `mma.sp`: the parts of the instruction become a [`Product`].

use super::product::{Arithmetic, Held, Integer, Product, Results, Sparse};
use super::scaled::ScaleRows;
use crate::decode::Decoder;
use crate::tensor::integer::{BitProduct, Overflow};
use crate::tensor::{Accumulator, FloatElement, QuadSide, Size, Sparsity, Spread};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::matrix::{BitOp, Mma, MmaKind, MmaShape, MmaSp, MmaSpOrdered, ScaleVector};

/// The parts that dense, sparse and `wmma` products share.
pub(crate) struct Form<'a> {
    pub(crate) shape: MmaShape,
    /// Types of `d`, `a`, `b` and `c`.
    pub(crate) types: [Type; 4],
    pub(crate) satfinite: bool,
    pub(crate) bit_op: Option<BitOp>,
    pub(crate) rounding: Option<Rounding>,
    pub(crate) d: &'a Dsts,
    pub(crate) a: &'a Srcs,
    pub(crate) b: &'a Srcs,
    pub(crate) c: &'a Srcs,
    pub(crate) scales: Option<ScaleRows>,
}

/// The form of an `mma`, whose fields have the usual names.
macro_rules! form {
    ($op:ident, bit_op: $bit_op:expr, rounding: $rounding:expr, scales: $scales:expr) => {
        Form {
            shape: $op.shape,
            types: [$op.d_type, $op.a_type, $op.b_type, $op.c_type],
            satfinite: $op.satfinite,
            bit_op: $bit_op,
            rounding: $rounding,
            d: &$op.d,
            a: &$op.a,
            b: &$op.b,
            c: &$op.c,
            scales: $scales,
        }
    };
}

/// The scales of an `mma` that has some.
macro_rules! scales {
    ($op:ident, $d:ident) => {
        match (&$op.scale_a, &$op.selector_a, &$op.scale_b, &$op.selector_b) {
            (Some(a), Some(a_selector), Some(b), Some(b_selector)) => {
                let fours = matches!($op.kind, Some(MmaKind::MxF4 | MmaKind::MxF4NvF4));
                let blocks = match $op.scale_vec {
                    Some(ScaleVector::X4) => 4,
                    Some(ScaleVector::X2) => 2,
                    None if fours => 2,
                    Some(ScaleVector::X1) | None => 1,
                };
                let fractions = $op.scale_type == Some(Type::UE4M3);
                Some(ScaleRows::new($d, ((a, a_selector), (b, b_selector)), blocks, fractions, fours))
            }
            _ => None,
        }
    };
}

pub(super) fn dense(op: &Mma, d: &mut Decoder<'_, '_>) {
    let quad = op.shape == MmaShape::M8N8K4 && op.a_type == Type::F16;
    let layouts = (op.a_layout == Layout::Row, op.b_layout == Layout::Row);
    let scales = scales!(op, d);
    form!(op, bit_op: op.bit_op, rounding: op.rounding, scales: scales).emit(
        d,
        quad.then_some(layouts),
        None,
    );
}

pub(super) fn sparse(op: &MmaSp, d: &mut Decoder<'_, '_>) {
    form!(op, bit_op: None, rounding: None, scales: None).emit(d, None, Some((op.e, &op.f, false)));
}

pub(super) fn sparse_ordered(op: &MmaSpOrdered, d: &mut Decoder<'_, '_>) {
    let scales = scales!(op, d);
    form!(op, bit_op: None, rounding: None, scales: scales).emit(d, None, Some((op.e, &op.f, true)));
}

impl Form<'_> {
    /// Emits the product. `quad`: four at once, with the factors row-major or not. `sparse`: metadata,
    /// selector, and whether the metadata is in order.
    pub(crate) fn emit(
        &self,
        d: &mut Decoder<'_, '_>,
        quad: Option<(bool, bool)>,
        sparse: Option<(RegSrc, &Src, bool)>,
    ) {
        let Some(arithmetic) = self.arithmetic() else {
            return d.unsupported("mma", "factors of these types: use `f16` or `bf16`");
        };
        let [d_type, a_type, b_type, c_type] = self.types;
        let (m, n, k) = (self.shape.m() as usize, self.shape.n() as usize, self.shape.k() as usize);
        let kept = if sparse.is_some() { k / 2 } else { k };
        // Bits are kept in words.
        let word = if a_type == Type::B1 { 32 } else { 1 };
        let pairs = self.scales.is_some_and(|scales| scales.pairs);
        let in_register = |ty| match ty {
            Type::E2M1 | Type::E2M3 | Type::E3M2 if !pairs => 4,
            _ => packed(ty),
        };
        let (a_packed, b_packed) = (in_register(a_type), in_register(b_type));
        let (a, b, c) =
            (registers(d, self.a, a_type), registers(d, self.b, b_type), registers(d, self.c, c_type));
        let rows = self.d.as_slice().map(|reg| reg.map(|reg| d.row(reg))).collect();
        let [left, right, added, result] = match quad {
            None => [
                Spread::left(m, kept / word, a_packed, a.len() * a_packed),
                Spread::right(k / word, n, b_packed, b.len() * b_packed),
                Spread::accumulator(m, n),
                Spread::accumulator(m, n),
            ],
            Some((a_rows, b_rows)) => [
                Spread::quad(QuadSide::Left { row_major: a_rows }),
                Spread::quad(QuadSide::Right { row_major: b_rows }),
                Spread::quad(QuadSide::Accumulator { wide: c_type == Type::F32 }),
                Spread::quad(QuadSide::Accumulator { wide: d_type == Type::F32 }),
            ],
        };
        let sparse = sparse.map(|(metadata, selector, ordered)| Sparse {
            sparsity: Sparsity { k, bits: 32 / a_packed as u32, selector: 0 },
            metadata: d.row(metadata.0),
            selector: d.src32(selector, Type::U32),
            ordered,
        });
        Product {
            arithmetic,
            size: Size { m, n, k },
            count: if quad.is_some() { 4 } else { 1 },
            a: Held { rows: a, spread: left },
            b: Held { rows: b, spread: right },
            c: Held { rows: c, spread: added },
            d: Results { rows, spread: result },
            sparse,
        }
        .emit(d);
    }

    fn arithmetic(&self) -> Option<Arithmetic> {
        let [d, a, b, c] = self.types;
        if let (Some(a), Some(b)) = (float(a), float(b)) {
            if let Some(scales) = self.scales {
                return Some(Arithmetic::Scaled { a, b, scales });
            }
            let sums = |ty| if ty == Type::F16 { Accumulator::F16 } else { Accumulator::F32 };
            return Some(Arithmetic::Float { a, b, c: sums(c), d: sums(d) });
        }
        let integer = |ty: Type| Integer { bits: ty.bits(), signed: ty.is_signed() };
        Some(match a {
            Type::F64 => Arithmetic::Double(self.rounding.unwrap_or(Rounding::Rn)),
            Type::B1 if self.bit_op == Some(BitOp::And) => Arithmetic::Bits(BitProduct::And),
            Type::B1 => Arithmetic::Bits(BitProduct::Xor),
            _ if a.is_integer() && b.is_integer() => {
                let overflow = if self.satfinite { Overflow::Saturate } else { Overflow::Wrap };
                Arithmetic::Integer { a: integer(a), b: integer(b), overflow }
            }
            _ => return None,
        })
    }
}

pub(crate) fn float(ty: Type) -> Option<FloatElement> {
    Some(match ty {
        Type::F16 => FloatElement::F16,
        Type::BF16 => FloatElement::BF16,
        Type::TF32 => FloatElement::TF32,
        Type::E4M3 => FloatElement::E4M3,
        Type::E5M2 => FloatElement::E5M2,
        Type::E3M2 => FloatElement::E3M2,
        Type::E2M3 => FloatElement::E2M3,
        Type::E2M1 => FloatElement::E2M1,
        _ => return None,
    })
}

/// Elements of a factor in a register; bits are counted in words.
pub(crate) fn packed(ty: Type) -> usize {
    match ty {
        Type::B1 | Type::F64 => 1,
        _ => (32 / ty.bits()) as usize,
    }
}

/// The rows of a fragment.
fn registers(d: &mut Decoder<'_, '_>, srcs: &Srcs, ty: Type) -> Box<[u32]> {
    let constant = match ty {
        Type::F32 | Type::S32 => ty,
        _ => Type::U32,
    };
    srcs.as_slice()
        .iter()
        .map(|src| if ty == Type::F64 { d.src64(src, ty) } else { d.src32(src, constant) })
        .collect()
}
