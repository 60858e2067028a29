//! Kernel bodies as inlined device functions, and the warp groups that run them.
//!
//! A body is a function of its arguments, its position in the grid and its block; it does not depend on its caller.
//! When a kernel calls it, its block is a [`Team`] of the caller's warps, its barriers are the team's, and its shared
//! memory is one region that all calls of the kernel use in turn. There are two ways to call a body: with arguments
//! that the caller has, by [`Team::run`] around [`Kernel::body`](super::Kernel::body), or with arguments in memory,
//! by a [`Call`](super::Call).

use super::K;
use super::Ptr;
use super::call::{Ask, Record};
use super::form::FormId;
use super::reg::Reg;
use super::state::{Base, BlockId, Def, Loc, Pointer, State};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Imm, Reg as Id, Space, Special, SpecialRegister, Src, Type};
use warpwright_ptx::op::Access;
use warpwright_ptx::op::sync::BarSync;

/// A group of warps of the block that runs as a block of its own, beside other such groups.
#[derive(Clone, Copy, Debug)]
pub struct Team<'k> {
    pub(super) k: K<'k>,
    /// Its number among the teams of the block.
    number: Reg<'k, u32>,
    /// Its first warp.
    first: Reg<'k, u32>,
    /// How many warps it has.
    pub(super) warps: u32,
    /// Warps of the block.
    all: u32,
    /// The thread's number in it.
    tid: Reg<'k, u32>,
    /// The warp's number in the team, computed from its number in the block, which is known to be uniform over its
    /// lanes.
    warp: Reg<'k, u32>,
    barrier: Barrier,
}

/// Most teams of a block: each has a barrier, and the first of the sixteen is the block's.
const MAX_TEAMS: u32 = 15;

impl<'k> K<'k> {
    /// Divides the block into teams of `warps` warps, and returns the team of this thread. `warps` must divide the
    /// number of warps of the block.
    #[track_caller]
    pub fn teams(self, warps: u32) -> Team<'k> {
        let loc = Location::caller();
        let all = self.whole_warps(loc);
        let fits = warps > 0 && all.is_multiple_of(warps) && all / warps.max(1) <= MAX_TEAMS;
        if !fits {
            let message = format!(
                "teams of {warps} warps in a block of {all}: up to {MAX_TEAMS}, and no warps left over"
            );
            self.state().mistake(Code::ModifierCombination, loc, message);
        }
        let warps = if fits { warps } else { all };
        let sealed = |reg: Reg<'k, u32>| Reg::new(self, self.state().sealed(reg.id, loc));
        if warps == all {
            let (number, tid, warp) = (self.u32(0), self.tid(), self.warp());
            return Team { k: self, number, first: number, warps, all, tid, warp, barrier: Barrier::Block };
        }
        let number = sealed(self.warp() / warps);
        let first = sealed(number * warps);
        let (tid, warp) = (sealed(self.tid() - first * 32), sealed(self.warp() - first));
        let barrier = match warps {
            1 => Barrier::Warp,
            _ => Barrier::Named { id: (number + 1).id, threads: warps * 32 },
        };
        Team { k: self, number, first, warps, all, tid, warp, barrier }
    }

    fn whole_warps(self, loc: Loc) -> u32 {
        match self.block_dims() {
            Some([threads, 1, 1]) if threads.is_multiple_of(32) && threads > 0 => threads / 32,
            _ => {
                let message = "teams need a launch rule that fixes the block, to whole warps along x";
                self.state().mistake(Code::ModifierCombination, loc, message);
                1
            }
        }
    }
}

impl<'k> Team<'k> {
    /// The number of its first warp in the block.
    pub fn first_warp(self) -> Reg<'k, u32> {
        self.first
    }

    /// The team's number, from 0.
    pub fn number(self) -> Reg<'k, u32> {
        self.number
    }

    /// The number of teams of the block.
    pub fn count(self) -> u32 {
        self.all / self.warps
    }

    /// Waits for all threads of the team; their earlier writes are visible afterwards.
    #[track_caller]
    pub fn sync(self) {
        self.barrier.wait(self.k, Location::caller());
    }

    /// Runs the body of a kernel, or any other code, as block `block` of a grid of `grid` blocks with the team's
    /// threads: `k.tid()`, `k.sync()`, `k.shared()` and the like refer to the team. Threads of a team may return
    /// while others still run: the team waits for its threads before the next call, and the whole block waits before
    /// a team of other warps calls.
    ///
    /// ```
    /// use warpwright_dsl::*;
    ///
    /// /// The sum of 64 numbers for each block.
    /// #[derive(Config)]
    /// struct Sums;
    ///
    /// #[derive(Args)]
    /// #[args(of = Sums)]
    /// struct SumsArgs<M: Mode> {
    ///     #[arg(len = rows.times(64))]
    ///     x: M::In<f32>,
    ///     #[arg(len = rows)]
    ///     y: M::Out<f32>,
    ///     rows: M::Dim,
    /// }
    ///
    /// impl Kernel for Sums {
    ///     type Args<M: Mode> = SumsArgs<M>;
    ///     fn launch(&self) -> LaunchRule {
    ///         LaunchRule::new(64).grid(Extent::dim("rows"))
    ///     }
    ///     fn body<'k>(&self, k: K<'k>, SumsArgs { x, y, .. }: SumsArgs<Body<'k>>) {
    ///         let sum = k.block_sum(x.ld(k.ctaid() * 64 + k.tid()));
    ///         k.when(k.tid().eq(0), || y.st(k.ctaid(), sum));
    ///     }
    /// }
    ///
    /// /// Four of them in each block of 256 threads.
    /// let built = build("four_sums", &LaunchRule::new(256).grid(8), "sm_80".parse()?, |k| {
    ///     let (x, y, team) = (k.ptr("x"), k.ptr_mut("y"), k.teams(2));
    ///     let (zero, one) = (k.u32(0), k.u32(1));
    ///     let (block, grid) = (k.ctaid() * 4 + team.number(), k.nctaid() * 4);
    ///     team.run([block, zero, zero], [grid, one, one], || Sums.body(k, SumsArgs { x, y, rows: () }));
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn run(self, block: [Reg<'k, u32>; 3], grid: [Reg<'k, u32>; 3], body: impl FnOnce()) {
        let home = self.k.state().current;
        self.frame(home, (block, grid), None, body, Location::caller());
    }

    /// Runs a body in a frame, of which it yields what is left.
    pub(super) fn frame(
        self,
        home: BlockId,
        (block, grid): ([Reg<'k, u32>; 3], [Reg<'k, u32>; 3]),
        record: Option<Record>,
        body: impl FnOnce(),
        loc: Loc,
    ) -> Option<Box<Frame>> {
        let Team { k, number, warps, all, tid, warp, barrier, .. } = self;
        let block = block.map(|coordinate| k.state().sealed(coordinate.id, loc));
        let frame = Frame {
            home,
            tid: tid.id,
            warp: warp.id,
            block,
            grid: grid.map(|extent| extent.id),
            barrier,
            team: (number.id, all / warps),
            record,
            taken: Vec::new(),
            // Behind what the piece of a launch has that calls it.
            shared: self.k.state().calls.piece.unwrap_or(0),
            scratch: Vec::new(),
        };
        let threads = {
            let mut state = k.state();
            if state.frame.is_some() {
                state.mistake(Code::Parameter, loc, "a body that is called cannot call another");
                return None;
            }
            state.frame = Some(Box::new(frame));
            state.threads.replace([warps * 32, 1, 1])
        };
        body();
        let mut state = k.state();
        state.threads = threads;
        let frame = state.frame.take();
        if let (Some(frame), Some(used)) = (&frame, &mut state.calls.piece) {
            *used = frame.shared;
        }
        frame
    }
}

/// What the threads of a team wait at.
#[derive(Clone, Copy, Debug)]
enum Barrier {
    Warp,
    Block,
    Named { id: Id, threads: u32 },
}

impl Barrier {
    fn wait(self, k: K<'_>, loc: Loc) {
        match self {
            Barrier::Warp => k.on_line(loc, || k.sync_warp()),
            Barrier::Block => k.on_line(loc, || k.sync_block()),
            Barrier::Named { id, threads } => {
                let mut state = k.state();
                if state.usable(id, loc) {
                    let (a, b) = (state.operand(id, loc), Some(Src::Imm(Imm::Int(threads.into()))));
                    state.effect(BarSync { cta: false, a, b }, None, loc);
                }
            }
        }
    }
}

/// A call while its body is run.
pub(super) struct Frame {
    pub(super) home: BlockId,
    tid: Id,
    warp: Id,
    block: [Id; 3],
    grid: [Id; 3],
    barrier: Barrier,
    /// The team's number, and the most teams.
    team: (Id, u32),
    /// The record with the body's requests, if the body is called through one.
    pub(super) record: Option<Record>,
    /// The registers that hold addresses of buffers, and the index of the request for each.
    pub(super) taken: Vec<(Id, usize)>,
    /// Bytes of shared memory that the body has asked for, of all teams.
    shared: u64,
    /// Where in it the block-wide collectives have their scratch, for each register of a state.
    scratch: Vec<Pointer>,
}

/// What remains of a kernel's calls and pieces: their shared memory, one array as large as the largest of them needs,
/// and the requests of the called bodies.
#[derive(Default)]
pub(super) struct Calls {
    array: Option<u32>,
    bytes: u64,
    /// Bytes that the running piece of a launch has requested.
    piece: Option<u64>,
    pub(super) asked: Vec<(Vec<Ask>, Vec<u32>)>,
}

impl<'k> K<'k> {
    /// Divides the blocks of a one-dimensional grid among independent pieces of work: the first `blocks[0]` blocks
    /// run `work(0, …)` with their number, the next `blocks[1]` run `work(1, …)` with their number among these, and
    /// so on. The pieces share one region of shared memory. A caller of the body calls each piece separately.
    #[track_caller]
    pub fn pieces(self, blocks: &[u32], work: impl Fn(usize, Reg<'k, u32>)) {
        let loc = Location::caller();
        let again = match self.state().record() {
            Some(record) => !record.pieces.is_empty(),
            None => false,
        };
        if again || self.state().calls.piece.is_some() {
            self.state().mistake(
                Code::Parameter,
                loc,
                "a grid is divided into pieces once, and a piece is not",
            );
            return;
        }
        let piece = self.state().record().map(|record| {
            record.pieces = blocks.to_vec();
            record.piece
        });
        if let Some(piece) = piece {
            if piece < blocks.len() {
                work(piece, self.ctaid());
            }
            return;
        }
        let (block, mut first) = (self.ctaid(), 0u32);
        for (piece, &count) in blocks.iter().enumerate() {
            let end = first.saturating_add(count);
            let run = || {
                self.state().calls.piece = Some(0);
                work(piece, block - first);
                self.state().calls.piece = None;
            };
            match (piece == 0, piece + 1 == blocks.len()) {
                (true, true) => work(piece, block),
                (true, false) => self.when(block.lt(end), run),
                (false, true) => self.when(block.ge(first), run),
                (false, false) => self.when(block.ge(first) & block.lt(end), run),
            }
            first = end;
        }
    }
}

impl State {
    /// A special register as the frame has it.
    pub(super) fn framed(&mut self, special: Special) -> Option<Id> {
        let frame = self.frame.as_ref()?;
        let axis = special.component.map_or(0, |component| component as usize);
        let (tid, block, grid) = (frame.tid, frame.block, frame.grid);
        match special.register {
            SpecialRegister::Tid if axis == 0 => Some(tid),
            SpecialRegister::Tid => Some(self.constant(Type::U32, Imm::Int(0))),
            SpecialRegister::CtaId => Some(block[axis]),
            SpecialRegister::NCtaId => Some(grid[axis]),
            _ => None,
        }
    }

    /// The value as a single term, so that addresses in the body do not include the terms that it was computed from.
    pub(super) fn sealed(&mut self, reg: Id, loc: Loc) -> Id {
        if !self.usable(reg, loc) || self.constant_of(reg).is_some() {
            return reg;
        }
        let ty = self.value(reg).ty;
        self.pure(ty, loc, |d| super::emit::mov(super::emit::register_type(ty), d, Src::Reg(reg)))
    }

    /// Where an instruction without effects goes: in a body that is called, out of the loop over its tiles if it can,
    /// and no further than where the call was made.
    pub(super) fn place_of(&self, inst: u32) -> BlockId {
        let Some(frame) = &self.frame else { return self.current };
        let mut place = frame.home;
        if !self.block(place).open {
            return self.current;
        }
        for &(access, reg) in self.operands_of(inst) {
            let value = self.value(reg);
            match value.def {
                _ if access == Access::Write => continue,
                Def::Inst(_) | Def::Const(_) | Def::Carried(..) | Def::Result(_) => {}
                // Written by others too, and maybe later.
                _ => return self.current,
            }
            if self.block(value.block).depth > self.block(place).depth {
                place = value.block;
            }
        }
        place
    }

    /// Closes the memory of calls: its array has the size that the largest needs.
    pub(super) fn size_call_memory(&mut self) {
        if let Some(array) = self.calls.array {
            self.arrays[array as usize].dims = vec![Some(self.calls.bytes)];
        }
    }
}

impl<'k> K<'k> {
    /// Shared memory of a called body, separate for each team, or of a piece of a launch.
    pub(super) fn framed_shared<T: Data>(self, count: u32, loc: Loc) -> Option<Ptr<'k, Shared, T>> {
        let (team, piece) = {
            let state = self.state();
            (state.frame.as_ref().map(|frame| frame.team), state.calls.piece)
        };
        let bytes = (u64::from(T::TYPE.bytes()) * u64::from(count)).next_multiple_of(16);
        let Some((number, teams)) = team else {
            return piece.map(|_| self.common_memory(bytes, loc));
        };
        let base: Ptr<'k, Shared, T> = self.common_memory(bytes * u64::from(teams), loc);
        let pitch = (bytes / u64::from(T::TYPE.bytes())) as u32;
        Some(base.at_loc(Reg::<u32>::new(self, number) * pitch, loc))
    }

    /// The next bytes of the memory that calls and pieces have in common: a multiple of 16.
    fn common_memory<T: Data>(self, bytes: u64, loc: Loc) -> Ptr<'k, Shared, T> {
        let mut state = self.state();
        let array = match state.calls.array {
            Some(array) => array,
            None => {
                let array = state.array(Space::Shared, Type::B8, 16, loc).unwrap_or(0);
                state.calls.array = Some(array);
                array
            }
        };
        let State { frame, calls, .. } = &mut *state;
        let used = match frame {
            Some(frame) => &mut frame.shared,
            None => calls.piece.get_or_insert(0),
        };
        let at = *used;
        *used += bytes;
        calls.bytes = calls.bytes.max(*used);
        drop(state);
        let (base, form) = (Base::Variable(array), FormId::ZERO);
        let pointer = Pointer { base, form, narrow: true, mutable: true, shifting: false };
        let base: Ptr<'k, Shared, u8> = Ptr::new(self, pointer);
        base.at_loc(at as u32, loc).cast()
    }

    /// The scratch of the block-wide collectives of a called body, for register `which` of a state.
    pub(super) fn framed_scratch(self, which: usize, words: u32, loc: Loc) -> Option<Pointer> {
        loop {
            let known = self.state().frame.as_ref().map(|frame| frame.scratch.get(which).copied())?;
            if known.is_some() {
                return known;
            }
            let scratch: Ptr<'k, Shared, u64> = self.framed_shared(words, loc)?;
            let mut state = self.state();
            let pointer = scratch.pointer_in(&state)?;
            state.frame.as_mut()?.scratch.push(pointer);
        }
    }

    /// The number of the warp in the team of a called body.
    pub(super) fn framed_warp(self) -> Option<Reg<'k, u32>> {
        let warp = self.state().frame.as_ref().map(|frame| frame.warp)?;
        Some(Reg::new(self, warp))
    }

    /// The barrier of a called body; `None` where the kernel is launched.
    pub(super) fn framed_sync(self, loc: Loc) -> bool {
        let barrier = self.state().frame.as_ref().map(|frame| frame.barrier);
        if let Some(barrier) = barrier {
            barrier.wait(self, loc);
        }
        barrier.is_some()
    }

    fn sync_block(self) {
        self.append(BarSync { cta: false, a: Src::Imm(Imm::Int(0)), b: None });
    }

    /// Refuses what a called body cannot do.
    pub(super) fn not_called(self, what: &str, loc: Loc) -> bool {
        let called = self.state().frame.is_some();
        if called {
            let message = format!("{what} in a body that is called, which is not the whole kernel");
            self.state().mistake(Code::Parameter, loc, message);
        }
        !called
    }
}
