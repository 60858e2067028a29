//! How what an executed instruction computes is known. The facts stand with the arithmetic: [`bound`] and
//! [`TensorCore::evidence`]; here instructions find theirs.

use super::{Class, Fidelity};
use crate::num::approx::bound;
use crate::op::matrix::float;
use crate::tensor::{Evidence, ProductKind, TensorCore};
use warpwright_ptx::ir::Type::{self, *};
use warpwright_ptx::op::family::{
    BulkCopy, Convert, Family, Functions, Matrix, Memory, Tcgen05, Texture, Wgmma, Wmma,
};
use warpwright_ptx::op::matrix::MmaShape;
use warpwright_ptx::op::{Op, tcgen05};

const NO_BOUND: &str = "the ISA states no bound of the error";
const ONE_LOCATION: &str = "a value that is combined with no other stays as it is";
const SUBNORMALS: &str = "subnormal numbers, as `red` and `cp.reduce.async.bulk` have them";
const WEIGHTS: &str =
    "linear filters: weights with 8 bits behind the point; the scaled coordinate is not rounded";

/// Of an instruction, provided that it is executed.
pub(super) fn of(op: &Op, core: TensorCore, sm: u16) -> Fidelity {
    let product = |kind, types: [Type; 3]| product(core, sm, kind, types);
    match op.family() {
        Family::Functions(op) => function(op),
        Family::Matrix(Matrix::Mma(op)) => {
            let kind = match op.block_scale {
                true => ProductKind::Scaled,
                false if op.shape == MmaShape::M8N8K4 && op.a_type == F16 => ProductKind::Quad,
                false => ProductKind::Dense,
            };
            product(kind, [op.d_type, op.a_type, op.b_type])
        }
        Family::Matrix(Matrix::MmaSp(op)) => product(ProductKind::Sparse, [op.d_type, op.a_type, op.b_type]),
        Family::Matrix(Matrix::MmaSpOrdered(op)) => {
            let kind = if op.block_scale { ProductKind::Scaled } else { ProductKind::Sparse };
            product(kind, [op.d_type, op.a_type, op.b_type])
        }
        Family::Matrix(Matrix::Ldmatrix(_) | Matrix::Stmatrix(_) | Matrix::Movmatrix(_)) => Fidelity::EXACT,
        Family::Wmma(Wmma::WmmaMma(op)) => {
            product(ProductKind::Dense, [op.types.d, op.types.a(), op.types.b()])
        }
        // The ISA leaves open which lane holds which element, and no program can tell.
        Family::Wmma(Wmma::WmmaLoadA(_) | Wmma::WmmaLoadB(_) | Wmma::WmmaLoadC(_) | Wmma::WmmaStoreD(_)) => {
            Fidelity::EXACT
        }
        Family::Wgmma(Wgmma::WgmmaMmaAsync(op)) => {
            product(ProductKind::Warpgroup, [op.d_type, op.a_type, op.b_type])
        }
        Family::Wgmma(Wgmma::WgmmaMmaAsyncSp(op)) => {
            product(ProductKind::SparseWarpgroup, [op.d_type, op.a_type, op.b_type])
        }
        Family::Wgmma(Wgmma::WgmmaFence(_) | Wgmma::WgmmaCommitGroup(_) | Wgmma::WgmmaWaitGroup(_)) => {
            Fidelity::EXACT
        }
        Family::Tcgen05(op) => match op {
            Tcgen05::Tcgen05Mma(op) => with_tensor_memory(core, op.kind),
            Tcgen05::Tcgen05MmaWs(op) => with_tensor_memory(core, op.kind),
            _ => Fidelity::EXACT,
        },
        Family::Memory(Memory::MultimemLdReduce(op)) if op.ty.is_float() => assumed(ONE_LOCATION),
        Family::Memory(Memory::MultimemRed(op)) if op.ty.is_float() => assumed(SUBNORMALS),
        Family::BulkCopy(BulkCopy::MultimemCpReduceAsyncBulk(op)) if op.ty.is_float() => assumed(SUBNORMALS),
        Family::Convert(Convert::CvtRs(_)) => {
            assumed("which random bits a value takes, as far as the ISA leaves it open")
        }
        Family::Texture(Texture::Tex(op)) if op.c_type == F32 => Fidelity::new(Class::Bounded, WEIGHTS),
        Family::Texture(_)
        | Family::Convert(_)
        | Family::Sums(_)
        | Family::Products(_)
        | Family::Signs(_)
        | Family::Extrema(_)
        | Family::Logic(_)
        | Family::Compare(_)
        | Family::Memory(_)
        | Family::Stack(_)
        | Family::Atomic(_)
        | Family::Control(_)
        | Family::Sync(_)
        | Family::Warp(_)
        | Family::AsyncCopy(_)
        | Family::Mbarrier(_)
        | Family::BulkCopy(_)
        | Family::Cluster(_)
        | Family::Video(_) => Fidelity::EXACT,
    }
}

fn assumed(what: &'static str) -> Fidelity {
    Fidelity::new(Class::Assumed, what)
}

fn function(op: Functions<'_>) -> Fidelity {
    let bound = match op {
        Functions::Div(op) if op.approx => bound::DIV,
        Functions::Div(op) if op.full => bound::DIV_FULL,
        Functions::Rcp(op) if op.approx && op.ty == F32 => bound::RCP,
        Functions::Rcp(op) if op.approx => return assumed(NO_BOUND),
        Functions::Sqrt(op) if op.approx => bound::SQRT,
        Functions::Div(_) | Functions::Rem(_) | Functions::Rcp(_) | Functions::Sqrt(_) => {
            return Fidelity::EXACT;
        }
        Functions::Rsqrt(op) if op.ty == F32 => bound::RSQRT,
        Functions::Rsqrt(_) => return assumed(NO_BOUND),
        Functions::Sin(_) | Functions::Cos(_) => bound::SIN,
        Functions::Lg2(_) => bound::LG2,
        Functions::Ex2(op) => match op.ty {
            F16 | F16X2 => bound::EX2_F16,
            BF16 | BF16X2 => bound::EX2_BF16,
            _ => bound::EX2,
        },
        Functions::Tanh(op) => match op.ty {
            F16 | F16X2 => bound::TANH_F16,
            BF16 | BF16X2 => bound::TANH_BF16,
            _ => bound::TANH,
        },
    };
    Fidelity::new(Class::Bounded, bound)
}

/// Of a product, by the types of `d`, `a` and `b`.
fn product(core: TensorCore, sm: u16, kind: ProductKind, [d, a, b]: [Type; 3]) -> Fidelity {
    let evidence = match (float(a), float(b)) {
        (Some(a), Some(b)) => core.evidence(sm, kind, [a, b], d == F16),
        _ if a == F64 => core.evidence_of_doubles(),
        // Integers and single bits.
        _ => return Fidelity::EXACT,
    };
    known(evidence)
}

fn known(evidence: Evidence) -> Fidelity {
    match evidence {
        Evidence::Measured(hardware) => Fidelity::new(Class::Measured, hardware),
        Evidence::Assumed(what) => assumed(what),
    }
}

fn with_tensor_memory(core: TensorCore, kind: tcgen05::ProductKind) -> Fidelity {
    use tcgen05::ProductKind::{F16, I8, Tf32};
    if kind == I8 {
        return Fidelity::EXACT;
    }
    known(core.evidence_of_tensor_memory(matches!(kind, F16 | Tf32)))
}
