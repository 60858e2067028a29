//! Barriers in shared memory that count arrivals and bytes.

use super::memory::ordering_among;
use super::{Presence, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// The layout of a barrier.
    pub enum BarrierLayout {
        /// Counts up to 2²⁰ − 1 arrivals.
        V0 = "layout::v0",
        /// Counts up to 2⁹ − 1 arrivals, and has a report.
        V1 = "layout::v1",
    }

    /// The phase of a barrier that is waited for.
    pub enum PhaseType {
        /// The phase that arrivals and bytes complete.
        Primary = "phase_type::primary",
        /// The phase that completes only without a report.
        Conditional = "phase_type::conditional",
    }
}

instruction! {
    /// Initialises a barrier that expects `count` arrivals in each phase.
    pub struct MbarrierInit("mbarrier.init") {
        layout: Option<BarrierLayout>,
        space: Option<Space>,
        ty: Type,
    }(address: Address, count: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.init`", (7, 0), 80);
            space_needs(needs, op.space);
            needs.both_if(op.layout.is_some(), "`.layout`", (9, 3), 90);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, false);
            check.word_src("count", &op.count);
            let max = if op.layout == Some(BarrierLayout::V1) { (1 << 9) - 1 } else { (1 << 20) - 1 };
            check.imm_range("count", &op.count, 1..=max);
        };

    /// Invalidates a barrier, so that its memory can be used for something else.
    pub struct MbarrierInval("mbarrier.inval") {
        space: Option<Space>,
        ty: Type,
    }(address: Address) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.inval`", (7, 0), 80);
            space_needs(needs, op.space);
        },
        check: |op, check| barrier(check, op.ty, &op.address, op.space, false);

    /// Makes the current phase expect more bytes.
    pub struct MbarrierExpectTx("mbarrier.expect_tx")
    /// Counts bytes as if a copy had written them.
    pub struct MbarrierCompleteTx("mbarrier.complete_tx") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(address: Address, tx_count: Src) -> nothing,
        needs: |op, needs| {
            needs.both(Self::FEATURE, (8, 0), 90);
            place_needs(needs, op.space, op.semantics, op.scope);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, true);
            ordering(check, op.semantics, op.scope, &[Semantics::Relaxed]);
            check.word_src("tx_count", &op.tx_count);
        };

    /// Arrives at a barrier. `count` is the number of arrivals, or with `expect_tx` the bytes to
    /// expect before one arrival.
    pub struct MbarrierArrive("mbarrier.arrive")
    /// Arrives at a barrier and leaves it: later phases expect that many fewer arrivals.
    pub struct MbarrierArriveDrop("mbarrier.arrive_drop") {
        expect_tx: bool = "expect_tx",
        no_complete: bool = "noComplete",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(state: DstOrSink, address: Address, count: Option<Src>) -> unknown,
        needs: |op, needs| {
            needs.both(Self::FEATURE, (7, 0), 80);
            let counted = op.count.is_some() && !op.expect_tx && !op.no_complete;
            needs.both_if(op.expect_tx, "`.expect_tx`", (8, 0), 90);
            needs.both_if(counted, "a count without `.noComplete`", (7, 8), 90);
            place_needs(needs, op.space, op.semantics, op.scope);
            relaxed_needs(needs, op.semantics);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, true);
            ordering(check, op.semantics, op.scope, &[Semantics::Release, Semantics::Relaxed]);
            check.combination(
                !(op.expect_tx && op.no_complete),
                "`.expect_tx` and `.noComplete` do not go together",
            );
            if op.no_complete {
                check.combination(
                    matches!(op.semantics, None | Some(Semantics::Release))
                        && matches!(op.scope, None | Some(Scope::Cta))
                        && op.space != Some(Space::SharedCluster),
                    "`.noComplete` takes no ordering but `.release.cta`, and no `.shared::cluster`",
                );
            }
            match op.state.0 {
                Some(_) if op.space == Some(Space::SharedCluster) => check.report(
                    Code::OperandForm,
                    "a barrier in `.shared::cluster` returns no state: the destination must be `_`",
                ),
                Some(state) => check.reg("state", state, Type::U64),
                None => {
                    let new = check.version() >= Version::new(7, 1);
                    check.that(new, Code::NeedsVersion, "`_` as destination needs PTX 7.1 or later");
                }
            }
            check.word_src("count", &op.count);
            if !op.expect_tx {
                check.imm_range("count", &op.count, 1..=i64::from(i32::MAX));
            }
            check.combination(
                op.count.is_some() || !op.expect_tx && !op.no_complete,
                "`.expect_tx` and `.noComplete` need a count as last operand",
            );
        };

    /// Tests whether a phase has completed: that of `state`, or with `parity` the phase of this parity.
    pub struct MbarrierTestWait("mbarrier.test_wait") {
        parity: bool = "parity",
        phase_type: Option<PhaseType>,
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(complete: DstPair, report: Option<Dst> = Presence::IfRegister, address: Address, state: Src) -> unknown,
        needs: |op, needs| {
            needs.both("`mbarrier.test_wait`", (7, 0), 80);
            wait_needs(needs, op.parity, op.phase_type.is_some());
            place_needs(needs, op.space, op.semantics, op.scope);
            relaxed_needs(needs, op.semantics);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, false);
            ordering(check, op.semantics, op.scope, &[Semantics::Acquire, Semantics::Relaxed]);
            wait(check, op.complete, op.report, op.phase_type, (op.parity, &op.state));
        };

    /// Waits for a limited time for a phase to complete; returns whether it has.
    pub struct MbarrierTryWait("mbarrier.try_wait") {
        parity: bool = "parity",
        phase_type: Option<PhaseType>,
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(
        complete: DstPair,
        report: Option<Dst> = Presence::IfRegister,
        address: Address,
        state: Src,
        time_hint: Option<Src>,
    ) -> unknown,
        needs: |op, needs| {
            needs.both("`mbarrier.try_wait`", (7, 8), 90);
            wait_needs(needs, op.parity, op.phase_type.is_some());
            place_needs(needs, op.space, op.semantics, op.scope);
            relaxed_needs(needs, op.semantics);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, false);
            ordering(check, op.semantics, op.scope, &[Semantics::Acquire, Semantics::Relaxed]);
            wait(check, op.complete, op.report, op.phase_type, (op.parity, &op.state));
            check.src("time_hint", &op.time_hint, Type::U32);
        };

    /// Number of arrivals that a phase was still expecting.
    pub struct MbarrierPendingCount("mbarrier.pending_count") {
        layout: Option<BarrierLayout>,
        ty: Type,
    }(count: Dst, state: Src) -> pointwise,
        needs: |op, needs| {
            needs.both("`mbarrier.pending_count`", (7, 0), 80);
            needs.both_if(op.layout.is_some(), "`.layout`", (9, 3), 90);
        },
        check: |op, check| {
            check.type_among(op.ty, &[Type::B64]);
            check.combination(
                op.layout != Some(BarrierLayout::V1),
                "the state of a barrier with `.layout::v1` does not tell its pending count",
            );
            check.word_dst("count", op.count);
            check.src("state", &op.state, Type::U64);
        };

    /// Whether a barrier has this layout.
    pub struct MbarrierCheckLayout("mbarrier.check_layout") {
        layout: BarrierLayout,
        space: Option<Space>,
        ty: Type,
    }(same: Dst, address: Address) -> unknown,
        needs: |op, needs| {
            needs.both("`mbarrier.check_layout`", (9, 3), 90);
            space_needs(needs, op.space);
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, false);
            check.dst("same", op.same, Type::Pred);
        };
}

/// The space of a barrier: shared memory, or none for a generic address.
pub(super) fn barrier_space(check: &mut Check<'_>, space: Option<Space>, cluster: bool) {
    match space {
        None | Some(Space::Shared | Space::SharedCta) => {}
        Some(Space::SharedCluster) if cluster => {}
        Some(Space::SharedCluster) => check.report(
            Code::StateSpace,
            "the barrier must be in the block's own shared memory, not in `.shared::cluster`",
        ),
        Some(space) => {
            check.report(Code::StateSpace, format!("a barrier is in shared memory, not in `{space}`"));
        }
    }
}

/// What a qualified `.shared` needs.
pub(super) fn space_needs(needs: &mut Needs, space: Option<Space>) {
    match space {
        Some(Space::SharedCta) => needs.version("`.shared::cta`", 7, 8),
        Some(Space::SharedCluster) => needs.both("`.shared::cluster`", (8, 0), 90),
        _ => {}
    }
}

/// The barrier that an instruction works on.
fn barrier(check: &mut Check<'_>, ty: Type, address: &Address, space: Option<Space>, cluster: bool) {
    check.type_among(ty, &[Type::B64]);
    barrier_space(check, space, cluster);
    check.address("address", address, space.or(symbol_space(address)));
    if let AddressBase::Reg(reg) = address.base
        && space.is_none()
        && check.reg_type(reg).bits() == 32
    {
        check.narrow_address("address");
    }
}

/// A symbol under a generic address must be in shared memory all the same.
fn symbol_space(address: &Address) -> Option<Space> {
    matches!(address.base, AddressBase::Symbol(_)).then_some(Space::Shared)
}

/// Ordering and scope stand together, and only some of each are offered.
fn ordering(
    check: &mut Check<'_>,
    semantics: Option<Semantics>,
    scope: Option<Scope>,
    allowed: &[Semantics],
) {
    check.combination(
        semantics.is_some() == scope.is_some(),
        "ordering and scope stand together or not at all",
    );
    ordering_among(check, semantics, allowed, " or ");
    check.combination(
        matches!(scope, None | Some(Scope::Cta | Scope::Cluster)),
        "the scope must be `.cta` or `.cluster`",
    );
}

fn ordering_needs(needs: &mut Needs, semantics: Option<Semantics>, scope: Option<Scope>) {
    match semantics {
        Some(Semantics::Relaxed) => needs.both("`.relaxed` on a barrier", (8, 0), 90),
        Some(_) => needs.version("an ordering on a barrier", 8, 0),
        None => {}
    }
    needs.sm_if(scope == Some(Scope::Cluster), "`.cluster` scope", 90);
}

/// What the place of a barrier and an ordering need.
fn place_needs(needs: &mut Needs, space: Option<Space>, semantics: Option<Semantics>, scope: Option<Scope>) {
    space_needs(needs, space);
    ordering_needs(needs, semantics, scope);
}

/// What waits and arrivals need for `.relaxed`, which transaction counts had from the start.
fn relaxed_needs(needs: &mut Needs, semantics: Option<Semantics>) {
    needs.version_if(semantics == Some(Semantics::Relaxed), "`.relaxed` on an arrival or a wait", 8, 6);
}

fn wait_needs(needs: &mut Needs, parity: bool, phase_type: bool) {
    needs.version_if(parity, "`.parity`", 7, 1);
    needs.both_if(phase_type, "`.phase_type`", (9, 3), 90);
}

/// `complete`, alone or with the report of the phase, which only the primary phase has, and the phase that is
/// waited for: a state, or a parity.
fn wait(
    check: &mut Check<'_>,
    complete: DstPair,
    report: Option<Dst>,
    phase_type: Option<PhaseType>,
    (parity, state): (bool, &Src),
) {
    check.pred_dst("complete", complete.first);
    check.pred_dst("complete", complete.second.flatten());
    let written = complete.first.is_some() && complete.second != Some(None);
    check.that(written, Code::OperandForm, "the results of a wait cannot be `_`");
    if let Some(report) = report {
        check.dst("report", report, Type::B8);
    }
    check.combination(
        phase_type == Some(PhaseType::Primary) || (complete.second.is_none() && report.is_none()),
        "a report is given for `.phase_type::primary` only",
    );
    check.combination(
        phase_type != Some(PhaseType::Conditional) || parity,
        "`.phase_type::conditional` needs `.parity`",
    );
    if parity {
        check.word_src("state", state);
        check.imm_range("state", state, 0..=1);
    } else {
        check.src("state", state, Type::U64);
    }
}
