//! Clusters: addresses in the shared memory of other blocks, and cancelling launches to take over their work.

use super::bulk_copy::Completion;
use super::{instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::{Check, Level};

modifiers! {
    /// A result sent to every block of the cluster.
    pub enum MulticastAll {
        /// Every block.
        All = "multicast::cluster::all",
    }

    /// A query of a cancelled launch.
    pub enum CancelQuery {
        /// Whether it was cancelled.
        IsCanceled = "is_canceled",
        /// The index of its first block, as a vector of four.
        FirstCtaId = "get_first_ctaid",
        /// That index's first component.
        FirstCtaIdX = "get_first_ctaid::x",
        /// That index's second component.
        FirstCtaIdY = "get_first_ctaid::y",
        /// That index's third component.
        FirstCtaIdZ = "get_first_ctaid::z",
    }
}

instruction! {
    /// Address in the block `rank` of the cluster that corresponds to `a` in this one.
    pub struct Mapa("mapa") {
        space: Option<Space>,
        ty: Type,
    }(d: Dst, a: Src, rank: Src) -> |_, operands| operands.all.max(Level::Cluster),
        needs: |_, needs| needs.both("`mapa`", (7, 8), 90),
        check: |op, check| {
            cluster_address(check, op.space, &op.a, op.ty);
            check.dst("d", op.d, op.ty);
            check.word_src("rank", &op.rank);
        };

    /// Rank of the block whose shared memory an address lies in.
    pub struct Getctarank("getctarank") {
        space: Option<Space>,
        ty: Type,
    }(d: Dst, a: Src) -> |_, operands| operands.all.max(Level::BlockData),
        needs: |_, needs| needs.both("`getctarank`", (7, 8), 90),
        check: |op, check| {
            cluster_address(check, op.space, &op.a, op.ty);
            check.word_dst("d", op.d);
        };

    /// Requests the cancellation of a cluster that has not started, so that this one takes over its work; the
    /// response of 16 bytes arrives with the barrier.
    pub struct ClusterlaunchcontrolTryCancel("clusterlaunchcontrol.try_cancel.async") {
        space: Option<Space>,
        completion: Completion,
        multicast: Option<MulticastAll>,
        ty: Type,
    }(to: Address, mbar: Address) -> nothing,
        needs: |op, needs| {
            needs.both("`clusterlaunchcontrol.try_cancel`", (8, 6), 100);
            if op.multicast.is_some() {
                needs.add("`.multicast::cluster::all`", Requirement::family(&[100, 110, 120]));
            }
        },
        check: |op, check| {
            if !matches!(op.space, None | Some(Space::SharedCta)) {
                check.report(
                    Code::StateSpace,
                    "the space must be `.shared::cta`, or none for a generic address",
                );
            }
            check.combination(
                op.completion == Completion::Mbarrier,
                "the request completes by `.mbarrier::complete_tx::bytes`",
            );
            check.type_among(op.ty, &[Type::B128]);
            check.address("to", &op.to, op.space);
            check.address("mbar", &op.mbar, op.space);
        };

    /// Reads the response to such a request.
    pub struct ClusterlaunchcontrolQueryCancel("clusterlaunchcontrol.query_cancel") {
        query: CancelQuery,
        vector: Option<VectorWidth>,
        d_type: Type,
        a_type: Type,
    }(d: Dsts, a: Src) -> pointwise,
        needs: |_, needs| needs.both("`clusterlaunchcontrol.query_cancel`", (8, 6), 100),
        check: |op, check| {
            let (vector, count, ty) = match op.query {
                CancelQuery::IsCanceled => (None, 1, Type::Pred),
                CancelQuery::FirstCtaId => (Some(VectorWidth::V4), 4, Type::B32),
                _ => (None, 1, Type::B32),
            };
            check.combination(op.vector == vector, "`.v4` stands with `.get_first_ctaid`, and only there");
            check.type_among(op.d_type, &[ty]);
            check.type_among(op.a_type, &[Type::B128]);
            if op.d.len() != count || matches!(op.d, Dsts::Many(_)) != vector.is_some() {
                let message = format!("the destination must have {count} elements for `{}`", op.query);
                check.report(Code::VectorShape, message);
            }
            let registers: Vec<_> = op.d.as_slice().flatten().collect();
            super::texture::uniform(check, "d", &registers);
            for reg in registers {
                check.reg("d", reg, ty);
            }
            check.src("a", &op.a, Type::B128);
        };
}

/// An address in the cluster's shared memory, as a value: a register, a constant or a variable.
fn cluster_address(check: &mut Check<'_>, space: Option<Space>, src: &Src, ty: Type) {
    if !matches!(space, None | Some(Space::SharedCluster)) {
        check.report(Code::StateSpace, "the space must be `.shared::cluster`, or none for a generic address");
    }
    check.type_among(ty, &[Type::U32, Type::U64, Type::S32, Type::S64]);
    match src {
        Src::Symbol(address) => {
            let symbol = &address.symbol;
            let space = check.variable(symbol).map(|variable| variable.space.base());
            if space != Some(Space::Shared) {
                check.report(Code::StateSpace, "the variable `a` must be in `.shared` memory");
            }
        }
        src => check.src("a", src, ty),
    }
}
