//! The calls by which instructions report to the checks.

use super::observe::{Touch, phase_of_cluster, relaxed_phase_of_cluster, scope_of};
use super::race::{AccessKind, Agent, FenceKind, GroupsOf, ProxyFence};
use super::{Action, FindingKind, RawFinding, RawPlace, RawSite};
use crate::TENSOR_MAP_BYTES;
use crate::decode::Meta;
use crate::launch::Race;
use crate::machine::{CLUSTER_BARRIER, LANES, LanesOf, Machine, Park, Row32, Row64};
use crate::memory::{Fault, Group, Order};
use warpwright_ptx::ir::{Scope, Semantics};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::family::{BulkCopy, Family, Memory, Sync};

/// The address of shared memory under which the cluster's barrier is known: there is none.
const CLUSTER_PHASES: u64 = u64::MAX;

/// Warp collectives and registers.
impl Machine<'_> {
    /// Lanes execute a collective of the warp whose mask leaves them out.
    #[cold]
    pub(crate) fn report_outside_mask(&mut self, lanes: u32, members: &Row32) {
        if self.launch.options.checks.sync {
            let lane = lanes.trailing_zeros() as usize & 31;
            self.found(FindingKind::UnnamedLane { named: members[lane] }, lane);
        }
    }

    /// Lanes are at a barrier for whole warps, and all of their warp that have not exited.
    #[cold]
    pub(crate) fn report_exited_lanes(&mut self) {
        let checks = self.launch.options.checks;
        let threads = self.launch.shape.threads() - self.warp_index as u32 * LANES as u32;
        let exited = u32::MAX.checked_shr(32u32.saturating_sub(threads)).unwrap_or(0) & !self.mask;
        if checks.sync && exited != 0 && !self.warp.forced {
            let kind = FindingKind::ExitedLanes { present: self.mask, exited, strict: checks.strict_sync };
            self.found(kind, self.mask.trailing_zeros() as usize & 31);
        }
    }

    /// The running path waits for lanes that never come.
    #[cold]
    pub(crate) fn report_missing_lanes(&mut self) {
        let path = self.warp.paths[self.warp.current];
        let Park::Converge { need, .. } = path.park else { return };
        if !self.launch.options.checks.sync {
            return;
        }
        let (present, expected) = (path.mask, need & self.warp.live);
        let kind = match self.launch.module.op(path.pc).map(Op::family) {
            Some(Family::Sync(op)) if !matches!(op, Sync::BarWarpSync(_)) => {
                FindingKind::DivergentBarrier { present, expected }
            }
            _ => FindingKind::MissingLanes { present, named: need },
        };
        self.found_at(path.pc, kind, present.trailing_zeros() as usize & 31);
    }
}

/// Registers.
impl Machine<'_> {
    /// The instruction uses a register that a product of a warpgroup uses, or is such a product and has a register that no
    /// fence has made known: `other` is the statement of the product, or of what has written the register. Compilers move
    /// what writes registers behind a fence, and assemblers put that right: it is found where races are by the letter.
    #[cold]
    pub(crate) fn used_early(&mut self, other: u32, unfenced: bool) {
        let launch = self.launch;
        let meta = &launch.code.meta;
        let (function, own) = (meta[self.pc as usize].function, meta[self.pc as usize].statement);
        let is_looked_for = !unfenced || other == own || launch.options.race == Race::Strict;
        if !launch.options.checks.race || !is_looked_for || self.mask == 0 {
            return;
        }
        let is_other = |meta: &Meta| meta.function == function && meta.statement == other;
        let pc = meta.iter().position(is_other).unwrap_or(self.pc as usize) as u32;
        let lane = self.mask.trailing_zeros() as usize & 31;
        let first = self.site(Action::Execute, lane);
        let second = Some(RawSite { pc, ..first });
        let kind = FindingKind::RegisterInFlight { unfenced };
        self.launch.findings.add(RawFinding { kind, first, second, count: 1 });
    }
}

/// Memory.
impl Machine<'_> {
    /// `malloc` has returned memory: it is uninitialised, and earlier accesses to it belong to something else.
    pub(crate) fn given_memory(&mut self, address: u64, bytes: u64) {
        let Some(allocation) = self.launch.memory.lookup(address) else { return };
        if address != 0 && self.checks_accesses() {
            allocation.written.clear(address - allocation.base, bytes);
            self.launch.races.forget(address, bytes);
        }
    }

    /// An access that is not allowed was not done; `counts` for the first lane of an instruction with such a
    /// fault.
    #[cold]
    pub(crate) fn report_fault(&mut self, fault: Fault, counts: bool) {
        let action = match (self.launch.module.op(fault.pc).map(Op::family), fault.write) {
            (Some(Family::Atomic(_) | Family::Memory(Memory::MultimemRed(_))), _) => Action::Atomic,
            (
                Some(Family::BulkCopy(BulkCopy::TensormapReplace(_) | BulkCopy::TensormapCpFenceproxy(_))),
                write,
            ) => {
                if write {
                    Action::Write
                } else {
                    Action::Read
                }
            }
            (Some(Family::AsyncCopy(_) | Family::BulkCopy(_)), true) => Action::AsyncWrite,
            (
                Some(Family::AsyncCopy(_) | Family::BulkCopy(_) | Family::Wgmma(_) | Family::Tcgen05(_)),
                false,
            ) => Action::AsyncRead,
            (_, true) => Action::Write,
            (_, false) => Action::Read,
        };
        let memory =
            Some(RawPlace { space: fault.space, address: fault.address, bytes: fault.bytes, frame: None });
        let (block, thread) = (fault.block, fault.thread);
        let first = RawSite { pc: fault.pc, action, block, thread, memory };
        let kind = FindingKind::Access(fault.kind);
        self.launch.findings.add(RawFinding { kind, first, second: None, count: counts.into() });
    }
}

/// Synchronisation.
impl<'a> Machine<'a> {
    /// `bar.warp.sync`: the lanes named have met. Those that have exited count as there.
    pub(crate) fn warp_synced(&mut self, members: &Row32, present: u32) {
        let absent = self.warp.live & !present;
        let mask = self.mask;
        self.tell(|races, warp| {
            // Lanes that name different ones may be there together, and do not meet for that.
            let mut todo = mask;
            while todo != 0 {
                let named = members[todo.trailing_zeros() as usize & 31];
                races.warp_sync(warp, named & !absent);
                todo =
                    LanesOf(todo).filter(|&lane| members[lane] != named).fold(0, |all, lane| all | 1 << lane);
            }
        });
    }

    /// A fence.
    pub(crate) fn fenced(&mut self, scope: Scope, semantics: Option<Semantics>) {
        let kind = match semantics {
            Some(Semantics::Acquire) => FenceKind::Acquire,
            Some(Semantics::Release) => FenceKind::Release,
            Some(Semantics::SeqCst) => FenceKind::Sequential,
            _ => FenceKind::Both,
        };
        let (mask, scope) = (self.mask, scope_of(self.launch, scope));
        self.tell(|races, warp| races.fence(warp, mask, scope, kind));
    }

    /// A fence between what threads did and other proxies.
    pub(crate) fn fenced_proxy(&mut self, fences: &[ProxyFence]) {
        let mask = self.mask;
        if self.launch.code.async_proxy {
            self.tell(|races, warp| races.fence_proxy(warp, mask, fences));
        }
    }

    /// The lanes acquire the tensor maps at these addresses.
    pub(crate) fn acquired_maps(&mut self, addresses: &Row64) {
        let (launch, mask) = (self.launch, self.mask);
        if launch.code.async_proxy {
            self.tell(|races, warp| {
                for lane in LanesOf(mask) {
                    let map = (addresses[lane], TENSOR_MAP_BYTES as u32);
                    races.acquired_map(&launch.races, warp, lane as u32, map);
                }
            });
        }
    }

    /// The lanes that execute have announced themselves at a barrier of the block, and go on.
    pub(crate) fn barrier_announced(&mut self, id: u32, releases: bool) {
        let mask = self.mask;
        if id == CLUSTER_BARRIER && !releases {
            self.cluster.tensor.settle();
        }
        if id == CLUSTER_BARRIER && !self.cluster.is_alone() {
            let generation = self.barrier(id).generation;
            self.release_to_peers(phase_of_cluster(generation), mask, releases);
            if !releases {
                self.release_to_peers(relaxed_phase_of_cluster(generation), mask, true);
            }
        }
        self.tell(|races, warp| match id {
            CLUSTER_BARRIER if releases => races.mbarrier_arrive(CLUSTER_PHASES, warp, mask),
            CLUSTER_BARRIER => races.mbarrier_arrive_relaxed(CLUSTER_PHASES, warp, mask),
            _ => races.barrier_arrive(id as usize, warp, mask),
        });
    }

    /// A barrier of the block is complete, for the waiting lanes of each warp; `all` if these are all live lanes, and
    /// none has only arrived.
    pub(crate) fn barrier_passed(&mut self, id: u32, waiting: &[u32], all: bool) {
        if id == CLUSTER_BARRIER {
            let blocks = self.cluster.blocks.iter_mut().chain([&mut self.block]);
            let races = blocks.filter_map(|block| block.checks.races.as_mut());
            return races.for_each(|races| races.mbarrier_complete(CLUSTER_PHASES));
        }
        self.tell(|races, _| {
            if all {
                races.barrier_all();
            } else {
                let waiting: Vec<(u8, u32)> = waiting
                    .iter()
                    .enumerate()
                    .filter(|&(_, &lanes)| lanes != 0)
                    .map(|(warp, &lanes)| (warp as u8, lanes))
                    .collect();
                races.barrier(id as usize, &waiting);
            }
        });
    }

    /// The lanes that execute have waited at the barrier of the cluster.
    pub(crate) fn waited_for_cluster(&mut self) {
        let mask = self.mask;
        let generation = self.barrier(CLUSTER_BARRIER).generation;
        self.block.checks.met = generation;
        self.tell(|races, warp| races.mbarrier_waited(CLUSTER_PHASES, warp, mask));
        self.acquire_from_peers(phase_of_cluster(generation.wrapping_sub(1)), mask);
    }

    /// An asynchronous copy has been issued that reads or writes.
    pub(crate) fn issued_copy(&mut self, kind: AccessKind, group: &Group<'a>) {
        // A copy has no elements. What it reads may be any number of bytes.
        let element = if group.bytes.is_power_of_two() { group.bytes } else { 1 };
        self.touches(Touch { kind, element, order: Order::WEAK }, group, &[]);
    }

    /// Groups of asynchronous operations have been closed.
    pub(crate) fn committed_groups(&mut self, of: GroupsOf) {
        let mask = self.mask;
        self.tell(|races, warp| races.commit_group(of, warp, mask));
    }

    /// All groups but the last `pending` are complete, or have been `read`.
    pub(crate) fn waited_for_groups(&mut self, of: GroupsOf, pending: u32, read: bool) {
        let mask = self.mask;
        self.tell(|races, warp| races.wait_group(of, warp, mask, pending as usize, read));
    }

    /// So many groups of products of a warp of the warpgroup are complete.
    pub(crate) fn waited_for_products_of(&mut self, other: usize, groups: u64) {
        let mask = self.mask;
        self.tell(|races, warp| races.wait_products_of(warp, mask, other as u8, groups));
    }

    /// All copies of `cp.async` have been waited for.
    pub(crate) fn waited_for_all_copies(&mut self) {
        let mask = self.mask;
        self.tell(|races, warp| races.wait_all(warp, mask));
    }

    /// The lanes that execute have passed `griddepcontrol.wait`.
    pub(crate) fn passed_grid_wait(&mut self) {
        if self.launch.is_dependent() {
            let mask = self.mask;
            self.tell(|races, warp| races.grid_wait(warp, mask));
        }
    }

    /// The lanes that execute have released dependent launches; the first time in a block counts.
    pub(crate) fn released_dependents(&mut self) {
        let (launch, warp, mask) = (self.launch, self.warp_index as u8, self.mask);
        if launch.is_dependent() && !std::mem::replace(&mut self.block.checks.released, true) {
            let races = self.block.checks.races.as_ref();
            if races.is_some_and(|races| races.before_grid_wait(warp, mask) != 0) {
                launch.released_early();
            }
        }
    }

    /// There is an mbarrier now, or none any more.
    pub(crate) fn began_mbarrier(&mut self, at: u32) {
        self.tell_owner(at, |races| races.mbarrier_begin(at.into()));
    }

    /// A lane has arrived at an mbarrier.
    pub(crate) fn arrived_at_mbarrier(&mut self, at: u32, lane: usize, releases: bool) {
        if !releases {
            self.cluster.tensor.settle();
        }
        if self.owner(at) != self.block.rank {
            return self.release_to_peers(at.into(), 1 << lane, releases);
        }
        self.tell(|races, warp| match releases {
            true => races.mbarrier_arrive(at.into(), warp, 1 << lane),
            false => races.mbarrier_arrive_relaxed(at.into(), warp, 1 << lane),
        });
    }

    /// What an agent of a lane has done has arrived at an mbarrier.
    pub(crate) fn copies_arrived_at_mbarrier(&mut self, agent: Agent, at: u32, lane: usize) {
        if agent == Agent::Tensor {
            let by = (self.block.rank, self.thread(lane));
            self.cluster.tensor.commit(at, by);
            // What the thread knew when it issued them comes before its operations.
            self.arrived_at_mbarrier(at, lane, true);
        }
        if self.owner(at) != self.block.rank {
            return self.release_copies_to_peers(agent, at.into(), 1 << lane);
        }
        self.tell(|races, warp| races.mbarrier_arrive_copies(at.into(), warp, 1 << lane, agent));
    }

    /// The phase of an mbarrier is over.
    pub(crate) fn completed_mbarrier(&mut self, at: u32) {
        self.cluster.tensor.end(at);
        self.tell_owner(at, |races| races.mbarrier_complete(at.into()));
    }

    /// A lane has seen that the phase of an mbarrier is over.
    pub(crate) fn waited_at_mbarrier(&mut self, at: u32, lane: usize, acquires: bool) {
        self.cluster.tensor.seen(at);
        if !acquires {
            self.cluster.tensor.settle();
        }
        self.tell(|races, warp| match acquires {
            true => races.mbarrier_waited(at.into(), warp, 1 << lane),
            false => races.mbarrier_seen(at.into(), warp, 1 << lane),
        });
        if acquires {
            self.acquire_from_peers(at.into(), 1 << lane);
        }
    }
}
