//! Runs the resident clusters of a host thread in turn, until they are over, wait, or repeat themselves.

use super::report;
use super::{LONG, Launch, WAITING};
use crate::machine::{Around, BlockStatus, Cluster, Machine, Turn, room_of_block};
use std::mem::take;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// Clusters of a host thread that wait for the launch in front of theirs: enough for an order of them, and few to keep.
const HELD_CLUSTERS: usize = 4;

/// The clusters that a host thread has begun and not finished. Without clusters, each is one block.
pub(super) struct Residents {
    pub(super) clusters: Vec<Cluster>,
    /// Clusters that are over, to be used again.
    spare: Vec<Cluster>,
    /// How many there may be, if more than one.
    max: u64,
    /// Which host thread this is.
    index: u32,
}

impl Residents {
    pub(super) fn new(launch: &Launch, index: u32) -> Self {
        let size = u64::from(launch.shape.cluster_blocks());
        let share = launch.options.residency.div_ceil(u64::from(launch.workers) * size).max(1);
        Residents { clusters: Vec::new(), spare: Vec::new(), max: share, index }
    }

    fn admit(&mut self, launch: &Launch, number: u64) {
        let used = self.spare.pop();
        let size = u64::from(launch.shape.cluster_blocks());
        if used.is_none() && !launch.hold(size * room_of_block(&launch.shape, &launch.code, launch.kernel)) {
            return launch.trap(report::out_of_memory(launch));
        }
        let mut cluster = used.unwrap_or_default();
        cluster.start(number, launch);
        self.clusters.push(cluster);
    }

    /// Begins another cluster, if there is one and it may.
    fn admit_next(&mut self, launch: &Launch) -> bool {
        // A cooperative grid has all of its blocks from the start.
        if launch.options.cooperative || self.clusters.len() as u64 >= self.max {
            return false;
        }
        match launch.take_cluster() {
            Some(turn) => {
                self.admit(launch, turn);
                true
            }
            None => false,
        }
    }

    /// Begins as many other clusters as there are, if they may.
    fn admit_others(&mut self, launch: &Launch) {
        let count = self.clusters.len();
        while self.clusters.len() < 2 * count && self.admit_next(launch) {
            launch.changed();
        }
    }

    /// Whether a cluster does the same again and again, and nothing has changed that could end that.
    fn stands(&self, launch: &Launch, cluster: usize) -> bool {
        let now = launch.changes.load(Acquire);
        if !self.clusters[cluster].circles(now) {
            return false;
        }
        let all = self.clusters.iter().all(|cluster| cluster.circles(now));
        if all && launch.stands_still(self.index, now) {
            launch.stall(&self.clusters);
        }
        true
    }

    /// Begins its first clusters.
    pub(super) fn begin(&mut self, launch: &Launch, m: &Machine<'_>) {
        if launch.options.cooperative {
            let all = (self.index as u64..launch.shape.clusters()).step_by(launch.workers as usize);
            for number in all {
                self.admit(launch, number);
                if launch.is_stopped() {
                    break;
                }
            }
        } else {
            self.admit_next(launch);
            if m.worker.random.is_some() {
                while self.clusters.len() < 8 && self.admit_next(launch) {}
            }
        }
    }

    /// Runs clusters until there are none any more, or the launch ends or stands still.
    pub(super) fn run<'a>(&mut self, launch: &'a Launch, m: &mut Machine<'a>) {
        let mut turn = 0;
        let (mut waiting, mut held_turns) = (0, 0);
        let (mut stalled, mut idle, mut lingered, mut total) = (0, 0, 0, 0);
        let slice = launch.slice.load(Relaxed);
        let mut seen = launch.changes.load(Acquire);
        let patience = launch.patience.load(Relaxed);
        let mut awake = Awake { launch, is: false };
        awake.set(true);
        while !self.clusters.is_empty() && !launch.is_stopped() && !launch.is_leaving() {
            turn = match &mut m.worker.random {
                Some(random) if !m.worker.steady => random.below(self.clusters.len() as u64) as usize,
                _ => turn % self.clusters.len(),
            };
            if m.worker.steady && self.stands(launch, turn) {
                turn += 1;
                waiting += 1;
                if waiting > self.clusters.len() {
                    std::thread::yield_now();
                }
                continue;
            }
            let before = self.clusters[turn].clock();
            m.worker.allowance =
                launch.options.max_instructions.saturating_sub(launch.executed.load(Relaxed));
            m.exchange_cluster(&mut self.clusters[turn]);
            let status = m.run_cluster();
            m.exchange_cluster(&mut self.clusters[turn]);
            account(launch, m);
            let progressed = take(&mut m.worker.progress);
            let (read, polled) = (take(&mut m.worker.read), take(&mut m.worker.polled_host));
            let (acted, timed) = (take(&mut m.worker.outward), take(&mut m.worker.timed));
            if acted {
                launch.acts.fetch_add(1, AcqRel);
            }
            if acted || polled || timed {
                launch.changed();
            }
            let spent = self.clusters[turn].clock() - before;
            let gave_way = status == BlockStatus::Waiting;
            let counted = spent.max(if gave_way { WAITING } else { 0 });
            (idle, lingered) = if acted { (0, 0) } else { (idle + spent, lingered + counted) };
            total += spent;
            let held = take(&mut m.worker.held) && gave_way;
            held_turns = if held { held_turns + 1 } else { 0 };
            let polls_host = idle > patience && polled;
            if polls_host || lingered > slice && read && !polled || total > slice.max(LONG) {
                launch.rest(self.index, polls_host);
            } else {
                launch.resting[self.index as usize].store(held || idle > patience, Release);
            }
            waiting = if gave_way { waiting + 1 } else { 0 };
            if waiting == 0 {
                awake.set(true);
            }
            match status {
                BlockStatus::Stopped => break,
                BlockStatus::Done => {
                    let mut cluster = self.clusters.swap_remove(turn);
                    cluster.end(launch);
                    self.spare.push(cluster);
                    launch.changed();
                    if self.clusters.is_empty() || m.worker.random.is_some() {
                        self.admit_next(launch);
                    }
                }
                BlockStatus::Running | BlockStatus::Waiting | BlockStatus::Blocked => {
                    let now = launch.changes.load(Acquire);
                    stalled = if now == seen { stalled + counted } else { 0 };
                    seen = now;
                    m.worker.steady = stalled > patience;
                    if m.worker.steady {
                        let around = Around { changes: now, awaited: launch.awaited.load(Acquire) };
                        let did = Turn { read, wrote: progressed, work: counted };
                        self.clusters[turn].look(&launch.code, around, did);
                        let circles = self.clusters.iter().all(|cluster| cluster.circles(now));
                        if circles && launch.stands_still(self.index, now) {
                            launch.stall(&self.clusters);
                        }
                    }
                    // It may wait for a block that has not begun.
                    if held_turns >= self.clusters.len() {
                        held_turns = 0;
                        if self.clusters.len() >= HELD_CLUSTERS || !self.admit_next(launch) {
                            launch.stay(self.index);
                        }
                    } else if !progressed && !held {
                        self.admit_others(launch);
                    }
                    turn += 1;
                    if let Some(times) = waiting.checked_sub(self.clusters.len() + 1) {
                        awake.set(false);
                        launch.give_way(times, now);
                    }
                }
            }
        }
    }
}

/// Whether a host thread counts among those that do not wait.
struct Awake<'a> {
    launch: &'a Launch,
    is: bool,
}

impl Awake<'_> {
    fn set(&mut self, awake: bool) {
        if awake != self.is {
            let count = &self.launch.awake;
            if awake {
                count.fetch_add(1, SeqCst)
            } else {
                count.fetch_sub(1, SeqCst)
            };
            self.is = awake;
        }
    }
}

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

fn account(launch: &Launch, m: &mut Machine<'_>) {
    let executed = take(&mut m.worker.executed);
    let total = launch.executed.fetch_add(executed, Relaxed) + executed;
    if total > launch.options.max_instructions {
        launch.trap(report::budget(launch));
    }
}
