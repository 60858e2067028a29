//! Matrix products of a warp with opaque fragments: `wmma`.
//!
//! The ISA does not specify which elements a lane holds: a program may apply the same operation to all of them, store
//! them, or multiply. It specifies the number of registers: see [`fragment`].

use super::matrix::{BitOp, Fragment, MmaShape};
use super::{Convergence, InstrReader, ModifierField, Rule, instruction};
use crate::ir::*;
use crate::op::Check;
use crate::print::Writer;

/// A matrix of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WmmaMatrix {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The addend or the result.
    Accumulator,
}

/// The types of a product: `.d.c` for `f16` factors, `.d.a.b.c` for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WmmaTypes {
    /// Of the result.
    pub d: Type,
    /// Of the factors, if specified.
    pub factors: Option<(Type, Type)>,
    /// Of the addend.
    pub c: Type,
}

impl WmmaTypes {
    /// Type of the left factor.
    pub fn a(self) -> Type {
        self.factors.map_or(Type::F16, |(a, _)| a)
    }

    /// Type of the right factor.
    pub fn b(self) -> Type {
        self.factors.map_or(Type::F16, |(_, b)| b)
    }
}

impl ModifierField for WmmaTypes {
    fn read(reader: &mut InstrReader<'_>) -> Option<Self> {
        let d = reader.modifier()?;
        let second = reader.modifier()?;
        Some(match reader.modifier_opt() {
            None => WmmaTypes { d, factors: None, c: second },
            Some(third) => WmmaTypes { d, factors: Some((second, third)), c: reader.modifier()? },
        })
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.modifier(self.d.name());
        if let Some((a, b)) = self.factors {
            out.modifier(a.name());
            out.modifier(b.name());
        }
        out.modifier(self.c.name());
    }
}

instruction! {
    /// Loads a left factor; its rows (or columns) are `stride` elements apart.
    pub struct WmmaLoadA("wmma.load.a.sync.aligned")
    /// Loads a right factor; its rows (or columns) are `stride` elements apart.
    pub struct WmmaLoadB("wmma.load.b.sync.aligned")
    /// Loads an addend; its rows (or columns) are `stride` elements apart.
    pub struct WmmaLoadC("wmma.load.c.sync.aligned") {
        layout: Layout,
        shape: MmaShape,
        space: Option<Space>,
        ty: Type,
    }(r: Dsts, p: Address, stride: Option<Src>) -> unknown,
        needs: |op, needs| {
            matrix_needs(needs, Self::MATRIX, op.shape, op.ty);
            space_needs(needs, op.space);
        },
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            if check_matrix(check, Self::MATRIX, op.shape, op.ty) {
                check_layout(check, Self::MATRIX, op.shape, op.layout);
                fragment(Self::MATRIX, op.shape, op.ty).check_dsts(check, "r", &op.r);
            }
            check_place(check, op.space, &op.p, &op.stride);
        };

    /// Stores a result; its rows (or columns) are `stride` elements apart.
    pub struct WmmaStoreD("wmma.store.d.sync.aligned") {
        layout: Layout,
        shape: MmaShape,
        space: Option<Space>,
        ty: Type,
    }(p: Address, r: Srcs, stride: Option<Src>) -> nothing,
        needs: |op, needs| {
            matrix_needs(needs, WmmaMatrix::Accumulator, op.shape, op.ty);
            space_needs(needs, op.space);
        },
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            if check_matrix(check, WmmaMatrix::Accumulator, op.shape, op.ty) {
                fragment(WmmaMatrix::Accumulator, op.shape, op.ty).check_srcs(check, "r", &op.r);
            }
            check_place(check, op.space, &op.p, &op.stride);
        };

    /// `d = a · b + c` by the whole warp.
    pub struct WmmaMma("wmma.mma.sync.aligned") {
        bit_op: Option<BitOp>,
        popc: bool = "popc",
        a_layout: Layout,
        b_layout: Layout,
        shape: MmaShape,
        rounding: Option<Rounding>,
        types: WmmaTypes,
        satfinite: bool = "satfinite",
    }(d: Dsts, a: Srcs, b: Srcs, c: Srcs) -> unknown,
        needs: |op, needs| {
            matrix_needs(needs, WmmaMatrix::A, op.shape, op.types.a());
            needs.both_if(op.bit_op == Some(BitOp::And), "`.and.popc`", (7, 1), 80);
        },
        convergence: |_| Convergence::Warp;
}

/// The registers in which a lane holds its part of a matrix; meaningful if the shape exists with that type.
pub fn fragment(matrix: WmmaMatrix, shape: MmaShape, ty: Type) -> Fragment {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let elements = match matrix {
        WmmaMatrix::A => m * k,
        WmmaMatrix::B => k * n,
        WmmaMatrix::Accumulator => m * n,
    };
    match (matrix, ty) {
        // Factors of this type take eight registers in every shape: some elements are held twice.
        (WmmaMatrix::A | WmmaMatrix::B, Type::F16) => Fragment { register: Type::F16X2, count: 8 },
        _ if ty.is_float() || ty == Type::S32 => Fragment::spread(elements, ty, ty.bits()),
        _ => Fragment { register: Type::U32, ..Fragment::spread(elements, ty, ty.bits()) },
    }
}

/// First PTX version and first target of a matrix of that shape and type, where it exists.
fn introduced(matrix: WmmaMatrix, shape: MmaShape, ty: Type) -> Option<((u8, u8), u16)> {
    use MmaShape::*;
    use Type::*;
    let factor = matrix != WmmaMatrix::Accumulator;
    Some(match (shape, ty) {
        (M16N16K16, F16) => ((6, 0), 70),
        (M16N16K16, F32) if !factor => ((6, 0), 70),
        (M8N32K16 | M32N8K16, F16) => ((6, 1), 70),
        (M8N32K16 | M32N8K16, F32) if !factor => ((6, 1), 70),
        (M16N16K16 | M8N32K16 | M32N8K16, BF16) if factor => ((7, 0), 80),
        (M16N16K16 | M8N32K16 | M32N8K16, S8 | U8) if factor => ((6, 3), 72),
        (M16N16K16 | M8N32K16 | M32N8K16, S32) if !factor => ((6, 3), 72),
        (M16N16K8, TF32) if factor => ((7, 0), 80),
        (M16N16K8, F32) if !factor => ((7, 0), 80),
        (M8N8K4, F64) => ((7, 0), 80),
        (M8N8K32, S4 | U4) if factor => ((6, 3), 75),
        (M8N8K128, B1) if factor => ((6, 3), 75),
        (M8N8K32 | M8N8K128, S32) if !factor => ((6, 3), 75),
        _ => return None,
    })
}

/// Whether factors of that shape must be row-major (`a`) and column-major (`b`).
fn has_fixed_layout(shape: MmaShape) -> bool {
    matches!(shape, MmaShape::M8N8K32 | MmaShape::M8N8K128)
}

fn check_matrix(check: &mut Check<'_>, matrix: WmmaMatrix, shape: MmaShape, ty: Type) -> bool {
    let exists = introduced(matrix, shape, ty).is_some();
    if !exists {
        let what = if matrix == WmmaMatrix::Accumulator { "accumulator" } else { "factor" };
        check.combination(false, format_args!("there is no {what} of shape `{shape}` and type `{ty}`"));
    }
    exists
}

fn check_layout(check: &mut Check<'_>, matrix: WmmaMatrix, shape: MmaShape, layout: Layout) {
    let fits = match matrix {
        WmmaMatrix::A => layout == Layout::Row,
        WmmaMatrix::B => layout == Layout::Col,
        WmmaMatrix::Accumulator => true,
    };
    check.combination(
        fits || !has_fixed_layout(shape),
        "factors of fewer than eight bits are `.row` on the left and `.col` on the right",
    );
}

fn check_place(check: &mut Check<'_>, space: Option<Space>, p: &Address, stride: &Option<Src>) {
    check.combination(
        matches!(space, None | Some(Space::Global | Space::Shared | Space::SharedCta)),
        "the matrix is in `.global`, `.shared` or `.shared::cta`",
    );
    check.wide_address("p", p, space);
    check.src("stride", stride, Type::U32);
}

fn matrix_needs(needs: &mut Needs, matrix: WmmaMatrix, shape: MmaShape, ty: Type) {
    if let Some((version, sm)) = introduced(matrix, shape, ty) {
        needs.both("`wmma` of this shape and type", version, sm);
    }
}

fn space_needs(needs: &mut Needs, space: Option<Space>) {
    needs.version_if(space == Some(Space::SharedCta), "`::cta`", 7, 8);
}

impl WmmaLoadA {
    const MATRIX: WmmaMatrix = WmmaMatrix::A;
}

impl WmmaLoadB {
    const MATRIX: WmmaMatrix = WmmaMatrix::B;
}

impl WmmaLoadC {
    const MATRIX: WmmaMatrix = WmmaMatrix::Accumulator;
}

impl WmmaMma {
    /// Whether these sums go with the factors.
    fn accumulators_fit(&self) -> bool {
        use Type::*;
        let sums = (self.types.d, self.types.c);
        match self.types.factors {
            None => matches!(sums, (F16 | F32, F16 | F32)),
            // `f16` factors are not said.
            Some((F16, _)) => false,
            Some((BF16 | TF32, _)) => sums == (F32, F32),
            Some((F64, _)) => sums == (F64, F64),
            Some(_) => sums == (S32, S32),
        }
    }
}

impl Rule for WmmaMma {
    fn check(&self, check: &mut Check<'_>) {
        let WmmaTypes { d, c, .. } = self.types;
        let (a, b) = (self.types.a(), self.types.b());
        check.combination(a == b, "both factors have the same type");
        check.combination(
            self.accumulators_fit(),
            "the types are `.d.c` of `.f16` or `.f32` for factors of `.f16`, and else `.d.a.b.c`, with sums of `.f32` for `.bf16` and `.tf32`, of `.f64` for `.f64`, of `.s32` for integers and bits",
        );
        let integers = matches!(a, Type::S8 | Type::U8 | Type::S4 | Type::U4);
        check.combination(!self.satfinite || integers, "`.satfinite` is for integers");
        check.combination(
            match self.rounding {
                None => true,
                Some(Rounding::Rn | Rounding::Rz | Rounding::Rm | Rounding::Rp) => a == Type::F64,
                Some(_) => false,
            },
            "`.rn`, `.rz`, `.rm` or `.rp` is for `.f64`",
        );
        let bits = a == Type::B1;
        check.combination(
            bits == self.bit_op.is_some() && bits == self.popc,
            "single bits take `.xor.popc` or `.and.popc`, and nothing else does",
        );
        check_layout(check, WmmaMatrix::A, self.shape, self.a_layout);
        check_layout(check, WmmaMatrix::B, self.shape, self.b_layout);
        if check_matrix(check, WmmaMatrix::A, self.shape, a)
            && check_matrix(check, WmmaMatrix::B, self.shape, b)
        {
            fragment(WmmaMatrix::A, self.shape, a).check_srcs(check, "a", &self.a);
            fragment(WmmaMatrix::B, self.shape, b).check_srcs(check, "b", &self.b);
        }
        if check_matrix(check, WmmaMatrix::Accumulator, self.shape, d) {
            fragment(WmmaMatrix::Accumulator, self.shape, d).check_dsts(check, "d", &self.d);
        }
        if check_matrix(check, WmmaMatrix::Accumulator, self.shape, c) {
            fragment(WmmaMatrix::Accumulator, self.shape, c).check_srcs(check, "c", &self.c);
        }
    }
}
