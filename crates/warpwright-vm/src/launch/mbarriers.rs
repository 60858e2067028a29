//! Which mbarriers threads wait for that never come, for the report of a deadlock.

use super::Launch;
use crate::check::{SourceLine, SourceLines, shown};
use crate::machine::Cluster;
use crate::op::mbarrier::State;
use std::collections::BTreeMap;
use std::fmt;
use warpwright_ptx::ir::Origin;

/// Most waits that are reported.
const MAX_WAITS: usize = 16;

/// Threads that wait at one instruction for a phase of an mbarrier that does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MbarrierWait {
    /// The origin of the instruction at which they test it.
    pub origin: Origin,
    /// Its source line, if known.
    pub source: Option<SourceLine>,
    /// Where the mbarrier is: its address and its variable.
    pub mbarrier: String,
    /// The block whose threads they are.
    pub block: [u32; 3],
    /// The parity of the phase, which is the one that the mbarrier is in.
    pub parity: u8,
    /// Arrivals that the phase still expects.
    pub pending: u32,
    /// Arrivals that it expects in all.
    pub expected: u32,
    /// Bytes of transactions that are outstanding; negative: more have come than are expected.
    pub bytes: i32,
    /// The threads that wait.
    pub threads: u64,
    /// Threads of the cluster that have not exited and do not wait for this phase: only these could arrive.
    pub others: u64,
}

impl fmt::Display for MbarrierWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MbarrierWait { parity, pending, expected, bytes, threads, others, .. } = self;
        let [x, y, z] = self.block;
        let waits = if *threads == 1 { "thread waits" } else { "threads wait" };
        write!(
            f,
            "{threads} {waits} in block ({x},{y},{z}) for the phase of parity {parity} of the mbarrier at {}: {pending} of \
             its {expected} arrivals are pending, and {bytes} bytes",
            self.mbarrier
        )?;
        if *bytes < 0 {
            write!(f, "; {} bytes have come that no arrival announced", -bytes)?;
        } else if *pending == 0 {
            f.write_str("; no copy is under way that could bring those bytes")?;
        } else if pending == expected && *bytes == 0 && *parity == 1 {
            f.write_str(
                "; nobody has arrived since the phase of parity 0 ended, for which a wait would be over: is it the wrong \
                 parity?",
            )?;
        }
        match others {
            0 => f.write_str(
                "; every thread that has not exited waits for it, so nobody is left that could arrive",
            ),
            1 => f.write_str("; one other thread has not exited and could arrive"),
            _ => write!(f, "; {others} other threads have not exited and could arrive"),
        }
    }
}

/// What threads of these clusters wait for, in the order of blocks and of the text.
pub(super) fn waits<'a>(launch: &Launch, clusters: impl Iterator<Item = &'a Cluster>) -> Vec<MbarrierWait> {
    let mut lines = SourceLines::new(&launch.module);
    let mut waits = Vec::new();
    for cluster in clusters {
        let warps = || {
            let blocks = cluster.blocks.iter().enumerate();
            blocks.flat_map(|(rank, block)| block.warps.iter().map(move |warp| (rank, warp)))
        };
        let live: u64 = warps().map(|(_, warp)| u64::from(warp.live.count_ones())).sum();
        // By place and phase: the threads.
        let mut places = BTreeMap::new();
        let mut phases: BTreeMap<(u32, bool), u64> = BTreeMap::new();
        for (rank, warp) in warps() {
            for awaited in &warp.awaited {
                let threads = u64::from((awaited.lanes & warp.live).count_ones());
                let state = State::at(&cluster.shared, awaited.offset);
                let Some(state) = state.filter(|state| threads > 0 && !state.is_over(awaited.parity)) else {
                    continue;
                };
                let key = (rank, awaited.pc, awaited.offset, awaited.parity);
                places.entry(key).or_insert((awaited.barrier, state, 0)).2 += threads;
                *phases.entry((awaited.offset, awaited.parity)).or_default() += threads;
            }
        }
        for (&(rank, pc, offset, parity), &(barrier, state, threads)) in &places {
            if waits.len() == MAX_WAITS {
                return waits;
            }
            waits.push(MbarrierWait {
                origin: launch.code.meta[pc as usize].origin,
                source: lines.of(pc),
                mbarrier: shown(launch, barrier),
                block: cluster.blocks[rank].index,
                parity: parity.into(),
                pending: state.pending,
                expected: state.expected,
                bytes: state.bytes,
                threads,
                others: live - phases[&(offset, parity)],
            });
        }
    }
    waits
}
