//! Barriers and fences.
//!
//! An aligned barrier first waits for all lanes of the warp that have not exited; other barriers accept threads as
//! they arrive. The barrier of the cluster is a seventeenth, at which arriving and waiting are separate instructions.

use crate::check::race::ProxyFence;
use crate::decode::{Decoder, immediate};
use crate::launch::TrapKind;
use crate::machine::{Arrival, CLUSTER_BARRIER, FULL, LANES, LanesOf, Machine, NONE, Park, Resume, Step};
use std::sync::atomic::Ordering::SeqCst;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::family::Sync as Op;
use warpwright_ptx::op::sync::{BarrierReduction, MembarLevel, ProxyKind, SyncRestrict};

/// The last barrier of a block.
const LAST: u32 = CLUSTER_BARRIER - 1;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::BarSync(bar) => barrier(d, &bar.a, bar.b.as_ref(), true, true),
        Op::BarArrive(bar) => barrier(d, &bar.a, Some(&bar.b), true, false),
        Op::BarRed(bar) => reduction(d, bar.op, bar.d, (&bar.a, bar.b.as_ref(), &bar.c), true),
        Op::BarrierSync(bar) => barrier(d, &bar.a, bar.b.as_ref(), bar.aligned, true),
        Op::BarrierArrive(bar) => barrier(d, &bar.a, Some(&bar.b), bar.aligned, false),
        Op::BarrierRed(bar) => reduction(d, bar.op, bar.d, (&bar.a, bar.b.as_ref(), &bar.c), bar.aligned),
        Op::BarWarpSync(bar) => warp_sync(d, &bar.mask),
        Op::BarrierClusterArrive(bar) => {
            cluster_arrive(d, bar.aligned, bar.semantics != Some(Semantics::Relaxed))
        }
        Op::BarrierClusterWait(bar) => cluster_wait(d, bar.aligned),
        Op::Membar(op) => match op.level {
            MembarLevel::Cta => fence(d, Scope::Cta, Some(Semantics::SeqCst)),
            MembarLevel::Gl => fence(d, Scope::Gpu, Some(Semantics::SeqCst)),
            MembarLevel::Sys => fence(d, Scope::Sys, Some(Semantics::SeqCst)),
        },
        Op::Fence(op) => fence(d, op.scope, op.semantics),
        // It is for the beginnings of mbarriers only. That it releases more can hide a race.
        Op::FenceMbarrierInit(_) => fence(d, Scope::Cluster, Some(Semantics::Release)),
        // There is one way to memory, and what is announced is there.
        Op::FenceProxy(op) if op.kind == ProxyKind::Async => {
            let fences: &[ProxyFence] = match op.space {
                None => &[ProxyFence::AsyncShared, ProxyFence::AsyncGlobal],
                Some(Space::Global) => &[ProxyFence::AsyncGlobal],
                Some(_) => &[ProxyFence::AsyncShared],
            };
            proxy_fence(d, fences);
        }
        // Programs have the one that releases without the one that acquires.
        Op::FenceProxyAsync(op) if op.restrict != SyncRestrict::SharedClusterRead => {
            proxy_fence(d, &[ProxyFence::AsyncShared])
        }
        Op::FenceProxyTensormap(op) if op.semantics == Semantics::Acquire => {
            let (scope, map) = (op.scope, op.address.as_ref().map(|map| d.address(map)));
            d.emit_fallible(move |m| {
                m.fenced(scope, Some(Semantics::Acquire));
                m.fenced_proxy(&[ProxyFence::MapAcquire]);
                if let Some(map) = &map {
                    m.acquired_maps(&m.addresses(map));
                }
                Ok(())
            });
        }
        Op::FenceProxyTensormap(op) => {
            let scope = op.scope;
            d.emit_fallible(move |m| {
                m.fenced_proxy(&[ProxyFence::MapRelease]);
                m.fenced(scope, Some(Semantics::Release));
                Ok(())
            });
        }
        Op::MembarProxy(_) | Op::FenceProxy(_) | Op::FenceProxyAsync(_) => d.emit_nothing(),
        Op::Nanosleep(_) => d.emit_fallible(|m| {
            m.give_way();
            Ok(())
        }),
    }
    true
}

fn proxy_fence(d: &mut Decoder<'_, '_>, fences: &'static [ProxyFence]) {
    d.emit_fallible(move |m| {
        m.fenced_proxy(fences);
        Ok(())
    });
}

/// The operands of a barrier.
#[derive(Clone, Copy)]
struct BarrierRows {
    id: u32,
    /// The number, where it is a constant.
    known: Option<u32>,
    count: Option<u32>,
    aligned: bool,
}

impl BarrierRows {
    fn decode(d: &mut Decoder<'_, '_>, id: &Src, count: Option<&Src>, aligned: bool) -> Self {
        let known = match id {
            Src::Imm(imm) => u32::try_from(immediate(*imm, Type::U32)).ok().filter(|id| *id <= LAST),
            _ => None,
        };
        let id = d.src32(id, Type::U32);
        BarrierRows { id, known, count: count.map(|count| d.src32(count, Type::U32)), aligned }
    }

    /// Arrives, with the predicate of a reduction: the number of true predicates and of threads, if it has waited for that.
    fn arrive(
        self,
        m: &mut Machine<'_>,
        waits: bool,
        holds: Option<u32>,
    ) -> Result<Option<(u32, u32)>, Step> {
        let ids = m.registers.row32(self.id);
        if self.known.is_none()
            && let Some(lane) = LanesOf(m.mask).find(|&lane| ids[lane] > LAST)
        {
            let message = format!("there is no barrier {}: those of a block are 0 to {LAST}", ids[lane]);
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        let counts = self.count.map(|row| *m.registers.row32(row));
        if let Some(counts) = counts {
            // A count of 0 stands for all threads, where the instruction has a form without one.
            let wrong = |count: u32| count == 0 && !waits || !count.is_multiple_of(LANES as u32);
            if let Some(lane) = LanesOf(m.mask).find(|&lane| wrong(counts[lane])) {
                let message = format!(
                    "a barrier of {} threads: the number must be a multiple of {LANES}, for whole warps",
                    counts[lane]
                );
                return Err(m.trap(TrapKind::BadOperand, message));
            }
            if !self.aligned {
                m.one_at_a_time(&counts)?;
            }
        }
        if self.aligned {
            if let Some(step) = m.converge(FULL, NONE) {
                return Err(step);
            }
            if m.mask != FULL && m.mask == m.warp.live {
                m.report_exited_lanes();
            }
        } else if self.known.is_none() {
            let ids = *m.registers.row32(self.id);
            m.one_at_a_time(&ids)?;
        }
        let lane = m.mask.trailing_zeros() as usize & (LANES - 1);
        let count = counts.map(|counts| counts[lane]).filter(|&count| count != 0);
        let id = self.known.unwrap_or_else(|| m.registers.row32(self.id)[lane]);
        m.arrive(Arrival { id, count, waits, holds, releases: true })
    }
}

fn barrier(d: &mut Decoder<'_, '_>, id: &Src, count: Option<&Src>, aligned: bool, waits: bool) {
    let rows = BarrierRows::decode(d, id, count, aligned);
    d.emit_fallible(move |m| rows.arrive(m, waits, None).map(|_| ()));
}

fn reduction(
    d: &mut Decoder<'_, '_>,
    op: BarrierReduction,
    to: Dst,
    (id, count, holds): (&Src, Option<&Src>, &Src),
    aligned: bool,
) {
    let rows = BarrierRows::decode(d, id, count, aligned);
    let holds = d.predicate(holds);
    let to = d.dst(to);
    d.emit_fallible(move |m| {
        let holds = m.registers.predicate(holds);
        let (yes, all) = rows.arrive(m, true, Some(holds))?.unwrap_or((0, 0));
        match op {
            BarrierReduction::Popc => m.registers.set32(to, &[yes; LANES], m.mask),
            BarrierReduction::And => m.registers.set_predicate(to, if yes == all { FULL } else { 0 }, m.mask),
            BarrierReduction::Or => m.registers.set_predicate(to, if yes != 0 { FULL } else { 0 }, m.mask),
        }
        Ok(())
    });
}

fn warp_sync(d: &mut Decoder<'_, '_>, mask: &Src) {
    const KEY: u32 = 6 << 16;
    let members = d.src32(mask, Type::B32);
    d.emit_fallible(move |m| {
        let members = *m.registers.row32(members);
        let (present, _) = m.meet_lanes(&members, KEY, |_| [0; LANES])?;
        m.warp_synced(&members, present);
        Ok(())
    });
}

fn cluster_arrive(d: &mut Decoder<'_, '_>, aligned: bool, releases: bool) {
    d.emit_boxed(move |m, _| {
        if aligned && let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let arrived = m.barrier(CLUSTER_BARRIER).arrived().get(m.warp_at(CLUSTER_BARRIER)).copied();
        if arrived.unwrap_or(0) & m.mask != 0 {
            let message = "a thread arrives at the barrier of the cluster, and has arrived there in the same phase: it \
                           must wait (`barrier.cluster.wait`) before it arrives again";
            return m.trap(TrapKind::BadBarrier, message.to_owned());
        }
        m.warp.announced |= m.mask;
        m.arrive(Arrival { id: CLUSTER_BARRIER, count: None, waits: false, holds: None, releases })
            .err()
            .unwrap_or(Step::Next)
    });
}

/// Waits for the phase in which the lanes have arrived, if it is not over. One that has not arrived waits for itself.
fn cluster_wait(d: &mut Decoder<'_, '_>, aligned: bool) {
    d.emit_boxed(move |m, _| {
        if aligned && let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        if let Some(Resume::Passed { .. }) = m.take_resume() {
            return m.pass_cluster_barrier();
        }
        let barrier = m.barrier(CLUSTER_BARRIER);
        let arrived = barrier.arrived().get(m.warp_at(CLUSTER_BARRIER)).copied().unwrap_or(0);
        if arrived & m.mask == 0 && m.mask & !m.warp.announced == 0 {
            return m.pass_cluster_barrier();
        }
        let generation = barrier.generation;
        m.park(Park::Barrier { id: CLUSTER_BARRIER, generation, asks: true });
        Step::Reload
    });
}

impl Machine<'_> {
    fn pass_cluster_barrier(&mut self) -> Step {
        self.warp.announced &= !self.mask;
        self.waited_for_cluster();
        Step::Next
    }
}

fn fence(d: &mut Decoder<'_, '_>, scope: Scope, semantics: Option<Semantics>) {
    d.emit_boxed(move |m, _| {
        // Other blocks may be run by other threads of the host.
        if scope != Scope::Cta {
            std::sync::atomic::fence(SeqCst);
        }
        m.fenced(scope, semantics);
        Step::Next
    });
}
