//! Changing a tensor map in memory, and publishing the change.

use crate::diag::Code;
use crate::ir::*;
use crate::op::async_copy::space_among;
use crate::op::{Convergence, instruction, modifiers};

modifiers! {
    /// Mode of a tensor map.
    pub enum TensorMapMode {
        /// Tiles.
        Tile = "tile",
    }

    /// Size of a tensor map.
    pub enum TensorMapSize {
        /// 1024 bits.
        B1024 = "b1024",
    }

    /// Field of a tensor map.
    pub enum TensorMapField {
        /// Address of the tensor.
        GlobalAddress = "global_address",
        /// Number of dimensions, less one.
        Rank = "rank",
        /// Size of the box in one dimension.
        BoxDim = "box_dim",
        /// Size of the tensor in one dimension.
        GlobalDim = "global_dim",
        /// Stride of the tensor in one dimension.
        GlobalStride = "global_stride",
        /// Stride between elements in one dimension.
        ElementStride = "element_stride",
        /// Type of the elements.
        ElemType = "elemtype",
        /// Interleaving.
        InterleaveLayout = "interleave_layout",
        /// Swizzling in shared memory.
        SwizzleMode = "swizzle_mode",
        /// Unit of the swizzling.
        SwizzleAtomicity = "swizzle_atomicity",
        /// The value of elements outside the tensor.
        FillMode = "fill_mode",
    }

    /// The proxies between which a fence orders.
    pub enum TensorMapProxy {
        /// From the generic proxy to that of tensor maps.
        Generic = "tensormap::generic",
    }
}

impl TensorMapField {
    /// Whether there is one for each dimension, chosen by an ordinal.
    const fn is_indexed(self) -> bool {
        matches!(self, Self::BoxDim | Self::GlobalDim | Self::GlobalStride | Self::ElementStride)
    }

    /// For a field of few values, the largest one.
    const fn largest(self) -> Option<i64> {
        match self {
            Self::ElemType => Some(15),
            Self::InterleaveLayout => Some(2),
            Self::SwizzleMode => Some(4),
            Self::SwizzleAtomicity => Some(3),
            Self::FillMode => Some(1),
            _ => None,
        }
    }
}

instruction! {
    /// Replaces a field of a tensor map.
    pub struct TensormapReplace("tensormap.replace") {
        mode: TensorMapMode,
        field: TensorMapField,
        space: Option<Space>,
        size: TensorMapSize,
        ty: Type,
    }(address: Address, ordinal: Option<Src> = field.is_indexed(), value: Src) -> nothing,
        needs: |op, needs| {
            needs.targets(
                "`tensormap.replace`",
                (8, 3),
                Requirement::Specific { specific: &[90], family: &[100, 110, 120] },
            );
            let blackwell = Requirement::family(&[100, 110, 120]);
            let value = match op.value {
                Src::Imm(Imm::Int(value)) => value,
                _ => 0,
            };
            match op.field {
                TensorMapField::SwizzleAtomicity => needs.targets("`.swizzle_atomicity`", (8, 6), blackwell),
                TensorMapField::ElemType if value >= 13 => {
                    needs.targets("an element type of 13 or more", (8, 7), blackwell)
                }
                TensorMapField::SwizzleMode if value == 4 => {
                    needs.targets("a swizzle mode of 4", (8, 8), Requirement::specific(&[103]))
                }
                _ => {}
            }
        },
        check: |op, check| {
            if let Some(space) = op.space {
                space_among(check, "tensor map", space, &[Space::Global, Space::SharedCta]);
            }
            check.wide_address("address", &op.address, op.space);
            let wide = matches!(op.field, TensorMapField::GlobalAddress | TensorMapField::GlobalStride);
            let ty = if wide { Type::B64 } else { Type::B32 };
            if op.ty != ty {
                let message = format!("the field `{}` has the type `{ty}`, not `{}`", op.field, op.ty);
                check.report(Code::ModifierCombination, message);
            }
            if let Some(ordinal) = &op.ordinal {
                if !matches!(ordinal, Src::Imm(_)) {
                    check.report(Code::OperandForm, "the ordinal must be a constant");
                }
                check.src("ordinal", ordinal, Type::U32);
                check.imm_range("ordinal", ordinal, 0..=4);
            }
            match op.field.largest() {
                Some(_) if !matches!(op.value, Src::Imm(_)) => check.report(
                    Code::OperandForm,
                    format!("the value of the field `{}` must be a constant", op.field),
                ),
                Some(largest) => check.imm_range("value", &op.value, 0..=largest),
                None => check.src("value", &op.value, if wide { Type::U64 } else { Type::U32 }),
            }
        };

    /// Copies a tensor map from shared to global memory, and makes the change visible to later copies that use it.
    pub struct TensormapCpFenceproxy("tensormap.cp_fenceproxy") {
        space: Space,
        source: Space,
        proxy: TensorMapProxy,
        semantics: Semantics,
        scope: Scope,
        sync: bool = "sync",
        aligned: bool = "aligned",
    }(to: Address, from: Address, size: Src) -> nothing,
        needs: |_, needs| needs.both("`tensormap.cp_fenceproxy`", (8, 3), 90),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            space_among(check, "destination", op.space, &[Space::Global]);
            space_among(check, "source", op.source, &[Space::SharedCta]);
            check.combination(op.semantics == Semantics::Release, "the ordering must be `.release`");
            check.combination(op.sync && op.aligned, "`.sync.aligned` must stand");
            check.address("to", &op.to, Some(op.space));
            check.address("from", &op.from, Some(op.source));
            if op.size != Src::Imm(Imm::Int(128)) {
                check.report(Code::ImmediateRange, "the size must be 128, that of a tensor map");
            }
        };
}
