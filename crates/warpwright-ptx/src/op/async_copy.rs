//! Copies that run beside the thread: cp.async and its groups.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

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
    /// Copies from global to shared memory beside the thread.
    pub struct CpAsync("cp.async") {
        cache: AsyncCache,
        space: Space,
        source: Space,
        cache_hint: bool = "L2::cache_hint",
        prefetch: Option<super::memory::PrefetchSize>,
    }(to: Address, from: Address, size: Src, source_size: Option<Src>, policy: Option<Src>)

    /// Closes the group of the copies that were begun.
    pub struct CpAsyncCommitGroup("cp.async.commit_group") {}()

    /// Waits until at most `n` groups are under way.
    pub struct CpAsyncWaitGroup("cp.async.wait_group") {}(n: Src)

    /// Waits for all copies.
    pub struct CpAsyncWaitAll("cp.async.wait_all") {}()
}

impl Rule for CpAsync {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for CpAsyncCommitGroup {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for CpAsyncWaitGroup {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for CpAsyncWaitAll {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
