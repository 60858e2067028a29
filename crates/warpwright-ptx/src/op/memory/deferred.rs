//! Asynchronous stores: `st.async`, `multimem.st.async`, `st.bulk`.

use super::{Fit, scope_needs, sources, space_among, space_needs};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Rule, instruction};

instruction! {
    /// Stores asynchronously: to shared memory of the cluster, with completion at an mbarrier, or to global memory.
    pub struct StAsync("st.async") {
        mmio: bool = "mmio",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        /// The mbarrier counts the bytes.
        complete_tx: bool = "mbarrier::complete_tx::bytes",
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, a: Srcs, barrier: Option<Address>) -> nothing,
        needs: |op, needs| {
            needs.both("`st.async`", (8, 1), 90);
            needs.both_if(!op.complete_tx, "`st.async` with `.release`", (8, 7), 100);
            needs.version_if(op.ty == B128, "`st.async` of `.b128`", 9, 2);
            space_needs(needs, op.space);
            scope_needs(needs, op.scope);
        };

    /// Stores asynchronously to a multimem address.
    pub struct MultimemStAsync("multimem.st.async") {
        semantics: Semantics,
        scope: Scope,
        space: Option<Space>,
        ty: Type,
    }(address: Address, a: Src) -> nothing,
        needs: |_, needs| needs.both("`multimem.st.async`", (9, 3), 100),
        check: |op, check| {
            release(check, Some(op.semantics), Some(op.scope), op.space, false);
            check.type_among(op.ty, DATA);
            check.wide_address("address", &op.address, op.space);
            check.src("a", &op.a, op.ty);
        };

    /// Fills a range of shared memory with a value, which is zero.
    pub struct StBulk("st.bulk") {
        weak: bool = "weak",
        space: Option<Space>,
    }(address: Address, size: Src, value: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`st.bulk`", (8, 6), 100);
            space_needs(needs, op.space);
        },
        check: |op, check| {
            space_among(check, op.space, &[None, Some(Space::SharedCta)]);
            check.wide_address("address", &op.address, op.space);
            match op.size {
                Src::Reg(reg) if check.reg_type(reg).bits() == 32 => {
                    check.reg("size", reg, U32);
                    if check.version() < Version::new(9, 0) {
                        check.report(Code::NeedsVersion, "a size of 32 bits needs PTX 9.0 or later");
                    }
                }
                _ => check.src("size", &op.size, U64),
            }
            if let Src::Imm(Imm::Int(size)) = op.size
                && size % 8 != 0
            {
                check.report(Code::ImmediateRange, "operand `size` must be a multiple of 8");
            }
            check.that(op.value == Src::Imm(Imm::Int(0)), Code::ImmediateRange, "operand `value` must be 0");
        };
}

/// What a store without an mbarrier can move.
const DATA: &[Type] = &[B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];

/// What an mbarrier can count.
const COUNTED: &[Type] = &[B32, B64, B128, U32, U64, S32, S64, F32, F64];

/// A release to global memory, at the scope of the device or the system.
pub(in crate::op) fn release(
    check: &mut Check<'_>,
    semantics: Option<Semantics>,
    scope: Option<Scope>,
    space: Option<Space>,
    mmio: bool,
) {
    check
        .combination(semantics == Some(Semantics::Release), "without an mbarrier the ordering is `.release`");
    check.combination(
        matches!(scope, Some(Scope::Gpu | Scope::Sys)) && !(mmio && scope != Some(Scope::Sys)),
        "`.release` has the scope `.gpu` or `.sys`, and `.mmio` has `.sys`",
    );
    space_among(check, space, &[None, Some(Space::Global)]);
}

impl Rule for StAsync {
    fn check(&self, check: &mut Check<'_>) {
        if self.complete_tx {
            check.combination(
                matches!(self.semantics, None | Some(Semantics::Weak)) && self.scope.is_none() && !self.mmio,
                "a store that an mbarrier counts is weak, and has no scope",
            );
            space_among(check, self.space, &[None, Some(Space::SharedCluster)]);
            check.type_among(self.ty, COUNTED);
            let elements = self.vector.map_or(1, VectorWidth::elements) as u32;
            if elements > 4 || elements * self.ty.bits() > 128 {
                check.report(Code::VectorShape, "a vector has up to 4 elements and 128 bits");
            }
            match &self.barrier {
                Some(barrier) => match self.space {
                    None => check.wide_address("barrier", barrier, Some(Space::SharedCluster)),
                    space => check.address("barrier", barrier, space),
                },
                None => check.report(Code::OperandCount, "the operand `barrier` is missing"),
            }
            check.wide_address("address", &self.address, Some(Space::SharedCluster));
        } else {
            release(check, self.semantics, self.scope, self.space, self.mmio);
            check.type_among(self.ty, DATA);
            check.that(self.vector.is_none(), Code::VectorShape, "vectors need an mbarrier");
            check.that(
                self.barrier.is_none(),
                Code::OperandCount,
                "the operand `barrier` needs `.mbarrier::complete_tx::bytes`",
            );
            check.wide_address("address", &self.address, self.space);
        }
        sources(check, &self.a, self.vector, self.ty, Fit::Exact);
    }
}
