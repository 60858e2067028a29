//! Shapes of matrix products, and the registers that their fragments take.

use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::modifiers;

/// Lanes of a warp.
const LANES: u32 = 32;

modifiers! {
    /// Shape of a matrix product: `A` is m×k, `B` is k×n, `C` and `D` are m×n.
    pub enum MmaShape {
        /// 8 × 8, inner dimension 4.
        M8N8K4 = "m8n8k4",
        /// 8 × 8, inner dimension 16.
        M8N8K16 = "m8n8k16",
        /// 8 × 8, inner dimension 32.
        M8N8K32 = "m8n8k32",
        /// 8 × 8, inner dimension 128.
        M8N8K128 = "m8n8k128",
        /// 16 × 8, inner dimension 4.
        M16N8K4 = "m16n8k4",
        /// 16 × 8, inner dimension 8.
        M16N8K8 = "m16n8k8",
        /// 16 × 8, inner dimension 16.
        M16N8K16 = "m16n8k16",
        /// 16 × 8, inner dimension 32.
        M16N8K32 = "m16n8k32",
        /// 16 × 8, inner dimension 64.
        M16N8K64 = "m16n8k64",
        /// 16 × 8, inner dimension 128.
        M16N8K128 = "m16n8k128",
        /// 16 × 8, inner dimension 256.
        M16N8K256 = "m16n8k256",
        /// 16 × 16, inner dimension 8.
        M16N16K8 = "m16n16k8",
        /// 16 × 16, inner dimension 16.
        M16N16K16 = "m16n16k16",
        /// 8 × 32, inner dimension 16.
        M8N32K16 = "m8n32k16",
        /// 32 × 8, inner dimension 16.
        M32N8K16 = "m32n8k16",
    }
}

impl MmaShape {
    /// Rows of `A` and `D`.
    pub const fn m(self) -> u32 {
        match self {
            Self::M8N8K4 | Self::M8N8K16 | Self::M8N8K32 | Self::M8N8K128 | Self::M8N32K16 => 8,
            Self::M32N8K16 => 32,
            _ => 16,
        }
    }

    /// Columns of `B` and `D`.
    pub const fn n(self) -> u32 {
        match self {
            Self::M16N16K8 | Self::M16N16K16 => 16,
            Self::M8N32K16 => 32,
            _ => 8,
        }
    }

    /// Columns of `A` and rows of `B`.
    pub const fn k(self) -> u32 {
        match self {
            Self::M8N8K4 | Self::M16N8K4 => 4,
            Self::M16N8K8 | Self::M16N16K8 => 8,
            Self::M8N8K16 | Self::M16N8K16 | Self::M16N16K16 | Self::M8N32K16 | Self::M32N8K16 => 16,
            Self::M8N8K32 | Self::M16N8K32 => 32,
            Self::M16N8K64 => 64,
            Self::M8N8K128 | Self::M16N8K128 => 128,
            Self::M16N8K256 => 256,
        }
    }
}

/// The registers in which a lane holds its part of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The contents of each register: one `f64`, `f32`, `tf32` or `s32`, two `f16` or `bf16`, or 32 bits of smaller
    /// elements.
    pub register: Type,
    /// Number of registers.
    pub count: u32,
}

/// The fragments of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// Of the result.
    pub d: Fragment,
    /// Of the left factor.
    pub a: Fragment,
    /// Of the right factor.
    pub b: Fragment,
    /// Of the addend.
    pub c: Fragment,
}

impl Fragment {
    /// A matrix of that many elements, each stored in `bits`, spread over the warp. Narrow elements
    /// may be stored in more bits than they have.
    pub(in crate::op) const fn spread(elements: u32, ty: Type, bits: u32) -> Fragment {
        let register = Self::register(ty);
        Fragment { register, count: elements * bits / (LANES * register.bits()) }
    }

    /// What a register holds of elements of a type.
    const fn register(ty: Type) -> Type {
        match ty {
            Type::F16 => Type::F16X2,
            Type::BF16 => Type::BF16X2,
            Type::F32 | Type::F64 | Type::TF32 | Type::S32 => ty,
            _ => Type::B32,
        }
    }

    /// The destination must be a vector of these registers.
    pub(in crate::op) fn check_dsts(self, check: &mut Check<'_>, name: &str, dsts: &Dsts) {
        if !self.is_shape(check, name, dsts.len(), matches!(dsts, Dsts::Many(_))) {
            return;
        }
        let ty = self.element(check, dsts.as_slice().flatten());
        for reg in dsts.as_slice().flatten() {
            check.reg(name, reg, ty);
        }
    }

    /// The source must be a vector of these registers.
    pub(in crate::op) fn check_srcs(self, check: &mut Check<'_>, name: &str, srcs: &Srcs) {
        if !self.is_shape(check, name, srcs.as_slice().len(), matches!(srcs, Srcs::Many(_))) {
            return;
        }
        let ty = self.element(check, srcs.as_slice().iter().filter_map(Src::reg));
        let constant = match self.register {
            Type::F32 | Type::F64 | Type::S32 => self.register,
            _ => Type::U32,
        };
        for src in srcs.as_slice() {
            check.src(name, src, if matches!(src, Src::Imm(_)) { constant } else { ty });
        }
    }

    /// The type that each register must agree with: a vector with an untyped register counts as
    /// untyped.
    fn element(self, check: &Check<'_>, mut regs: impl Iterator<Item = Reg>) -> Type {
        match self.register {
            ty if !regs.any(|reg| check.reg_type(reg).is_bits()) => ty,
            Type::F64 => Type::B64,
            _ => Type::B32,
        }
    }

    fn is_shape(self, check: &mut Check<'_>, name: &str, found: usize, vector: bool) -> bool {
        let Fragment { register, count } = self;
        let fits = vector && found == count as usize;
        if !fits {
            let found = if vector { format!("{found} are given") } else { "it is not a vector".into() };
            check.report(
                Code::VectorShape,
                format!("operand `{name}` is a vector of {count} `{register}` registers; {found}"),
            );
        }
        fits
    }
}
