//! A warp: its lanes in fragments that execute together, and where those meet again.
//!
//! A *fragment* is a set of lanes at one place of the program. When a branch divides one, a *join* at the
//! branch's immediate post-dominator collects its lanes: those that arrive wait there until all that are
//! expected have come. Joins nest, each fragment knowing the innermost that waits for it. A lane that
//! exits is no longer expected anywhere.
//!
//! Reconvergence is for speed and for collectives, not a promise: when a part of the warp makes no
//! headway, what has arrived at a join may go on by itself ([`Warp::release_join`]), so that lanes that
//! spin for others that wait at a join do not spin for ever. Instructions that want lanes together wait
//! for them ([`Park::Converge`]).

use super::copies::Copies;
use super::meet::Exchange;
use crate::check::LocalWritten;

use std::hash::{Hash, Hasher};

use super::registers::{Base, Registers, Row32};

/// No join, no frame.
pub(crate) const NONE: u32 = u32::MAX;

/// Why a fragment does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Park {
    /// It runs.
    Ready,
    /// At a barrier of the block, until that generation of it is over.
    Barrier { id: u32, generation: u64 },
    /// At an instruction that wants these lanes together. Instructions of the same `key` that name the same
    /// lanes may meet although they are not the same instruction.
    Converge { need: u32, key: u32 },
}

/// Lanes that execute together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// The next instruction.
    pub(crate) pc: u32,
    /// The lanes.
    pub(crate) mask: u32,
    /// The innermost join that expects them.
    pub(crate) join: u32,
    /// The frame that they are in.
    pub(crate) frame: u32,
    pub(crate) park: Park,
    /// What a parked instruction finds when it is executed again.
    pub(crate) resume: Option<Resume>,
}

/// Why a parked instruction is executed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resume {
    /// The barrier is complete: how many threads were at it, and for how many a predicate held.
    Passed { holds: u32, threads: u32 },
    /// All have come, some of them at other instructions: which lanes, and the number of the meeting.
    Met { lanes: u32, meeting: u32 },
    /// The lanes that it waits for can never come: it goes on without them.
    Forced,
}

/// Where fragments meet.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Join {
    pc: u32,
    frame: u32,
    parent: u32,
    expected: u32,
    arrived: u32,
    used: bool,
}

/// An activation of a function.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Frame {
    /// The frame of the caller.
    pub(crate) parent: u32,
    /// The call, or `NONE` for the kernel.
    pub(crate) call_pc: u32,
    /// Where its rows start.
    pub(crate) base: Base,
    /// Where its memory starts, in the local memory of the thread.
    pub(crate) local: u32,
    /// Index of the function in the code.
    pub(crate) function: u32,
    /// The lanes that are in it, or in functions that it called.
    pub(crate) lanes: u32,
    /// Bytes that it has allocated behind its variables.
    pub(crate) allocated: u32,
}

/// The state of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    pub(crate) registers: Registers,
    pub(crate) fragments: Vec<Fragment>,
    /// The fragment that runs, or ran last.
    pub(crate) current: usize,
    joins: Vec<Join>,
    pub(crate) frames: Vec<Frame>,
    /// Lanes that have a thread and have not exited.
    pub(crate) live: u32,
    /// Local memory: a row for every four bytes.
    pub(crate) local: Vec<Row32>,
    /// Which of its bytes were written, where that is looked at.
    pub(crate) local_written: LocalWritten,
    /// What functions have returned, until the caller takes it.
    pub(crate) returned: Vec<Row32>,
    /// Slices of time that its fragments have used up while lanes waited at a join.
    pub(crate) slices: u32,
    /// Instructions that it has had time for: what it has executed, moved up at barriers to the slowest warp
    /// there. While the warp runs, the fuel that it has left is included.
    pub(crate) clock: u64,
    /// How often it has looked at memory that other threads change, since it last changed some itself.
    pub(crate) looks: u32,
    /// What lanes bring to collectives.
    pub(crate) exchange: Exchange,
    /// Asynchronous copies that are under way.
    pub(crate) copies: Copies,
}

impl Warp {
    /// All lanes of `live` at the beginning of a function.
    pub(crate) fn start(&mut self, pc: u32, function: u32, live: u32) {
        self.fragments.clear();
        self.joins.clear();
        self.local_written.clear();
        self.frames.clear();
        self.current = 0;
        self.slices = 0;
        self.clock = 0;
        self.looks = 0;
        self.exchange.clear();
        self.copies.clear();
        self.live = live;
        self.registers.base = Base::default();
        self.frames.push(Frame {
            parent: NONE,
            call_pc: NONE,
            base: Base::default(),
            local: 0,
            function,
            lanes: live,
            allocated: 0,
        });
        self.fragments.push(Fragment {
            pc,
            mask: live,
            join: NONE,
            frame: 0,
            park: Park::Ready,
            resume: None,
        });
    }

    /// Where its lanes are that have not exited, those that wait at joins too.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let running = self.fragments.iter().map(|fragment| (fragment.pc, fragment.mask));
        let joined = self.joins.iter().filter(|join| join.used).map(|join| (join.pc, join.arrived));
        running.chain(joined).filter(|&(_, lanes)| lanes != 0)
    }

    /// What decides how the warp goes on, besides its registers and fragments.
    pub(super) fn rest(&self, hasher: &mut impl Hasher) {
        (self.current, &self.joins, &self.frames, self.live).hash(hasher);
        (&self.local, &self.returned, &self.exchange, &self.copies).hash(hasher);
        (self.slices, self.looks).hash(hasher);
    }

    /// The frame of the fragment that runs.
    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        &self.frames[self.fragments[self.current].frame as usize]
    }

    /// Parts of the fragment that runs go different ways, to meet again at `join_pc` (`NONE`: nowhere).
    /// Lanes that go to where they meet wait there at once.
    pub(crate) fn diverge(&mut self, parts: &[(u32, u32)], join_pc: u32) {
        let old = self.fragments.swap_remove(self.current);
        let join = self.join_for(&old, join_pc);
        for &(pc, mask) in parts {
            if mask == 0 {
                continue;
            }
            if pc == join_pc && join != NONE {
                self.joins[join as usize].arrived |= mask;
            } else {
                self.fragments.push(Fragment { pc, mask, join, resume: None, ..old });
            }
        }
        self.complete(join);
        self.current = self.fragments.len().saturating_sub(1);
    }

    fn join_for(&mut self, fragment: &Fragment, pc: u32) -> u32 {
        if pc == NONE {
            return fragment.join;
        }
        if let Some(join) = self.joins.get(fragment.join as usize)
            && (join.pc, join.frame) == (pc, fragment.frame)
        {
            return fragment.join;
        }
        let join = Join {
            pc,
            frame: fragment.frame,
            parent: fragment.join,
            expected: fragment.mask,
            arrived: 0,
            used: true,
        };
        match self.joins.iter().position(|join| !join.used) {
            Some(free) => {
                self.joins[free] = join;
                free as u32
            }
            None => {
                self.joins.push(join);
                self.joins.len() as u32 - 1
            }
        }
    }

    /// The fragment that runs is at `pc`, where lanes may be waited for. Whether it may go on as it is.
    #[inline(always)]
    pub(crate) fn pass_join(&mut self, pc: u32) -> bool {
        let fragment = &self.fragments[self.current];
        let waits = matches!(self.joins.get(fragment.join as usize),
            Some(join) if join.pc == pc && join.frame == fragment.frame);
        if waits {
            self.arrive_at_join();
        }
        !waits
    }

    fn arrive_at_join(&mut self) {
        let fragment = self.fragments.swap_remove(self.current);
        self.joins[fragment.join as usize].arrived |= fragment.mask;
        self.complete(fragment.join);
        self.current = self.fragments.len().saturating_sub(1);
    }

    /// Lets those go on that a join has waited for, if all have come.
    fn complete(&mut self, mut index: u32) {
        while let Some(&join) = self.joins.get(index as usize) {
            if !join.used || join.arrived != join.expected {
                return;
            }
            self.joins[index as usize].used = false;
            if join.arrived == 0 {
                index = join.parent;
                continue;
            }
            // The parent may wait at the same place: `pass_join` sees to it.
            self.fragments.push(Fragment {
                pc: join.pc,
                mask: join.arrived,
                join: join.parent,
                frame: join.frame,
                park: Park::Ready,
                resume: None,
            });
            return;
        }
    }

    /// Whether lanes wait at a join.
    pub(crate) fn waits_at_join(&self) -> bool {
        self.joins.iter().any(|join| join.used && join.arrived != 0)
    }

    /// Lets the lanes that wait at a join go on without those that are still expected. Whether there were
    /// any.
    pub(crate) fn release_join(&mut self) -> bool {
        let waiting = |join: &Join| join.used && join.arrived != 0;
        let Some(index) = self.joins.iter().rposition(waiting) else { return false };
        let join = &mut self.joins[index];
        let mask = std::mem::take(&mut join.arrived);
        join.expected &= !mask;
        let (pc, parent, frame) = (join.pc, join.parent, join.frame);
        self.fragments.push(Fragment { pc, mask, join: parent, frame, park: Park::Ready, resume: None });
        true
    }

    /// The lanes of `mask`, of the fragment that runs, leave the kernel.
    pub(crate) fn exit(&mut self, mask: u32, next_pc: u32) {
        self.live &= !mask;
        for frame in &mut self.frames {
            frame.lanes &= !mask;
        }
        self.trim_frames();
        let fragment = &mut self.fragments[self.current];
        fragment.mask &= !mask;
        fragment.pc = next_pc;
        if fragment.mask == 0 {
            self.fragments.swap_remove(self.current);
        }
        for index in 0..self.joins.len() {
            self.joins[index].expected &= !mask;
            self.complete(index as u32);
        }
        self.current = self.current.min(self.fragments.len().saturating_sub(1));
    }

    /// Lanes `mask` of the fragment that runs enter a function; the others go on after the call, where those
    /// that return to it join them.
    pub(crate) fn call(&mut self, mask: u32, entry_pc: u32, call_pc: u32, frame: Frame, join_pc: u32) {
        let active = self.fragments[self.current].mask;
        let frame = self.push_frame(Frame { call_pc, lanes: mask, ..frame });
        if mask == active {
            let fragment = &mut self.fragments[self.current];
            fragment.pc = entry_pc;
            fragment.frame = frame;
            return;
        }
        self.diverge(&[(join_pc, active & !mask), (entry_pc, mask)], join_pc);
        let index = self.fragments.iter().position(|fragment| fragment.mask == mask);
        if let Some(index) = index {
            self.fragments[index].frame = frame;
            self.current = index;
        }
    }

    /// Enters several functions at once, each with its lanes; they meet after the call.
    pub(crate) fn call_each(&mut self, calls: &[(u32, u32, Frame)], call_pc: u32, join_pc: u32) {
        let parts: Vec<_> = calls.iter().map(|&(entry, mask, _)| (entry, mask)).collect();
        let active = self.fragments[self.current].mask;
        let called = calls.iter().fold(0, |all, call| all | call.1);
        let mut parts = parts;
        parts.push((join_pc, active & !called));
        self.diverge(&parts, join_pc);
        for &(_, mask, frame) in calls {
            let frame = self.push_frame(Frame { call_pc, lanes: mask, ..frame });
            if let Some(fragment) = self.fragments.iter_mut().find(|fragment| fragment.mask == mask) {
                fragment.frame = frame;
            }
        }
    }

    fn push_frame(&mut self, frame: Frame) -> u32 {
        match self.frames.iter().position(|frame| frame.lanes == 0) {
            Some(free) => {
                self.frames[free] = frame;
                free as u32
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        }
    }

    fn trim_frames(&mut self) {
        while self.frames.last().is_some_and(|frame| frame.lanes == 0) {
            self.frames.pop();
        }
    }

    /// The fragment that runs returns from its function.
    pub(crate) fn ret(&mut self) {
        let fragment = &mut self.fragments[self.current];
        let index = fragment.frame as usize;
        let frame = self.frames[index];
        fragment.pc = frame.call_pc + 1;
        fragment.frame = frame.parent;
        self.frames[index].lanes &= !fragment.mask;
        self.trim_frames();
    }

    /// Leaves the lanes of `mask` parked at `pc`; the rest of the fragment that runs goes on after it.
    pub(crate) fn park(&mut self, mask: u32, pc: u32, park: Park) {
        let fragment = &mut self.fragments[self.current];
        let rest = Fragment { mask: fragment.mask & !mask, pc: pc + 1, resume: None, ..*fragment };
        *fragment = Fragment { mask, pc, park, resume: None, ..*fragment };
        if rest.mask != 0 {
            self.fragments.push(rest);
        }
    }

    /// Unites parked fragments that are at the same instruction of the same frame as the one that runs.
    /// What the union has for lanes.
    pub(crate) fn gather(&mut self, pc: u32) -> u32 {
        let here = self.fragments[self.current];
        let mut mask = here.mask;
        let mut join = here.join;
        let mut index = 0;
        while index < self.fragments.len() {
            let other = self.fragments[index];
            let same = index != self.current
                && other.pc == pc
                && other.frame == here.frame
                && matches!(other.park, Park::Converge { .. });
            if !same {
                index += 1;
                continue;
            }
            join = self.common_join((mask, join), (other.mask, other.join));
            mask |= other.mask;
            self.fragments.swap_remove(index);
            if self.current == self.fragments.len() {
                self.current = index;
            }
        }
        let fragment = &mut self.fragments[self.current];
        fragment.mask = mask;
        fragment.join = join;
        mask
    }

    /// The innermost join that expects both; joins inside it no longer do.
    fn common_join(&mut self, a: (u32, u32), b: (u32, u32)) -> u32 {
        let ancestors = |mut join: u32| {
            let mut list = vec![join];
            while let Some(found) = self.joins.get(join as usize) {
                join = found.parent;
                list.push(join);
            }
            list
        };
        let (of_a, of_b) = (ancestors(a.1), ancestors(b.1));
        let common = of_a.iter().copied().find(|join| of_b.contains(join)).unwrap_or(NONE);
        for (mask, list) in [(a.0, of_a), (b.0, of_b)] {
            for join in list.into_iter().take_while(|&join| join != common) {
                self.joins[join as usize].expected &= !mask;
                self.complete(join);
            }
        }
        common
    }
}
