//! Kernels that call the bodies of others: one launch that does the work of several.
//!
//! A body asks for its arguments, its place in the grid and its block, and need not know who answers. Launched, it is
//! the launch; called, it is a [`Call`]: arguments are registers of the caller, the block is a [`Team`] of the caller's
//! warps, barriers are the team's, and shared memory is one piece that all calls of a kernel use, one after the other.
//!
//! What a body asks for through [`K::size`] and its like is a constant where the kernel is launched, and may be a
//! register where it is called: so one piece of code does for matrices of all shapes. A table that it asks for through
//! [`K::configured_table`] is part of the module, or memory that the caller has the address of.

use super::any::AnyKernel;
use super::form::FormId;
use super::reg::Reg;
use super::state::{Base, BlockId, Def, Loc, Pointer, State};
use super::types::*;
use super::{ArgDesc, K, Ptr, Role};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Imm, Reg as Id, Space, Special, SpecialRegister, Src, Type};
use warpwright_ptx::op::Access;
use warpwright_ptx::op::sync::BarSync;

/// Warps of the block that run as a block of their own, and the other such teams beside it.
#[derive(Clone, Copy, Debug)]
pub struct Team<'k> {
    k: K<'k>,
    /// Its number among the teams of the block.
    number: Reg<'k, u32>,
    /// Its first warp.
    first: Reg<'k, u32>,
    /// How many warps it has.
    warps: Reg<'k, u32>,
    /// The same where it is known.
    known: Option<u32>,
    /// Warps of the block.
    all: u32,
    /// The thread's number in it.
    tid: Reg<'k, u32>,
    /// The warp's number in it: told from the block's, which is seen to be one for all lanes.
    warp: Reg<'k, u32>,
    threads: Reg<'k, u32>,
    barrier: Barrier,
}

/// Most teams of a block: each has a barrier, and the first of the sixteen is the block's.
const MOST_TEAMS: u32 = 15;

impl<'k> K<'k> {
    /// Divides the block into teams of `warps` warps: the team of this thread. `warps` divides the warps of the block.
    #[track_caller]
    pub fn teams(self, warps: u32) -> Team<'k> {
        let loc = Location::caller();
        let all = self.whole_warps(loc);
        let fits = warps > 0 && all.is_multiple_of(warps) && all / warps.max(1) <= MOST_TEAMS;
        if !fits {
            let message = format!(
                "teams of {warps} warps in a block of {all}: up to {MOST_TEAMS}, and no warps left over"
            );
            self.state().mistake(Code::ModifierCombination, loc, message);
        }
        let warps = if fits { warps } else { all };
        let number = if warps == all { self.u32(0) } else { self.warp() / warps };
        self.team(number, self.u32(warps), Some(warps), all)
    }

    /// The same with a number of warps that is known when the kernel runs: one for all threads, which divides the warps
    /// of the block, of which there are at most 15.
    #[track_caller]
    pub fn teams_of(self, warps: Reg<'k, u32>) -> Team<'k> {
        let loc = Location::caller();
        let all = self.whole_warps(loc);
        if all > MOST_TEAMS {
            let message = format!(
                "a block of {all} warps: each may be a team, of which there are {MOST_TEAMS} at most"
            );
            self.state().mistake(Code::ModifierCombination, loc, message);
        }
        self.team(self.warp() / warps, warps, None, all)
    }

    fn team(self, number: Reg<'k, u32>, warps: Reg<'k, u32>, known: Option<u32>, all: u32) -> Team<'k> {
        let loc = Location::caller();
        let whole = known == Some(all);
        let sealed = |reg: Reg<'k, u32>| Reg::new(self, self.state().sealed(reg.id, loc));
        let number = sealed(number);
        let first = if whole { number } else { sealed(number * warps) };
        let (tid, warp) = match whole {
            true => (self.tid(), self.warp()),
            false => (sealed(self.tid() - first * 32), sealed(self.warp() - first)),
        };
        let threads = sealed(warps * 32);
        let barrier = match known {
            Some(1) => Barrier::Warp,
            _ if whole => Barrier::Block,
            _ => Barrier::Named { id: (number + 1).id, threads: threads.id },
        };
        Team { k: self, number, first, warps, known, all, tid, warp, threads, barrier }
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
    /// Its first warp, by its number in the block.
    pub fn first_warp(self) -> Reg<'k, u32> {
        self.first
    }

    /// The team's number, from 0.
    pub fn number(self) -> Reg<'k, u32> {
        self.number
    }

    /// Teams of the block.
    #[track_caller]
    pub fn count(self) -> Reg<'k, u32> {
        match self.known {
            Some(warps) => self.k.u32(self.all / warps),
            None => self.k.u32(self.all) / self.warps,
        }
    }

    /// Waits for all threads of the team; what they wrote is seen.
    #[track_caller]
    pub fn sync(self) {
        self.barrier.wait(self.k, Location::caller());
    }
}

/// What the threads of a team wait at.
#[derive(Clone, Copy, Debug)]
enum Barrier {
    Warp,
    Block,
    Named { id: Id, threads: Id },
}

impl Barrier {
    fn wait(self, k: K<'_>, loc: Loc) {
        match self {
            Barrier::Warp => k.on_line(loc, || k.sync_warp()),
            Barrier::Block => k.on_line(loc, || k.sync_block()),
            Barrier::Named { id, threads } => {
                let mut state = k.state();
                if state.usable(id, loc) && state.usable(threads, loc) {
                    let (a, b) = (state.operand(id, loc), Some(state.operand(threads, loc)));
                    state.effect(BarSync { cta: false, a, b }, None, loc);
                }
            }
        }
    }
}

/// What a called body is given for an argument.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// The address of a buffer, and whether nobody writes it while the caller runs.
    Buffer {
        address: Id,
        frozen: bool,
    },
    /// The same, whose address is in the record of the call.
    Recorded {
        index: u32,
        frozen: bool,
    },
    Number {
        value: Id,
        ty: Type,
    },
}

/// Where the record of a call is: words of global memory, and the word of shared memory that says where it begins.
/// Pointers, by their numbers.
type Record = (u32, u32);

/// A call in the making: the team that runs the body, and what the body is given.
#[derive(Clone, Debug)]
pub struct Call<'k> {
    team: Team<'k>,
    /// Where it was made: what a body computes of what it is given here is computed here.
    home: BlockId,
    grid: [Reg<'k, u32>; 3],
    args: Vec<(&'static str, Given)>,
    sizes: Vec<(&'static str, Id, Type)>,
    /// Pointers, by their numbers.
    tables: Vec<(&'static str, u32)>,
    record: Option<Record>,
}

/// A call while its body is run.
pub(super) struct Frame {
    home: BlockId,
    tid: Id,
    warp: Id,
    /// Threads of the team.
    threads: Id,
    block: [Id; 3],
    grid: [Id; 3],
    barrier: Barrier,
    /// The team's number, its first warp, the most teams, and the warps of the block.
    team: (Id, Id, u32, u32),
    args: Vec<(&'static str, Given)>,
    sizes: Vec<(&'static str, Id, Type)>,
    /// Pointers, by their numbers.
    tables: Vec<(&'static str, u32)>,
    record: Option<Record>,
    /// The arguments whose addresses were taken from the record, and the registers that hold them.
    taken: Vec<(Id, &'static str)>,
    /// Bytes of shared memory that the body has asked for, of all teams.
    shared: u64,
    /// Where in it the block-wide collectives have their scratch, for each register of a state.
    scratch: Vec<Pointer>,
    /// Where it was called.
    loc: Loc,
}

/// Shared memory of calls: one array, as large as the largest call needs.
#[derive(Default)]
pub(super) struct CallMemory {
    array: Option<u32>,
    bytes: u64,
}

impl<'k> Call<'k> {
    /// A call by the team, as the only block of its grid.
    #[track_caller]
    pub fn new(team: Team<'k>) -> Self {
        let home = team.k.state().current;
        let grid = [team.k.u32(1); 3];
        Call { team, home, grid, args: Vec::new(), sizes: Vec::new(), tables: Vec::new(), record: None }
    }

    /// The grid that the body asks for.
    pub fn grid(mut self, grid: [Reg<'k, u32>; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Gives a buffer by its address in generic memory. What is `frozen` is written by nobody while the caller runs: only
    /// that is loaded through the read-only cache where the body asks for it.
    #[track_caller]
    pub fn buffer(mut self, name: &'static str, address: Reg<'k, u64>, frozen: bool) -> Self {
        let loc = Location::caller();
        if self.team.k.state().usable(address.id, loc) {
            let address = self.team.k.global_address(address, loc);
            self.args.push((name, Given::Buffer { address, frozen }));
        }
        self
    }

    /// Gives a record: `words` from the one on whose index is in `at`. Nobody writes either while the body runs.
    pub fn record(mut self, words: Ptr<'k, Global, u64>, at: Ptr<'k, Shared, u32>) -> Self {
        self.record = Some((words.id, at.id));
        self
    }

    /// Gives a buffer as [`buffer`](Self::buffer) does, by the word of the [record](Self::record) that is its address.
    /// It is loaded where the body asks for the buffer, and takes no registers before.
    pub fn recorded(mut self, name: &'static str, index: u32, frozen: bool) -> Self {
        self.args.push((name, Given::Recorded { index, frozen }));
        self
    }

    /// Gives a buffer that the caller has as a parameter, as [`buffer`](Self::buffer) does.
    #[track_caller]
    pub fn parameter<T: Data>(
        mut self,
        name: &'static str,
        buffer: Ptr<'k, Global, T>,
        frozen: bool,
    ) -> Self {
        let loc = Location::caller();
        let mut state = self.team.k.state();
        match buffer.pointer_in(&state) {
            Some(Pointer { base: Base::Reg(address), form: FormId::ZERO, .. }) => {
                self.args.push((name, Given::Buffer { address, frozen }));
            }
            _ => {
                state.mistake(
                    Code::Parameter,
                    loc,
                    format!("`{name}` is given a pointer that is no parameter"),
                );
            }
        }
        drop(state);
        self
    }

    /// Gives a number.
    #[track_caller]
    pub fn number<T: Data>(mut self, name: &'static str, value: Reg<'k, T>) -> Self {
        let value = self.team.k.state().sealed(value.id, Location::caller());
        self.args.push((name, Given::Number { value, ty: T::TYPE }));
        self
    }

    /// Gives a size: see [`Kernel::sizes`](super::Kernel::sizes). What is not given is what the configuration says.
    #[track_caller]
    pub fn size(self, name: &'static str, value: Reg<'k, u32>) -> Self {
        self.sealed(name, value.id, Type::U32, Location::caller())
    }

    /// The same of 64 bits.
    #[track_caller]
    pub fn wide_size(self, name: &'static str, value: Reg<'k, u64>) -> Self {
        self.sealed(name, value.id, Type::U64, Location::caller())
    }

    /// The same of a factor.
    #[track_caller]
    pub fn factor(self, name: &'static str, value: Reg<'k, f32>) -> Self {
        self.sealed(name, value.id, Type::F32, Location::caller())
    }

    fn sealed(mut self, name: &'static str, value: Id, ty: Type, loc: Loc) -> Self {
        let value = self.team.k.state().sealed(value, loc);
        self.sizes.push((name, value, ty));
        self
    }

    /// Gives a table by its first word: see [`Kernel::tables`](super::Kernel::tables). Nobody writes it while the caller runs.
    pub fn table(mut self, name: &'static str, words: Ptr<'k, Global, u64>) -> Self {
        self.tables.push((name, words.id));
        self
    }

    /// Runs the body of a kernel as block `block` of its grid, by all threads of the team. Threads of a team may return
    /// while others are still at it: the team waits for its threads before the next call, and before a team of other
    /// warps calls the whole block waits.
    #[track_caller]
    pub fn run(&self, kernel: &dyn AnyKernel, block: [Reg<'k, u32>; 3]) {
        let (k, loc) = (self.team.k, Location::caller());
        let args = kernel.args();
        for arg in &args {
            let given = self.args.iter().find(|(name, _)| *name == arg.name);
            let is_number = given.map(|(_, given)| matches!(given, Given::Number { .. }));
            if is_number != Some(arg.role == Role::Scalar) {
                let (entry, name) = (kernel.entry(), arg.name);
                let what = if arg.role == Role::Scalar { "number" } else { "buffer" };
                k.state().mistake(
                    Code::Parameter,
                    loc,
                    format!("`{entry}` is called without its {what} `{name}`"),
                );
                return;
            }
        }
        let rule = kernel.launch();
        let threads = match rule.block {
            super::Block::Exactly([threads, 1, 1]) => Some(threads),
            _ => None,
        };
        if let (Some(warps), Some(threads)) = (self.team.known, threads)
            && warps * 32 != threads
        {
            let message =
                format!("`{}` has blocks of {threads} threads; the team has {}", kernel.entry(), warps * 32);
            k.state().mistake(Code::Parameter, loc, message);
            return;
        }
        self.body(block, args, || kernel.body(k), loc);
    }

    fn body(&self, block: [Reg<'k, u32>; 3], args: Vec<ArgDesc>, body: impl FnOnce(), loc: Loc) {
        let Team { k, number, first, known, all, tid, warp, threads, barrier, .. } = self.team;
        let block = block.map(|coordinate| k.state().sealed(coordinate.id, loc));
        let frame = Frame {
            home: self.home,
            tid: tid.id,
            warp: warp.id,
            threads: threads.id,
            block,
            grid: self.grid.map(|extent| extent.id),
            barrier,
            team: (number.id, first.id, all / known.unwrap_or(1), all),
            args: self.args.clone(),
            sizes: self.sizes.clone(),
            tables: self.tables.clone(),
            record: self.record,
            taken: Vec::new(),
            shared: 0,
            scratch: Vec::new(),
            loc,
        };
        let before = {
            let mut state = k.state();
            if state.frame.is_some() {
                state.mistake(Code::Parameter, loc, "a body that is called cannot call another");
                return;
            }
            let dims = known.map(|warps| [warps * 32, 1, 1]);
            state.frame = Some(Box::new(frame));
            (std::mem::replace(&mut state.threads, dims), state.declared.replace(args))
        };
        body();
        let mut state = k.state();
        (state.threads, state.declared) = before;
        state.frame = None;
    }
}

impl State {
    /// A special register as the frame has it.
    pub(super) fn framed(&mut self, special: Special) -> Option<Id> {
        let frame = self.frame.as_ref()?;
        let axis = special.component.map_or(0, |component| component as usize);
        let (tid, threads, block, grid) = (frame.tid, frame.threads, frame.block, frame.grid);
        match special.register {
            SpecialRegister::Tid if axis == 0 => Some(tid),
            SpecialRegister::Tid => Some(self.constant(Type::U32, Imm::Int(0))),
            SpecialRegister::Ntid if axis == 0 => Some(threads),
            SpecialRegister::Ntid => Some(self.constant(Type::U32, Imm::Int(1))),
            SpecialRegister::CtaId => Some(block[axis]),
            SpecialRegister::NCtaId => Some(grid[axis]),
            _ => None,
        }
    }

    /// The buffer that the frame has for an argument, whose address is `recorded` where the call's record has it. Poison
    /// where it has none.
    pub(super) fn framed_buffer(
        &mut self,
        name: &str,
        recorded: Option<Id>,
        mutable: bool,
        loc: Loc,
    ) -> Option<Pointer> {
        let frame = self.frame.as_ref()?;
        let given = frame.args.iter().find(|(known, _)| *known == name).map(|(_, given)| *given);
        let (base, frozen) = match given {
            Some(Given::Buffer { address, frozen }) if self.usable(address, loc) => (address, frozen),
            Some(Given::Buffer { .. }) => (super::state::POISON, false),
            Some(Given::Recorded { frozen, .. }) => (recorded.unwrap_or(super::state::POISON), frozen),
            _ => (self.not_given(name, loc), false),
        };
        let frame = self.frame.as_mut()?;
        let known = frame.args.iter().find(|(known, _)| *known == name);
        frame.taken.extend(recorded.zip(known.map(|&(name, _)| name)));
        Some(Pointer { base: Base::Reg(base), form: FormId::ZERO, narrow: false, mutable, shifting: !frozen })
    }

    /// The argument that a pointer is, where its address was taken from the record of a call.
    fn taken(&self, pointer: Pointer) -> Option<&'static str> {
        let Base::Reg(base) = pointer.base else { return None };
        let taken = self.frame.as_ref()?.taken.iter().find(|&&(address, _)| address == base)?;
        (pointer.form == FormId::ZERO).then_some(taken.1)
    }

    /// The number that the frame has for an argument. Poison where it has none.
    pub(super) fn framed_number(&mut self, name: &str, wanted: Type, loc: Loc) -> Option<Id> {
        let frame = self.frame.as_ref()?;
        let given = frame.args.iter().find(|(known, _)| *known == name).map(|(_, given)| *given);
        Some(match given {
            Some(Given::Number { value, ty }) if ty == wanted => value,
            _ => self.not_given(name, loc),
        })
    }

    /// The value by itself: what it was computed from is no business of a body, whose addresses would have its terms.
    fn sealed(&mut self, reg: Id, loc: Loc) -> Id {
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

    /// What the frame has for a size.
    pub(super) fn framed_size(&self, name: &str, wanted: Type) -> Option<Id> {
        let sizes = &self.frame.as_ref()?.sizes;
        sizes.iter().find(|(known, _, ty)| *known == name && *ty == wanted).map(|&(_, id, _)| id)
    }

    /// The pointer that the frame has for a table.
    pub(super) fn framed_table(&self, name: &str) -> Option<u32> {
        self.frame.as_ref()?.tables.iter().find(|(known, _)| *known == name).map(|&(_, id)| id)
    }

    fn not_given(&mut self, name: &str, loc: Loc) -> Id {
        let at = self.frame.as_ref().map_or(loc, |frame| frame.loc);
        let message =
            format!("the call at {}:{} does not give `{name}`, or as another type", at.file(), at.line());
        self.mistake(Code::Parameter, loc, message)
    }

    /// Closes the memory of calls: its array has the size that the largest needs.
    pub(super) fn size_call_memory(&mut self) {
        if let Some(array) = self.calls.array {
            self.arrays[array as usize].dims = vec![Some(self.calls.bytes)];
        }
    }
}

impl<'k, T: Data> Ptr<'k, Global, T> {
    /// The same argument, taken anew: where a called body has its address from the record of the call, it is loaded here
    /// again, so that until here no register need hold it. Any other pointer is itself.
    #[track_caller]
    pub fn anew(self) -> Self {
        let loc = Location::caller();
        let taken = {
            let state = self.k.state();
            let pointer = self.pointer_in(&state);
            pointer.and_then(|pointer| Some((state.taken(pointer)?, pointer.mutable)))
        };
        let Some((name, mutable)) = taken else { return self };
        let mut anew: Self = self.k.untyped_buffer(name, mutable, loc);
        anew.access = self.access;
        anew
    }
}

impl<'k> K<'k> {
    /// Shared memory of `count` elements for each warp of the block, aligned to 16 bytes: where the first warp's begin.
    /// The next warp's begin `count` elements further; `warps` are those of the block, where the kernel is launched.
    #[track_caller]
    pub fn shared_by_warp<T: Data>(self, count: u32, warps: u32) -> Ptr<'k, Shared, T> {
        let loc = Location::caller();
        let (first, all) = match &self.state().frame {
            Some(frame) => (frame.team.1, frame.team.3),
            None => return self.shared_at(count * warps, loc),
        };
        let base: Ptr<'k, Shared, T> =
            self.call_memory(u64::from(T::TYPE.bytes()) * u64::from(count) * u64::from(all), loc);
        base.at_loc(Reg::<u32>::new(self, first) * count, loc)
    }

    /// Shared memory of a called body: each team has its own.
    pub(super) fn framed_shared<T: Data>(self, count: u32, loc: Loc) -> Option<Ptr<'k, Shared, T>> {
        let (number, teams) = self.state().frame.as_ref().map(|frame| (frame.team.0, frame.team.2))?;
        let bytes = (u64::from(T::TYPE.bytes()) * u64::from(count)).next_multiple_of(16);
        let base: Ptr<'k, Shared, T> = self.call_memory(bytes * u64::from(teams), loc);
        let pitch = (bytes / u64::from(T::TYPE.bytes())) as u32;
        Some(base.at_loc(Reg::<u32>::new(self, number) * pitch, loc))
    }

    /// The next bytes of the memory of calls.
    fn call_memory<T: Data>(self, bytes: u64, loc: Loc) -> Ptr<'k, Shared, T> {
        let mut state = self.state();
        let array = match state.calls.array {
            Some(array) => array,
            None => {
                let array = state.array(Space::Shared, Type::B8, 16, loc).unwrap_or(0);
                state.calls.array = Some(array);
                array
            }
        };
        let Some(frame) = state.frame.as_mut() else { return Ptr::poison(self) };
        let at = frame.shared;
        frame.shared = at + bytes.next_multiple_of(16);
        state.calls.bytes = state.calls.bytes.max(at + bytes.next_multiple_of(16));
        let form = FormId::ZERO;
        let pointer =
            Pointer { base: Base::Variable(array), form, narrow: true, mutable: true, shifting: false };
        drop(state);
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

    /// The address of a buffer that the record of the call has.
    #[track_caller]
    pub(super) fn framed_address(self, name: &str) -> Option<Reg<'k, u64>> {
        let (words, at, index) = {
            let state = self.state();
            let frame = state.frame.as_ref()?;
            let (_, given) = frame.args.iter().find(|(known, _)| *known == name)?;
            let (&Given::Recorded { index, .. }, Some((words, at))) = (given, frame.record) else {
                return None;
            };
            (words, at, index)
        };
        let at: Ptr<'k, Shared, u32> = Ptr::with_id(self, at);
        let words: Ptr<'k, Global, u64> = Ptr::with_id(self, words);
        let address = words.at(at.ld(0)).nc().ld(index);
        Some(address)
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
        self.op(BarSync { cta: false, a: Src::Imm(Imm::Int(0)), b: None });
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

/// A kernel that is called in place of launching another one, and its arguments by the names of the other one's.
#[derive(Clone)]
pub struct Called {
    /// The kernel.
    pub kernel: std::sync::Arc<dyn AnyKernel + Send + Sync>,
    /// Each of its arguments: its own name, and the other kernel's.
    pub args: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Called").field("kernel", &self.kernel.entry()).field("args", &self.args).finish()
    }
}
