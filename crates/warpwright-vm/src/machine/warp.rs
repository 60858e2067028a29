//! A warp: its lanes execute in divergent paths, which meet again at reconvergence points.
//!
//! A *path* is a set of lanes at one instruction. When a branch divides a path, a *reconvergence point* at the branch's
//! immediate post-dominator collects its lanes: lanes that arrive wait there until all expected lanes have arrived.
//! Reconvergence points nest, and each path knows the innermost one that expects it. A lane that exits is no longer
//! expected anywhere.
//!
//! Reconvergence is for speed and for collectives; it is not guaranteed. When a part of the warp makes no progress, the
//! lanes that wait at a reconvergence point may continue by themselves ([`Warp::release_reconvergence`]). So lanes that
//! spin for others that wait there do not spin for ever. Instructions that need lanes together wait for them
//! ([`Park::Converge`]).

use super::copies::Copies;
use super::meet::Exchange;
use crate::check::{LocalWritten, RawPlace, Undefined};

use std::hash::{Hash, Hasher};

use super::registers::{Base, Registers, Row32};

/// No reconvergence point, no frame.
pub(crate) const NONE: u32 = u32::MAX;

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Park {
    /// It runs.
    Ready,
    /// At a barrier, until that generation of it is over; `asks`: the instruction is executed again then, since it has more
    /// to do.
    Barrier { id: u32, generation: u64, asks: bool },
    /// At an instruction that needs these lanes together. Different instructions with the same `key` and the same
    /// lanes may meet.
    Converge { need: u32, key: u32 },
}

/// Lanes that have tested an mbarrier for a phase that was not over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// The test.
    pub(crate) pc: u32,
    /// The barrier, as the first of the lanes has addressed it, and its place in the shared memory of the cluster.
    pub(crate) barrier: RawPlace,
    pub(crate) offset: u32,
    /// The parity of the phase.
    pub(crate) parity: bool,
    pub(crate) lanes: u32,
}

/// A divergent path: lanes that execute together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The next instruction.
    pub(crate) pc: u32,
    /// The lanes.
    pub(crate) mask: u32,
    /// The innermost reconvergence point that expects them.
    pub(crate) reconverges_at: u32,
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

/// Where divergent paths meet.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct ReconvergencePoint {
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
    pub(crate) paths: Vec<Path>,
    /// The path that runs, or ran last.
    pub(crate) current: usize,
    points: Vec<ReconvergencePoint>,
    pub(crate) frames: Vec<Frame>,
    /// Lanes that have a thread and have not exited.
    pub(crate) live: u32,
    /// Lanes went on without those for which they waited, which has been reported.
    pub(crate) forced: bool,
    /// Local memory: a row for every four bytes.
    pub(crate) local: Vec<Row32>,
    /// Which of its bytes were written, where that is looked at.
    pub(crate) local_written: LocalWritten,
    /// What is undefined in registers, where that is looked at.
    pub(crate) undefined: Undefined,
    /// A relaxed read has seen something since the last fence of tensor memory, where that is looked at.
    pub(crate) observed: bool,
    /// What functions have returned, until the caller takes it.
    pub(crate) returned: Vec<Row32>,
    /// Time slices that its paths have used up while lanes waited at a reconvergence point.
    pub(crate) slices: u32,
    /// The number of instructions that it has had time for: those executed, raised at barriers to the slowest warp
    /// there. While the warp runs, its remaining fuel is included.
    pub(crate) clock: u64,
    /// Groups of products of its warpgroup that it has committed.
    pub(crate) products: u64,
    /// How often it has polled memory that other threads change, since it last changed some itself.
    pub(crate) polls: u32,
    /// The memory that it has polled last in vain, since the watch over its block took the earlier state.
    pub(crate) polled: Option<RawPlace>,
    /// What its lanes have tested last in vain, likewise.
    pub(crate) awaited: Vec<Awaited>,
    /// What lanes bring to collectives.
    pub(crate) exchange: Exchange,
    /// Asynchronous copies that are under way.
    pub(crate) copies: Copies,
    /// Lanes that have arrived at the barrier of the cluster, and have not waited there since.
    pub(crate) announced: u32,
}

impl Warp {
    /// All lanes of `live` at the beginning of a function.
    pub(crate) fn start(&mut self, pc: u32, function: u32, live: u32) {
        self.paths.clear();
        self.points.clear();
        self.local_written.clear();
        self.undefined.clear();
        self.observed = false;
        self.frames.clear();
        self.current = 0;
        self.announced = 0;
        self.slices = 0;
        self.clock = 0;
        self.products = 0;
        self.polls = 0;
        self.polled = None;
        self.awaited.clear();
        self.exchange.clear();
        self.copies.clear();
        self.live = live;
        self.forced = false;
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
        self.paths.push(Path {
            pc,
            mask: live,
            reconverges_at: NONE,
            frame: 0,
            park: Park::Ready,
            resume: None,
        });
    }

    /// Where the lanes are that have not exited, including those that wait at reconvergence points.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let running = self.paths.iter().map(|path| (path.pc, path.mask));
        let waiting = self.points.iter().filter(|point| point.used).map(|point| (point.pc, point.arrived));
        running.chain(waiting).filter(|&(_, lanes)| lanes != 0)
    }

    /// Where the lanes of a frame are, or those of the functions that it has called were when they were called.
    pub(crate) fn places_in(&self, frame: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let running =
            self.paths.iter().filter(move |path| path.frame == frame).map(|path| (path.pc, path.mask));
        let waiting = self.points.iter().filter(move |point| point.used && point.frame == frame);
        let called = self.frames.iter().filter(move |callee| callee.parent == frame && callee.lanes != 0);
        running
            .chain(waiting.map(|point| (point.pc, point.arrived)))
            .chain(called.map(|callee| (callee.call_pc, callee.lanes)))
    }

    /// What decides how the warp goes on, besides its registers and paths.
    pub(super) fn rest(&self, hasher: &mut impl Hasher) {
        (self.current, &self.frames, self.live).hash(hasher);
        self.points.iter().enumerate().filter(|(_, point)| point.used).for_each(|at| at.hash(hasher));
        (&self.local, &self.returned, &self.exchange, &self.copies).hash(hasher);
        (self.slices, self.polls).hash(hasher);
    }

    /// The frame of the running path.
    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        &self.frames[self.paths[self.current].frame as usize]
    }

    /// Divides the running path; its parts meet again at `reconvergence_pc` (`NONE`: nowhere). Lanes that branch
    /// directly to that point wait there at once.
    pub(crate) fn diverge(&mut self, parts: &[(u32, u32)], reconvergence_pc: u32) {
        let old = self.paths.swap_remove(self.current);
        let point = self.point_for(&old, reconvergence_pc);
        for &(pc, mask) in parts {
            if mask == 0 {
                continue;
            }
            if pc == reconvergence_pc && point != NONE {
                self.points[point as usize].arrived |= mask;
            } else {
                self.paths.push(Path { pc, mask, reconverges_at: point, resume: None, ..old });
            }
        }
        self.complete(point);
        self.current = self.paths.len().saturating_sub(1);
    }

    fn point_for(&mut self, path: &Path, pc: u32) -> u32 {
        if pc == NONE {
            return path.reconverges_at;
        }
        if let Some(point) = self.points.get(path.reconverges_at as usize)
            && (point.pc, point.frame) == (pc, path.frame)
        {
            return path.reconverges_at;
        }
        let point = ReconvergencePoint {
            pc,
            frame: path.frame,
            parent: path.reconverges_at,
            expected: path.mask,
            arrived: 0,
            used: true,
        };
        match self.points.iter().position(|point| !point.used) {
            Some(free) => {
                self.points[free] = point;
                free as u32
            }
            None => {
                self.points.push(point);
                self.points.len() as u32 - 1
            }
        }
    }

    /// The instruction at which the running path waits for others, if there is one.
    pub(crate) fn reconverges_at(&self) -> u32 {
        let path = &self.paths[self.current];
        match self.points.get(path.reconverges_at as usize) {
            Some(point) if point.frame == path.frame => point.pc,
            _ => NONE,
        }
    }

    /// The running path is at `pc`, which may be a reconvergence point. Returns whether it may continue as it is.
    #[inline(always)]
    pub(crate) fn pass_reconvergence(&mut self, pc: u32) -> bool {
        let path = &self.paths[self.current];
        let waits = matches!(self.points.get(path.reconverges_at as usize),
            Some(point) if point.pc == pc && point.frame == path.frame);
        if waits {
            self.arrive();
        }
        !waits
    }

    fn arrive(&mut self) {
        let path = self.paths.swap_remove(self.current);
        self.points[path.reconverges_at as usize].arrived |= path.mask;
        self.complete(path.reconverges_at);
        self.current = self.paths.len().saturating_sub(1);
    }

    /// Lets the lanes that wait at a reconvergence point continue, if all have arrived.
    fn complete(&mut self, mut index: u32) {
        while let Some(&point) = self.points.get(index as usize) {
            if !point.used || point.arrived != point.expected {
                return;
            }
            self.points[index as usize].used = false;
            if point.arrived == 0 {
                index = point.parent;
                continue;
            }
            // The parent may wait at the same place: `pass_reconvergence` sees to it.
            self.paths.push(Path {
                pc: point.pc,
                mask: point.arrived,
                reconverges_at: point.parent,
                frame: point.frame,
                park: Park::Ready,
                resume: None,
            });
            return;
        }
    }

    /// Whether lanes wait at a reconvergence point.
    pub(crate) fn waits_at_reconvergence(&self) -> bool {
        self.points.iter().any(|point| point.used && point.arrived != 0)
    }

    /// Lets the lanes that wait at a reconvergence point, the innermost where some of `lanes` wait, continue without those
    /// that are still expected. Returns whether there were any.
    pub(crate) fn release_reconvergence(&mut self, lanes: u32) -> bool {
        let waiting = |point: &ReconvergencePoint| point.used && point.arrived & lanes != 0;
        let Some(index) = self.points.iter().rposition(waiting) else { return false };
        let point = &mut self.points[index];
        let mask = std::mem::take(&mut point.arrived);
        point.expected &= !mask;
        let (pc, parent, frame) = (point.pc, point.parent, point.frame);
        self.paths.push(Path { pc, mask, reconverges_at: parent, frame, park: Park::Ready, resume: None });
        true
    }

    /// The lanes of `mask`, of the running path, leave the kernel.
    pub(crate) fn exit(&mut self, mask: u32, next_pc: u32) {
        self.live &= !mask;
        for frame in &mut self.frames {
            frame.lanes &= !mask;
        }
        self.trim_frames();
        let path = &mut self.paths[self.current];
        path.mask &= !mask;
        path.pc = next_pc;
        if path.mask == 0 {
            self.paths.swap_remove(self.current);
        }
        for index in 0..self.points.len() {
            self.points[index].expected &= !mask;
            self.complete(index as u32);
        }
        self.current = self.current.min(self.paths.len().saturating_sub(1));
    }

    /// Lanes `mask` of the running path enter a function; the others go on after the call, where those
    /// that return to it join them.
    pub(crate) fn call(
        &mut self,
        mask: u32,
        entry_pc: u32,
        call_pc: u32,
        frame: Frame,
        reconvergence_pc: u32,
    ) {
        let active = self.paths[self.current].mask;
        let frame = self.push_frame(Frame { call_pc, lanes: mask, ..frame });
        if mask == active {
            let path = &mut self.paths[self.current];
            path.pc = entry_pc;
            path.frame = frame;
            return;
        }
        self.diverge(&[(reconvergence_pc, active & !mask), (entry_pc, mask)], reconvergence_pc);
        let index = self.paths.iter().position(|path| path.mask == mask);
        if let Some(index) = index {
            self.paths[index].frame = frame;
            self.current = index;
        }
    }

    /// Enters several functions at once, each with its lanes; they meet after the call.
    pub(crate) fn call_each(&mut self, calls: &[(u32, u32, Frame)], call_pc: u32, reconvergence_pc: u32) {
        let parts: Vec<_> = calls.iter().map(|&(entry, mask, _)| (entry, mask)).collect();
        let active = self.paths[self.current].mask;
        let called = calls.iter().fold(0, |all, call| all | call.1);
        let mut parts = parts;
        parts.push((reconvergence_pc, active & !called));
        self.diverge(&parts, reconvergence_pc);
        for &(_, mask, frame) in calls {
            let frame = self.push_frame(Frame { call_pc, lanes: mask, ..frame });
            if let Some(path) = self.paths.iter_mut().find(|path| path.mask == mask) {
                path.frame = frame;
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

    /// The running path returns from its function.
    pub(crate) fn ret(&mut self) {
        let path = &mut self.paths[self.current];
        let index = path.frame as usize;
        let frame = self.frames[index];
        path.pc = frame.call_pc + 1;
        path.frame = frame.parent;
        self.frames[index].lanes &= !path.mask;
        self.trim_frames();
    }

    /// Leaves the lanes of `mask` parked at `pc`; the rest of the running path goes on after it.
    pub(crate) fn park(&mut self, mask: u32, pc: u32, park: Park) {
        let path = &mut self.paths[self.current];
        let rest = path.mask & !mask;
        (path.mask, path.pc, path.park, path.resume) = (mask, pc, park, None);
        if rest != 0 {
            let rest = Path { mask: rest, pc: pc + 1, park: Park::Ready, ..*path };
            self.paths.push(rest);
        }
    }

    /// Unites parked paths that are at the same instruction of the same frame as the running path. Returns the lanes of
    /// the union.
    pub(crate) fn gather(&mut self, pc: u32) -> u32 {
        let here = self.paths[self.current];
        let mut mask = here.mask;
        let mut point = here.reconverges_at;
        let mut index = 0;
        while index < self.paths.len() {
            let other = self.paths[index];
            let same = index != self.current
                && other.pc == pc
                && other.frame == here.frame
                && matches!(other.park, Park::Converge { .. });
            if !same {
                index += 1;
                continue;
            }
            point = self.common_point((mask, point), (other.mask, other.reconverges_at));
            mask |= other.mask;
            self.paths.swap_remove(index);
            if self.current == self.paths.len() {
                self.current = index;
            }
        }
        let path = &mut self.paths[self.current];
        path.mask = mask;
        path.reconverges_at = point;
        mask
    }

    /// The innermost reconvergence point that expects both; those inside it no longer do.
    fn common_point(&mut self, a: (u32, u32), b: (u32, u32)) -> u32 {
        let ancestors = |mut point: u32| {
            let mut list = vec![point];
            while let Some(found) = self.points.get(point as usize) {
                point = found.parent;
                list.push(point);
            }
            list
        };
        let (of_a, of_b) = (ancestors(a.1), ancestors(b.1));
        let common = of_a.iter().copied().find(|point| of_b.contains(point)).unwrap_or(NONE);
        for (mask, list) in [(a.0, of_a), (b.0, of_b)] {
            for point in list.into_iter().take_while(|&point| point != common) {
                self.points[point as usize].expected &= !mask;
                self.complete(point);
            }
        }
        common
    }
}
