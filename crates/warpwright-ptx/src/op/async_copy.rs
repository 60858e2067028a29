//! Asynchronous copies: `cp.async` and its groups.

use super::{Presence, Rule, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// Where an asynchronous copy is cached.
    pub enum AsyncCache {
        /// At all levels.
        Ca = "ca",
        /// At the global level (L2) only.
        Cg = "cg",
    }
}

instruction! {
    /// Starts a copy of 4, 8 or 16 bytes from global to shared memory. `source_size` is the number of bytes to read,
    /// and zeros fill the rest; as a predicate, it means to read none.
    pub struct CpAsync("cp.async") {
        cache: AsyncCache,
        space: Space,
        source: Space,
        cache_hint: bool = "L2::cache_hint",
        prefetch: Option<super::memory::PrefetchSize>,
    }(
        to: Address,
        from: Address,
        size: Src,
        source_size: Option<Src> = Presence::Before(true, usize::from(cache_hint)),
        policy: Option<Src> = Presence::Before(true, 0),
    ) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.async`", (7, 0), 80);
            needs.version_if(op.cache_hint, "`.L2::cache_hint`", 7, 4);
            needs.version_if(op.prefetch.is_some(), "a prefetch size", 7, 4);
        };

    /// Closes the group of the copies started so far.
    pub struct CpAsyncCommitGroup("cp.async.commit_group") {}() -> nothing,
        needs: |_, needs| needs.both("`cp.async.commit_group`", (7, 0), 80),
        check: |_, _| {};

    /// Waits until at most `n` groups are in flight.
    pub struct CpAsyncWaitGroup("cp.async.wait_group") {}(n: Src) -> nothing,
        needs: |_, needs| needs.both("`cp.async.wait_group`", (7, 0), 80),
        check: |op, check| group_count(check, &op.n);

    /// Waits for all copies.
    pub struct CpAsyncWaitAll("cp.async.wait_all") {}() -> nothing,
        needs: |_, needs| needs.both("`cp.async.wait_all`", (7, 0), 80),
        check: |_, _| {};

    /// Makes the completion of the thread's copies so far arrive at a barrier in shared memory. Without `noinc`, the
    /// barrier's pending count is increased for that arrival.
    pub struct CpAsyncMbarrierArrive("cp.async.mbarrier.arrive") {
        noinc: bool = "noinc",
        space: Option<Space>,
        ty: Type,
    }(address: Address) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.async.mbarrier.arrive`", (7, 0), 80);
            super::mbarrier::space_needs(needs, op.space);
        },
        check: |op, check| {
            check.type_among(op.ty, &[Type::B64]);
            super::mbarrier::barrier_space(check, op.space, false);
            match op.space {
                None => check.wide_address("address", &op.address, None),
                space => check.address("address", &op.address, space),
            }
        };
}

impl Rule for CpAsync {
    fn check(&self, check: &mut Check<'_>) {
        space_among(check, "destination", self.space, &[Space::Shared, Space::SharedCta]);
        space_among(check, "source", self.source, &[Space::Global]);
        check.address("to", &self.to, Some(self.space));
        check.address("from", &self.from, Some(self.source));
        let sizes: &[i64] = match self.cache {
            AsyncCache::Ca => &[4, 8, 16],
            AsyncCache::Cg => &[16],
        };
        let size = match self.size {
            Src::Imm(Imm::Int(size)) if sizes.contains(&size) => size,
            Src::Imm(_) => {
                let message = match self.cache {
                    AsyncCache::Ca => "the copy's size must be 4, 8 or 16",
                    AsyncCache::Cg => "the copy's size must be 16 with `.cg`",
                };
                check.report(Code::ImmediateRange, message);
                16
            }
            _ => {
                check.report(Code::OperandForm, "the copy's size must be a constant");
                16
            }
        };
        if let Some(source_size) = &self.source_size
            && !ignores_source(check, source_size)
        {
            check.word_src("source_size", source_size);
            check.imm_range("source_size", source_size, 0..=size);
        }
        cache_policy(check, self.cache_hint, self.policy.as_ref());
    }
}

/// Whether the operand is a predicate. What that form needs depends on the register's type, which
/// `needs` does not see, so it is checked here.
fn ignores_source(check: &mut Check<'_>, source_size: &Src) -> bool {
    let predicate = source_size.reg().is_some_and(|reg| check.reg_type(reg) == Type::Pred);
    if predicate && check.version() < Version::new(7, 5) {
        let message = format!(
            "a predicate that ignores the source needs PTX 7.5 or later; the module says {}",
            check.version()
        );
        check.report(Code::NeedsVersion, message);
    }
    predicate
}

/// `what` must lie in one of the spaces.
pub(super) fn space_among(check: &mut Check<'_>, what: &str, space: Space, allowed: &[Space]) {
    if !allowed.contains(&space) {
        let names: Vec<_> = allowed.iter().map(|space| format!("`{space}`")).collect();
        let message = format!("the {what} cannot be in `{space}`; it must be in {}", names.join(" or "));
        check.report(Code::StateSpace, message);
    }
}

/// The number of groups that may stay under way is a constant.
pub(super) fn group_count(check: &mut Check<'_>, n: &Src) {
    if !matches!(n, Src::Imm(imm) if !imm.is_float()) {
        check.report(Code::OperandForm, "the number of groups must be an integer constant");
    }
}

/// A cache policy stands exactly where `.L2::cache_hint` asks for it.
pub(super) fn cache_policy(check: &mut Check<'_>, cache_hint: bool, policy: Option<&Src>) {
    match policy {
        Some(_) if !cache_hint => check.report(
            Code::OperandCount,
            "a cache policy is given, which needs the modifier `.L2::cache_hint`",
        ),
        Some(policy) => check.src("policy", policy, Type::U64),
        None if cache_hint => {
            check.report(Code::OperandCount, "`.L2::cache_hint` needs a cache policy as last operand");
        }
        None => {}
    }
}
