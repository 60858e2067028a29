//! Barriers, fences and asynchronous copies.

use super::guard::Guard;
use super::reg::Reg;
use super::state::{BODY, Loc, Node, POISON, State};
use super::types::*;
use super::{K, Ptr};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Imm, Scope, Semantics, Space, Src};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::async_copy::*;
use warpwright_ptx::op::control::{GridDependency, Griddepcontrol};
use warpwright_ptx::op::sync::*;

/// From this architecture on, as `sm_N`, launches can overlap.
const OVERLAPPING: u16 = 90;

fn number(value: u32) -> Src {
    Src::Imm(Imm::Int(value.into()))
}

impl State {
    /// Has a body that says nothing of other launches wait for the earlier ones, and then release the later ones, before
    /// anything else.
    pub(super) fn wait_at_the_start(&mut self, loc: Loc) {
        let says = self.ops.iter().any(|op| matches!(op, Op::Griddepcontrol(_)));
        if says || self.target.sm < OVERLAPPING {
            return;
        }
        for action in [GridDependency::LaunchDependents, GridDependency::Wait] {
            let inst = self.push_inst(Griddepcontrol { action }, None, POISON, loc);
            self.blocks[BODY.0 as usize].nodes.insert(0, Node::Inst(inst));
        }
    }
}

impl<'k> K<'k> {
    /// Waits for all threads of the block; their earlier writes are visible afterwards.
    #[track_caller]
    pub fn sync(self) {
        if !self.framed_sync(Location::caller()) {
            self.append(BarSync { cta: false, a: number(0), b: None });
        }
    }

    /// Waits at barrier `id` (1 to 15) for `threads` threads, including those that only [`arrive`](Self::arrive)
    /// there.
    #[track_caller]
    pub fn sync_at(self, id: u32, threads: u32) {
        if self.named(id, threads, Location::caller()) {
            self.append(BarSync { cta: false, a: number(id), b: Some(number(threads)) });
        }
    }

    /// Arrives at barrier `id` without waiting.
    #[track_caller]
    pub fn arrive(self, id: u32, threads: u32) {
        if self.named(id, threads, Location::caller()) {
            self.append(BarArrive { cta: false, a: number(id), b: number(threads) });
        }
    }

    fn named(self, id: u32, threads: u32, loc: Loc) -> bool {
        if !self.not_called("a numbered barrier", loc) {
            return false;
        }
        let fits = id < 16 && threads > 0 && threads.is_multiple_of(32);
        if !fits {
            let message =
                format!("barrier {id} for {threads} threads; there are 16, for whole warps of 32 threads");
            self.state().mistake(Code::ImmediateRange, loc, message);
        }
        fits
    }

    /// Waits for the lanes of the warp; their earlier writes are visible afterwards.
    #[track_caller]
    pub fn sync_warp(self) {
        self.append(BarWarpSync { mask: Src::Imm(Imm::Int(-1)) });
    }

    /// Orders memory accesses within the scope: acquire and release.
    #[track_caller]
    pub fn fence(self, scope: Scope) {
        self.append(Fence { semantics: Some(Semantics::AcqRel), scope, restrict: None });
    }

    /// Orders memory accesses in one total order that all threads of the scope agree on.
    #[track_caller]
    pub fn fence_sc(self, scope: Scope) {
        self.append(Fence { semantics: Some(Semantics::SeqCst), scope, restrict: None });
    }

    /// Waits until the launches in front of this one are complete, and their memory is visible. Launches of a kernel with
    /// this may begin before that (programmatic dependent launches, from sm_90 on): before it, a thread accesses no memory
    /// that a launch in flight may write, and writes none; every block executes it.
    ///
    /// It is nothing where [`can_overlap`](Self::can_overlap) says no.
    ///
    /// A [`Kernel`](super::Kernel) whose body has neither this nor a release begins with both, unless it is cooperative.
    /// With the wait in it, it may read its [constant](super::ArgDesc::constant) arguments before: a launch does not
    /// overlap with one that writes these.
    ///
    /// ```
    /// use warpwright_dsl::*;
    ///
    /// let built = build("scale", &LaunchRule::new(64), "sm_90".parse()?, |k| {
    ///     let (x, weights) = (k.ptr_mut::<f32>("x"), k.ptr::<f32>("weights"));
    ///     k.release_launches();
    ///     let weight = weights.ld(k.tid());
    ///     k.wait_for_launches();
    ///     x.st(k.tid(), x.ld(k.tid()) * weight);
    /// })?;
    /// assert!(warpwright_ptx::verify(&built.module).is_ok_and(|info| info.functions[0].waits_for_grids));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn wait_for_launches(self) {
        self.grid_dependency(GridDependency::Wait);
    }

    /// Lets the launch behind this one begin, once every block has executed this or ended. It makes nothing visible, so
    /// it stands early. Nothing where [`wait_for_launches`](Self::wait_for_launches) is.
    #[track_caller]
    pub fn release_launches(self) {
        self.grid_dependency(GridDependency::LaunchDependents);
    }

    /// Whether launches of the kernel can overlap: not on targets below sm_90, nor in a body that another kernel calls.
    pub fn can_overlap(self) -> bool {
        self.target().sm >= OVERLAPPING && self.state().frame.is_none()
    }

    #[track_caller]
    fn grid_dependency(self, action: GridDependency) {
        if self.can_overlap() {
            self.append(Griddepcontrol { action });
        }
    }

    /// Suspends the thread for about that many nanoseconds (between zero and twice as many). Use it in loops that
    /// wait for other blocks.
    #[track_caller]
    pub fn nanosleep(self, nanoseconds: u32) {
        self.append(Nanosleep { ty: warpwright_ptx::ir::Type::U32, t: number(nanoseconds) });
    }

    /// Starts a copy of 4, 8 or 16 bytes from global to shared memory; both addresses are aligned to that size.
    #[track_caller]
    pub fn cp_async<T: Data>(self, to: Ptr<'k, Shared, T>, from: Ptr<'k, Global, T>, bytes: u32) {
        self.cp_async_if(None, to, from, bytes);
    }

    /// Does the same where the predicate holds; elsewhere it fills the destination with zeros. See [`Guard`].
    #[track_caller]
    pub fn cp_async_if<T: Data>(
        self,
        condition: impl Guard<'k>,
        to: Ptr<'k, Shared, T>,
        from: Ptr<'k, Global, T>,
        bytes: u32,
    ) {
        let size = condition.predicate().map(|condition| condition.select(bytes, 0u32));
        self.copy_async(to, from, bytes, size, Location::caller());
    }

    fn copy_async<T: Data>(
        self,
        to: Ptr<'k, Shared, T>,
        from: Ptr<'k, Global, T>,
        bytes: u32,
        size: Option<Reg<'k, u32>>,
        loc: super::state::Loc,
    ) {
        if !matches!(bytes, 4 | 8 | 16) {
            let message = format!("an asynchronous copy of {bytes} bytes; 4, 8 and 16 are possible");
            self.state().mistake(Code::ImmediateRange, loc, message);
            return;
        }
        let (to, from) = (to.address(), from.address());
        let mut state = self.state();
        let source_size = match size {
            Some(size) if !state.usable(size.id, loc) => return,
            Some(size) => Some(state.operand(size.id, loc)),
            None => None,
        };
        let op = CpAsync {
            cache: if bytes == 16 { AsyncCache::Cg } else { AsyncCache::Ca },
            space: Space::Shared,
            source: Space::Global,
            cache_hint: false,
            prefetch: None,
            to,
            from,
            size: number(bytes),
            source_size,
            policy: None,
        };
        state.effect(op, None, loc);
    }

    /// Closes the group of copies started since the last group.
    #[track_caller]
    pub fn cp_async_commit(self) {
        self.append(CpAsyncCommitGroup {});
    }

    /// Waits until at most `groups` groups of this thread are in flight.
    #[track_caller]
    pub fn cp_async_wait(self, groups: u32) {
        self.append(CpAsyncWaitGroup { n: number(groups) });
    }

    /// Waits for all copies of this thread.
    #[track_caller]
    pub fn cp_async_wait_all(self) {
        self.append(CpAsyncWaitAll {});
    }
}
