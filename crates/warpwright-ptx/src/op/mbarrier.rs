//! Barriers in shared memory that count arrivals and bytes.

use super::{Presence, Rule, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// Contents of a barrier.
    pub enum BarrierLayout {
        /// Counts up to 2²⁰ − 1 arrivals.
        V0 = "layout::v0",
        /// Counts up to 2⁹ − 1 arrivals, and keeps a report.
        V1 = "layout::v1",
    }

    /// Which phase of a barrier is waited for.
    pub enum PhaseType {
        /// The phase that arrivals and bytes complete.
        Primary = "phase_type::primary",
        /// The phase that completes only without a report.
        Conditional = "phase_type::conditional",
    }
}

instruction! {
    /// Makes a barrier that expects `count` arrivals in each phase.
    pub struct MbarrierInit("mbarrier.init") {
        layout: Option<BarrierLayout>,
        space: Option<Space>,
        ty: Type,
    }(address: Address, count: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.init`", (7, 0), 80);
            space_needs(needs, op.space);
            if op.layout.is_some() {
                needs.both("`.layout`", (9, 3), 90);
            }
        },
        check: |op, check| {
            barrier(check, op.ty, &op.address, op.space, false);
            check.word_src("count", &op.count);
            let most = if op.layout == Some(BarrierLayout::V1) { (1 << 9) - 1 } else { (1 << 20) - 1 };
            check.imm_range("count", &op.count, 1..=most);
        };

    /// Ends a barrier, so that its memory can be used for something else.
    pub struct MbarrierInval("mbarrier.inval") {
        space: Option<Space>,
        ty: Type,
    }(address: Address) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.inval`", (7, 0), 80);
            space_needs(needs, op.space);
        },
        check: |op, check| barrier(check, op.ty, &op.address, op.space, false);

    /// Lets the current phase expect more bytes.
    pub struct MbarrierExpectTx("mbarrier.expect_tx") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(address: Address, tx_count: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.expect_tx`", (8, 0), 90);
            place_needs(needs, op.space, op.semantics, op.scope);
        };

    /// Counts bytes as if a copy had brought them.
    pub struct MbarrierCompleteTx("mbarrier.complete_tx") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(address: Address, tx_count: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`mbarrier.complete_tx`", (8, 0), 90);
            place_needs(needs, op.space, op.semantics, op.scope);
        };

    /// Arrives at a barrier. `count` is the number of arrivals, or with `expect_tx` the bytes to
    /// expect before one arrival.
    pub struct MbarrierArrive("mbarrier.arrive") {
        expect_tx: bool = "expect_tx",
        no_complete: bool = "noComplete",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(state: DstOrSink, address: Address, count: Option<Src>) -> unknown,
        needs: |op, needs| {
            needs.both("`mbarrier.arrive`", (7, 0), 80);
            op.form_needs(needs);
        };

    /// Arrives at a barrier, and leaves it: later phases expect that many arrivals fewer.
    pub struct MbarrierArriveDrop("mbarrier.arrive_drop") {
        expect_tx: bool = "expect_tx",
        no_complete: bool = "noComplete",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(state: DstOrSink, address: Address, count: Option<Src>) -> unknown,
        needs: |op, needs| {
            needs.both("`mbarrier.arrive_drop`", (7, 0), 80);
            op.form_needs(needs);
        };

    /// Whether a phase has completed: that of `state`, or with `parity` that of this parity.
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
            op.form_needs(needs);
        };

    /// Waits a while for a phase to complete; whether it has.
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
            op.form_needs(needs);
        };

    /// Number of arrivals that a phase still expected.
    pub struct MbarrierPendingCount("mbarrier.pending_count") {
        ty: Type,
    }(count: Dst, state: Src) -> pointwise,
        needs: |_, needs| needs.both("`mbarrier.pending_count`", (7, 0), 80),
        check: |op, check| {
            check.type_among(op.ty, &[Type::B64]);
            check.word_dst("count", op.count);
            check.src("state", &op.state, Type::U64);
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
    if let Some(semantics) = semantics
        && !allowed.contains(&semantics)
    {
        let names: Vec<_> = allowed.iter().map(|semantics| format!("`{semantics}`")).collect();
        let message = format!("the ordering `{semantics}` is not offered; it takes {}", names.join(" or "));
        check.report(Code::ModifierCombination, message);
    }
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
    if scope == Some(Scope::Cluster) {
        needs.sm("`.cluster` scope", 90);
    }
}

/// What the place of a barrier and an ordering need.
fn place_needs(needs: &mut Needs, space: Option<Space>, semantics: Option<Semantics>, scope: Option<Scope>) {
    space_needs(needs, space);
    ordering_needs(needs, semantics, scope);
}

/// What waits and arrivals need for `.relaxed`, which transaction counts had from the start.
fn relaxed_needs(needs: &mut Needs, semantics: Option<Semantics>) {
    if semantics == Some(Semantics::Relaxed) {
        needs.version("`.relaxed` on an arrival or a wait", 8, 6);
    }
}

macro_rules! transaction_rules {
    ($($name:ident),*) => {$(
        impl Rule for $name {
            fn check(&self, check: &mut Check<'_>) {
                barrier(check, self.ty, &self.address, self.space, true);
                ordering(check, self.semantics, self.scope, &[Semantics::Relaxed]);
                check.word_src("tx_count", &self.tx_count);
            }
        }
    )*};
}
transaction_rules!(MbarrierExpectTx, MbarrierCompleteTx);

macro_rules! arrival_rules {
    ($($name:ident),*) => {$(
        impl $name {
            fn form_needs(&self, needs: &mut Needs) {
                if self.expect_tx {
                    needs.both("`.expect_tx`", (8, 0), 90);
                } else if self.count.is_some() && !self.no_complete {
                    needs.both("a count without `.noComplete`", (7, 8), 90);
                }
                place_needs(needs, self.space, self.semantics, self.scope);
                relaxed_needs(needs, self.semantics);
            }
        }

        impl Rule for $name {
            fn check(&self, check: &mut Check<'_>) {
                barrier(check, self.ty, &self.address, self.space, true);
                ordering(check, self.semantics, self.scope, &[Semantics::Release, Semantics::Relaxed]);
                check.combination(
                    !(self.expect_tx && self.no_complete),
                    "`.expect_tx` and `.noComplete` do not go together",
                );
                if self.no_complete {
                    check.combination(
                        matches!(self.semantics, None | Some(Semantics::Release))
                            && matches!(self.scope, None | Some(Scope::Cta))
                            && self.space != Some(Space::SharedCluster),
                        "`.noComplete` takes no ordering but `.release.cta`, and no `.shared::cluster`",
                    );
                }
                match self.state.0 {
                    Some(_) if self.space == Some(Space::SharedCluster) => check.report(
                        Code::OperandForm,
                        "a barrier in `.shared::cluster` returns no state: the destination must be `_`",
                    ),
                    Some(state) => check.reg("state", state, Type::U64),
                    None if check.version() < Version::new(7, 1) => {
                        check.report(Code::NeedsVersion, "`_` as destination needs PTX 7.1 or later");
                    }
                    None => {}
                }
                match &self.count {
                    Some(count) => {
                        check.word_src("count", count);
                        if !self.expect_tx {
                            check.imm_range("count", count, 1..=i64::from(i32::MAX));
                        }
                    }
                    None => check.combination(
                        !self.expect_tx && !self.no_complete,
                        "`.expect_tx` and `.noComplete` need a count as last operand",
                    ),
                }
            }
        }
    )*};
}
arrival_rules!(MbarrierArrive, MbarrierArriveDrop);

macro_rules! wait_rules {
    ($($name:ident $($hint:ident)?),*) => {$(
        impl $name {
            fn form_needs(&self, needs: &mut Needs) {
                if self.parity {
                    needs.version("`.parity`", 7, 1);
                }
                if self.phase_type.is_some() {
                    needs.both("`.phase_type`", (9, 3), 90);
                }
                place_needs(needs, self.space, self.semantics, self.scope);
                relaxed_needs(needs, self.semantics);
            }
        }

        impl Rule for $name {
            fn check(&self, check: &mut Check<'_>) {
                barrier(check, self.ty, &self.address, self.space, false);
                ordering(check, self.semantics, self.scope, &[Semantics::Acquire, Semantics::Relaxed]);
                wait_results(check, self.complete, self.report, self.phase_type, self.parity);
                if !self.parity {
                    check.src("state", &self.state, Type::U64);
                } else {
                    check.word_src("state", &self.state);
                    check.imm_range("state", &self.state, 0..=1);
                }
                $(if let Some(hint) = &self.$hint {
                    check.src(stringify!($hint), hint, Type::U32);
                })?
            }
        }
    )*};
}
wait_rules! {
    MbarrierTestWait,
    MbarrierTryWait time_hint
}

/// `complete`, alone or with the report of the phase, which only the primary phase has.
fn wait_results(
    check: &mut Check<'_>,
    complete: DstPair,
    report: Option<Dst>,
    phase_type: Option<PhaseType>,
    parity: bool,
) {
    check.pred_dst("complete", complete.first);
    check.pred_dst("complete", complete.second.flatten());
    if complete.first.is_none() || complete.second == Some(None) {
        check.report(Code::OperandForm, "the results of a wait cannot be `_`");
    }
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
}
