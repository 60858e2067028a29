//! Vector clocks written for clarity: one number per thread and agent for each thread and agent, and every
//! access is kept for ever.

use super::*;
use std::collections::HashMap;

type Clock = Vec<u64>;

fn join(into: &mut Clock, other: &[u64]) {
    into.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

#[derive(Clone)]
struct Access {
    thread: usize,
    time: u64,
    block: usize,
    space: RaceSpace,
    address: u64,
    bytes: u64,
    write: bool,
    strong: Option<Scope>,
}

/// A thread's strong read: it observes the strong writes before it.
struct Observation {
    of: Access,
    /// Accesses before it.
    after: usize,
}

/// The space, the block of shared memory, the address and the size.
type Place = (RaceSpace, usize, u64, u32);

#[derive(Clone)]
struct Thread {
    seen_device: Clock,
    seen_block: Clock,
    /// What was seen at a location, for acquire operations.
    seen_at: HashMap<Place, (Clock, Clock)>,
    fences: [Option<Clock>; 2],
    /// The agent's time at each closed group.
    groups: Vec<u64>,
}

#[derive(Clone)]
struct Location {
    device: Clock,
    /// Released by threads of a block, to the device or the block.
    blocks: HashMap<usize, Clock>,
    /// The only thread whose strong writes have released it.
    by: Option<usize>,
}

pub(super) struct Oracle {
    mode: Mode,
    /// Whether atomic operations are reductions.
    pub(super) reduces: bool,
    threads_per_block: usize,
    clocks: Vec<Clock>,
    threads: Vec<Thread>,
    accesses: Vec<Access>,
    observations: Vec<Observation>,
    locations: HashMap<Place, Location>,
    carried: HashMap<(usize, u8), Clock>,
    arrived: HashMap<(usize, usize), Clock>,
    phases: HashMap<(usize, u64), (Clock, Clock)>,
}

/// Whether two accesses are morally strong.
fn is_strong(a: &Access, b: &Access) -> bool {
    let is_same = a.space == b.space
        && (a.space == RaceSpace::Global || a.block == b.block)
        && (a.address, a.bytes) == (b.address, b.bytes);
    match (a.strong, b.strong) {
        (Some(x), Some(y)) => is_same && (a.block == b.block || x.min(y) == Scope::Device),
        _ => false,
    }
}

impl Oracle {
    pub(super) fn new(mode: Mode, blocks: usize, threads_per_block: usize) -> Oracle {
        let threads = blocks * threads_per_block;
        let zero = vec![0; 2 * threads];
        let mut clocks = vec![zero.clone(); 2 * threads];
        for (thread, clock) in clocks.iter_mut().enumerate() {
            clock[thread] = 1;
        }
        let thread = Thread {
            seen_device: zero.clone(),
            seen_block: zero,
            seen_at: HashMap::new(),
            fences: [None, None],
            groups: Vec::new(),
        };
        Oracle {
            mode,
            reduces: false,
            threads_per_block,
            clocks,
            threads: vec![thread; threads],
            accesses: Vec::new(),
            observations: Vec::new(),
            locations: HashMap::new(),
            carried: HashMap::new(),
            arrived: HashMap::new(),
            phases: HashMap::new(),
        }
    }

    fn zero(&self) -> Clock {
        vec![0; self.clocks.len()]
    }

    fn members(&self, who: Who) -> Vec<usize> {
        lanes(who.mask)
            .map(|lane| usize::from(who.warp) * 32 + lane as usize)
            .filter(|&thread| thread < self.threads_per_block)
            .map(|thread| who.block * self.threads_per_block + thread)
            .collect()
    }

    fn agent(&self, thread: usize) -> usize {
        self.threads.len() + thread
    }

    fn step(&mut self, thread: usize) {
        self.clocks[thread][thread] += 1;
    }

    /// Whether the access races with one before it.
    pub(super) fn access(
        &mut self,
        space: RaceSpace,
        who: Who,
        kind: AccessKind,
        strength: Strength,
        (bytes, element): (u32, u32),
        address: impl Fn(u64) -> u64,
    ) -> bool {
        let mut race = false;
        let observes = kind.is_read() && !(self.reduces && kind == AccessKind::Atomic);
        let observes = observes && strength.scope().is_some();
        for thread in self.members(who) {
            let lane = thread % self.threads_per_block % 32;
            let at = address(lane as u64);
            let mut actor = thread;
            if kind.agent().is_some() {
                actor = self.agent(thread);
                let issue = self.clocks[thread].clone();
                join(&mut self.clocks[actor], &issue);
                // Copies of one agent are not ordered among themselves: what it knows of itself is what
                // its thread waited for.
            }
            let known = if kind.agent().is_some() { thread } else { actor };
            for part in 0..u64::from(bytes / element) {
                let access = Access {
                    thread: actor,
                    time: self.clocks[actor][actor],
                    block: who.block,
                    space,
                    address: at + part * u64::from(element),
                    bytes: element.into(),
                    write: kind.is_write(),
                    strong: strength.scope(),
                };
                race |= self.accesses.iter().enumerate().any(|old| self.races(old, &access, known));
                if observes {
                    self.observations.push(Observation { of: access.clone(), after: self.accesses.len() });
                }
                self.accesses.push(access);
            }
        }
        for (thread, place) in self.places(space, who, (bytes, element), &address) {
            if kind.is_write() && strength.scope().is_some() {
                self.release(thread, place, kind, strength);
            }
        }
        if let Strength::Strong { release: true, .. } = strength
            && kind.is_write()
        {
            self.members(who).into_iter().for_each(|thread| self.step(thread));
        }
        for (thread, place) in self.places(space, who, (bytes, element), &address) {
            if observes {
                self.observe(thread, place, strength);
            }
        }
        race
    }

    /// The locations that each thread accesses.
    fn places(
        &self,
        space: RaceSpace,
        who: Who,
        (bytes, element): (u32, u32),
        address: &impl Fn(u64) -> u64,
    ) -> Vec<(usize, Place)> {
        let block = if space == RaceSpace::Shared { who.block } else { 0 };
        let at = |thread: usize| address((thread % self.threads_per_block % 32) as u64);
        let parts = |thread| {
            (0..bytes / element)
                .map(move |part| (thread, (space, block, at(thread) + u64::from(part * element), element)))
        };
        self.members(who).into_iter().flat_map(parts).collect()
    }

    fn races(&self, (at, old): (usize, &Access), new: &Access, known: usize) -> bool {
        let meet = old.space == new.space
            && (old.space == RaceSpace::Global || old.block == new.block)
            && old.address < new.address + new.bytes
            && new.address < old.address + old.bytes;
        let is_known = |of: &Access| of.thread == known || self.clocks[known][of.thread] >= of.time;
        let observed = || {
            old.write
                && self.observations.iter().any(|observation| {
                    at < observation.after && is_strong(old, &observation.of) && is_known(&observation.of)
                })
        };
        meet && (old.write || new.write) && !is_strong(old, new) && !is_known(old) && !observed()
    }

    fn release(&mut self, thread: usize, place: Place, kind: AccessKind, strength: Strength) {
        let Strength::Strong { scope, release, .. } = strength else { return };
        let (zero, in_block) = (self.zero(), thread / self.threads_per_block);
        let warp = (thread % self.threads_per_block / 32) as u8;
        let mut device = self.carried.get(&(in_block, warp)).cloned().unwrap_or_else(|| zero.clone());
        let mut block = zero.clone();
        for (at, clock) in self.threads[thread].fences.iter().enumerate() {
            let Some(clock) = clock else { continue };
            join(if at == Scope::Device as usize { &mut device } else { &mut block }, clock);
        }
        if release {
            join(if scope == Scope::Device { &mut device } else { &mut block }, &self.clocks[thread]);
        }
        join(&mut block, &device);
        if scope == Scope::Block {
            device = zero.clone();
        }
        let fresh = Location { device: zero.clone(), blocks: HashMap::new(), by: Some(thread) };
        let of_others = self.locations.get(&place).is_some_and(|location| location.by != Some(thread));
        if kind == AccessKind::Write && of_others {
            self.locations.remove(&place);
        }
        if block != zero {
            let location = self.locations.entry(place).or_insert(fresh);
            if location.by != Some(thread) {
                location.by = None;
            }
            join(&mut location.device, &device);
            join(location.blocks.entry(in_block).or_insert(zero), &block);
        }
    }

    fn observe(&mut self, thread: usize, place: Place, strength: Strength) {
        let Strength::Strong { scope, acquire, .. } = strength else { return };
        let zero = self.zero();
        if let Some(location) = self.locations.get(&place).cloned() {
            let own =
                location.blocks.get(&(thread / self.threads_per_block)).cloned().unwrap_or(zero.clone());
            let mut device = own.clone();
            if scope == Scope::Device {
                join(&mut device, &location.device);
            }
            let state = &mut self.threads[thread];
            join(&mut state.seen_device, &device);
            join(&mut state.seen_block, &own);
            let at = state.seen_at.entry(place).or_insert((zero.clone(), zero));
            join(&mut at.0, &device);
            join(&mut at.1, &own);
        }
        if acquire && let Some((device, block)) = self.threads[thread].seen_at.get(&place) {
            join(&mut self.clocks[thread], if scope == Scope::Device { device } else { block });
        }
    }

    pub(super) fn fence(&mut self, who: Who, scope: Scope) {
        let zero = self.zero();
        for thread in self.members(who) {
            let state = &mut self.threads[thread];
            let seen = match scope {
                Scope::Device => {
                    state.seen_block = zero.clone();
                    std::mem::replace(&mut state.seen_device, zero.clone())
                }
                Scope::Block => state.seen_block.clone(),
            };
            join(&mut self.clocks[thread], &seen);
            self.threads[thread].fences[scope as usize] = Some(self.clocks[thread].clone());
            self.step(thread);
        }
    }

    pub(super) fn barrier(&mut self, block: usize, id: usize, waiting: &[(u8, u32)]) {
        let zero = self.zero();
        let mut all = self.arrived.remove(&(block, id)).unwrap_or_else(|| zero.clone());
        let mut carried = zero.clone();
        for &(warp, mask) in waiting {
            if self.mode == Mode::Normal
                && let Some(before) = self.carried.get(&(block, warp))
            {
                join(&mut carried, before);
            }
            for thread in self.members(Who { block, warp, mask }) {
                if self.mode == Mode::Normal {
                    let state = &mut self.threads[thread];
                    state.seen_block = zero.clone();
                    let seen = std::mem::replace(&mut state.seen_device, zero.clone());
                    if let Some(fence) = &state.fences[Scope::Device as usize] {
                        join(&mut carried, fence);
                    }
                    join(&mut self.clocks[thread], &seen);
                }
                join(&mut all, &self.clocks[thread]);
            }
        }
        for &(warp, mask) in waiting {
            if self.mode == Mode::Normal {
                self.carried.insert((block, warp), carried.clone());
            }
            for thread in self.members(Who { block, warp, mask }) {
                join(&mut self.clocks[thread], &all);
                self.step(thread);
            }
        }
    }

    pub(super) fn arrive(&mut self, who: Who, id: usize) {
        let mut all = self.arrived.remove(&(who.block, id)).unwrap_or_else(|| self.zero());
        for thread in self.members(who) {
            join(&mut all, &self.clocks[thread]);
            self.step(thread);
        }
        self.arrived.insert((who.block, id), all);
    }

    pub(super) fn warp_sync(&mut self, who: Who) {
        let members = self.members(who);
        let mut all = self.zero();
        members.iter().for_each(|&thread| join(&mut all, &self.clocks[thread]));
        for thread in members {
            join(&mut self.clocks[thread], &all);
            self.step(thread);
        }
    }

    pub(super) fn commit(&mut self, who: Who) {
        for thread in self.members(who) {
            let agent = self.agent(thread);
            self.threads[thread].groups.push(self.clocks[agent][agent]);
            self.step(agent);
        }
    }

    pub(super) fn wait(&mut self, who: Who, pending: usize) {
        for thread in self.members(who) {
            let agent = self.agent(thread);
            let groups = &self.threads[thread].groups;
            if let Some(&time) = groups.len().checked_sub(pending + 1).and_then(|at| groups.get(at)) {
                let known = &mut self.clocks[thread][agent];
                *known = (*known).max(time);
            }
        }
    }

    pub(super) fn wait_all(&mut self, who: Who) {
        for thread in self.members(who) {
            let agent = self.agent(thread);
            self.clocks[thread][agent] = self.clocks[agent][agent];
            self.step(agent);
        }
    }

    pub(super) fn phase_arrive(&mut self, who: Who, at: u64, agents: bool) {
        let zero = self.zero();
        for thread in self.members(who) {
            let mut released = self.clocks[thread].clone();
            if agents {
                let agent = self.agent(thread);
                released = zero.clone();
                released[agent] = self.clocks[agent][agent];
                self.step(agent);
            } else {
                self.step(thread);
            }
            let phases = self.phases.entry((who.block, at)).or_insert((zero.clone(), zero.clone()));
            join(&mut phases.0, &released);
        }
    }

    pub(super) fn phase_complete(&mut self, block: usize, at: u64) {
        let zero = self.zero();
        let phases = self.phases.entry((block, at)).or_insert((zero.clone(), zero.clone()));
        let current = std::mem::replace(&mut phases.0, zero);
        join(&mut phases.1, &current);
    }

    pub(super) fn phase_wait(&mut self, who: Who, at: u64) {
        let Some((_, completed)) = self.phases.get(&(who.block, at)).cloned() else { return };
        for thread in self.members(who) {
            join(&mut self.clocks[thread], &completed);
        }
    }
}
