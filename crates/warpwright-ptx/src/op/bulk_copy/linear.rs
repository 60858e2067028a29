//! Copies and reductions of contiguous bytes.

use super::{BulkLevel, BulkReduction, Completion, Multicast};
use super::{completion_barrier, completion_is, cta_mask, multicast_needs};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::async_copy::{cache_policy, group_count};
use crate::op::{Rule, instruction};

instruction! {
    /// Copies `size` bytes, a multiple of 16. With `.ignore_oob`, the first `ignore_left` and the
    /// last `ignore_right` bytes may lie outside the source's allocation.
    pub struct CpAsyncBulk("cp.async.bulk") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Space,
        source: Space,
        completion: Completion,
        multicast: Option<Multicast>,
        cache_hint: bool = "L2::cache_hint",
        ignore_oob: bool = "ignore_oob",
        cp_mask: bool = "cp_mask",
        ty: Option<Type>,
    }(
        to: Address,
        from: Address,
        size: Src,
        ignore_left: Option<Src> = ignore_oob,
        ignore_right: Option<Src> = ignore_oob,
        mbar: Option<Address> = (completion == Completion::Mbarrier),
        cta_mask: Option<Src> = multicast.is_some(),
        policy: Option<Src> = cache_hint,
        byte_mask: Option<Src> = cp_mask,
    ) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.async.bulk`", (8, 0), 90);
            needs.version_if(op.space == Space::SharedCta, "`.shared::cta` as destination", 8, 6);
            needs.both_if(op.cp_mask, "`.cp_mask`", (8, 6), 100);
            needs.version_if(op.ignore_oob, "`.ignore_oob`", 9, 2);
            multicast_needs(needs, op.multicast);
            semantics_needs(needs, op.semantics);
        };

    /// Reduces `size` bytes of shared memory into other memory, element by element.
    pub struct CpReduceAsyncBulk("cp.reduce.async.bulk") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Space,
        source: Space,
        completion: Completion,
        cache_hint: bool = "L2::cache_hint",
        reduction: BulkReduction,
        noftz: bool = "noftz",
        ty: Type,
    }(
        to: Address,
        from: Address,
        size: Src,
        mbar: Option<Address> = (completion == Completion::Mbarrier),
        policy: Option<Src> = cache_hint,
    ) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.reduce.async.bulk`", (8, 0), 90);
            semantics_needs(needs, op.semantics);
            noftz_needs(needs, op.noftz, op.ty);
        },
        check: |op, check| {
            use Direction::*;
            if let Some(direction) = direction(check, op.space, op.source, &[CtaToCluster, CtaToGlobal]) {
                completion_is(check, op.completion, direction.completion());
                reduction_type(check, op.reduction, op.ty, direction == CtaToGlobal);
                check.combination(
                    !op.cache_hint || direction == CtaToGlobal,
                    "`.L2::cache_hint` goes with a reduction to `.global`",
                );
                check.combination(
                    direction != CtaToCluster || matches!(op.scope, None | Some(Scope::Cta | Scope::Cluster)),
                    "the scope of a reduction within the cluster is `.cta` or `.cluster`",
                );
            }
            noftz_rule(check, op.reduction, op.ty, op.noftz);
            relaxed(check, op.semantics, op.scope, false);
            check.address("to", &op.to, Some(op.space));
            check.address("from", &op.from, Some(op.source));
            byte_count(check, &op.size);
            completion_barrier(check, op.mbar.as_ref());
            cache_policy(check, op.cache_hint, op.policy.as_ref());
        };

    /// Prefetches `size` bytes into the cache.
    pub struct CpAsyncBulkPrefetch("cp.async.bulk.prefetch") {
        level: BulkLevel,
        space: Space,
        cache_hint: bool = "L2::cache_hint",
    }(from: Address, size: Src, policy: Option<Src> = cache_hint) -> nothing,
        needs: |_, needs| needs.both("`cp.async.bulk.prefetch`", (8, 0), 90),
        check: |op, check| {
            crate::op::async_copy::space_among(check, "source", op.space, &[Space::Global]);
            check.address("from", &op.from, Some(op.space));
            byte_count(check, &op.size);
            cache_policy(check, op.cache_hint, op.policy.as_ref());
        };

    /// Copies `size` bytes to the memory of every device behind a multimem address.
    pub struct MultimemCpAsyncBulk("multimem.cp.async.bulk") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Space,
        source: Space,
        completion: Completion,
        cp_mask: bool = "cp_mask",
        ty: Option<Type>,
    }(to: Address, from: Address, size: Src, byte_mask: Option<Src> = cp_mask) -> nothing,
        needs: |op, needs| {
            needs.both("`multimem.cp.async.bulk`", (9, 1), 90);
            needs.sm_if(op.cp_mask, "`.cp_mask`", 100);
            semantics_needs(needs, op.semantics);
        },
        check: |op, check| {
            if direction(check, op.space, op.source, &[Direction::CtaToGlobal]).is_some() {
                completion_is(check, op.completion, Completion::BulkGroup);
            }
            relaxed(check, op.semantics, op.scope, true);
            piece_type(check, op.semantics, op.ty);
            check.address("to", &op.to, Some(op.space));
            check.address("from", &op.from, Some(op.source));
            byte_count(check, &op.size);
            byte_mask_rule(check, op.byte_mask.as_ref());
        };

    /// Reduces `size` bytes into the memory of every device behind a multimem address.
    pub struct MultimemCpReduceAsyncBulk("multimem.cp.reduce.async.bulk") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Space,
        source: Space,
        completion: Completion,
        reduction: BulkReduction,
        noftz: bool = "noftz",
        ty: Type,
    }(to: Address, from: Address, size: Src) -> nothing,
        needs: |op, needs| {
            needs.both("`multimem.cp.reduce.async.bulk`", (9, 1), 90);
            semantics_needs(needs, op.semantics);
            noftz_needs(needs, op.noftz, op.ty);
        },
        check: |op, check| {
            if direction(check, op.space, op.source, &[Direction::CtaToGlobal]).is_some() {
                completion_is(check, op.completion, Completion::BulkGroup);
            }
            reduction_type(check, op.reduction, op.ty, true);
            noftz_rule(check, op.reduction, op.ty, op.noftz);
            relaxed(check, op.semantics, op.scope, false);
            check.address("to", &op.to, Some(op.space));
            check.address("from", &op.from, Some(op.source));
            byte_count(check, &op.size);
        };

    /// Closes the group of the bulk copies started so far.
    pub struct CpAsyncBulkCommitGroup("cp.async.bulk.commit_group") {}() -> nothing,
        needs: |_, needs| needs.both("`cp.async.bulk.commit_group`", (8, 0), 90),
        check: |_, _| {};

    /// Waits until at most `n` groups of bulk copies are in flight; with `read`, until the others have read their
    /// sources.
    pub struct CpAsyncBulkWaitGroup("cp.async.bulk.wait_group") {
        read: bool = "read",
    }(n: Src) -> nothing,
        needs: |_, needs| needs.both("`cp.async.bulk.wait_group`", (8, 0), 90),
        check: |op, check| group_count(check, &op.n);
}

/// Where a bulk copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    GlobalToCta,
    GlobalToCluster,
    CtaToCluster,
    CtaToGlobal,
}

impl Direction {
    fn completion(self) -> Completion {
        match self {
            Direction::CtaToGlobal => Completion::BulkGroup,
            _ => Completion::Mbarrier,
        }
    }
}

/// The direction, if it is among those `offered`; reported otherwise.
fn direction(check: &mut Check<'_>, space: Space, source: Space, offered: &[Direction]) -> Option<Direction> {
    let found = match (space, source) {
        (Space::SharedCta, Space::Global) => Some(Direction::GlobalToCta),
        (Space::SharedCluster, Space::Global) => Some(Direction::GlobalToCluster),
        (Space::SharedCluster, Space::SharedCta) => Some(Direction::CtaToCluster),
        (Space::Global, Space::SharedCta) => Some(Direction::CtaToGlobal),
        _ => None,
    };
    let found = found.filter(|direction| offered.contains(direction));
    if found.is_none() {
        let message = format!("cannot go from `{source}` to `{space}`");
        check.report_with_help(
            Code::StateSpace,
            message,
            "shared memory is named `.shared::cta` or `.shared::cluster` here, the destination first",
        );
    }
    found
}

/// The number of bytes: 32 bits, a multiple of 16 if it is a constant.
fn byte_count(check: &mut Check<'_>, size: &Src) {
    check.word_src("size", size);
    check.imm_range("size", size, 0..=1_048_560);
    if let Src::Imm(Imm::Int(size)) = size
        && size % 16 != 0
    {
        check.report(Code::ImmediateRange, format!("the size must be a multiple of 16, not {size}"));
    }
}

/// `.relaxed` stands with a scope, and nothing else does.
fn relaxed(check: &mut Check<'_>, semantics: Option<Semantics>, scope: Option<Scope>, weak: bool) {
    let known =
        matches!(semantics, None | Some(Semantics::Relaxed)) || (weak && semantics == Some(Semantics::Weak));
    let message =
        if weak { "the ordering must be `.weak` or `.relaxed`" } else { "the ordering must be `.relaxed`" };
    check.combination(known, message);
    check.combination(
        (semantics == Some(Semantics::Relaxed)) == scope.is_some(),
        "`.relaxed` and a scope stand together or not at all",
    );
}

fn semantics_needs(needs: &mut Needs, semantics: Option<Semantics>) {
    needs.version_if(semantics.is_some(), "an ordering on a bulk copy", 9, 3);
}

/// The type that a copy may name is that of its atomic pieces.
fn piece_type(check: &mut Check<'_>, semantics: Option<Semantics>, ty: Option<Type>) {
    if let Some(ty) = ty {
        check.type_among(ty, &[Type::B128]);
    } else {
        check.combination(semantics != Some(Semantics::Relaxed), "`.relaxed` needs the type `.b128`");
    }
}

/// The types that each reduction is offered for, by destination.
fn reduction_type(check: &mut Check<'_>, reduction: BulkReduction, ty: Type, global: bool) {
    use BulkReduction::*;
    use Type::*;
    let allowed: &[Type] = match (reduction, global) {
        (Add, false) => &[U32, S32, U64],
        (Add, true) => &[U32, S32, U64, F32, F64, F16, BF16],
        (Min | Max, false) => &[U32, S32],
        (Min | Max, true) => &[U32, S32, U64, S64, F16, BF16],
        (Inc | Dec, _) => &[U32],
        (And | Or | Xor, false) => &[B32],
        (And | Or | Xor, true) => &[B32, B64],
    };
    check.type_among(ty, allowed);
}

/// `.noftz` goes with sums of floating-point values; those of 16 bits need it.
fn noftz_rule(check: &mut Check<'_>, reduction: BulkReduction, ty: Type, noftz: bool) {
    let sum = reduction == BulkReduction::Add;
    let half = matches!(ty, Type::F16 | Type::BF16);
    check.combination(!(sum && half) || noftz, "a sum of `.f16` or `.bf16` needs `.noftz`");
    check.combination(
        !noftz || (sum && (half || ty == Type::F32)),
        "`.noftz` goes with sums of `.f16`, `.bf16` and `.f32` only",
    );
}

fn noftz_needs(needs: &mut Needs, noftz: bool, ty: Type) {
    needs.version_if(noftz && ty == Type::F32, "`.noftz` with `.f32`", 9, 4);
}

fn byte_mask_rule(check: &mut Check<'_>, byte_mask: Option<&Src>) {
    check.src("byte_mask", byte_mask, Type::U16);
}

impl Rule for CpAsyncBulk {
    fn check(&self, check: &mut Check<'_>) {
        use Direction::*;
        let offered = [GlobalToCta, GlobalToCluster, CtaToCluster, CtaToGlobal];
        if let Some(direction) = direction(check, self.space, self.source, &offered) {
            completion_is(check, self.completion, direction.completion());
            check.combination(
                self.multicast.is_none() || direction == GlobalToCluster,
                "`.multicast` goes from `.global` to `.shared::cluster` only",
            );
            check.combination(
                !self.cache_hint || direction != CtaToCluster,
                "`.L2::cache_hint` goes with a copy from or to `.global`",
            );
            check.combination(
                !self.ignore_oob || direction == GlobalToCta,
                "`.ignore_oob` goes from `.global` to `.shared::cta` only",
            );
            check.combination(
                !self.cp_mask || direction == CtaToGlobal,
                "`.cp_mask` goes from `.shared::cta` to `.global` only",
            );
            check.combination(
                direction != CtaToCluster || matches!(self.scope, None | Some(Scope::Cta | Scope::Cluster)),
                "the scope of a copy within the cluster is `.cta` or `.cluster`",
            );
        }
        relaxed(check, self.semantics, self.scope, true);
        piece_type(check, self.semantics, self.ty);
        check.address("to", &self.to, Some(self.space));
        check.address("from", &self.from, Some(self.source));
        byte_count(check, &self.size);
        for (name, bytes) in [("ignore_left", &self.ignore_left), ("ignore_right", &self.ignore_right)] {
            check.word_src(name, bytes);
            check.imm_range(name, bytes, 0..=15);
        }
        completion_barrier(check, self.mbar.as_ref());
        cta_mask(check, self.cta_mask.as_ref());
        cache_policy(check, self.cache_hint, self.policy.as_ref());
        byte_mask_rule(check, self.byte_mask.as_ref());
    }
}
