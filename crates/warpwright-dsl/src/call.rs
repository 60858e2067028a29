//! Inlined device functions whose arguments are in memory.
//!
//! Everything that a body requests (buffers, numbers, [dims](super::Dim), tables) is in the *record* of the call:
//! words of global memory, in the order of the requests (see [`Asked`]). So one piece of code serves all
//! configurations that build to it. The contents of a record follow from the build; they are not declared. If a body
//! divides its grid ([`K::pieces`]), each piece is called separately.

use super::any::AnyKernel;
use super::emit;
use super::form::FormId;
use super::reg::Reg;
use super::state::{Base, BlockId, Def, Loc, POISON, Pointer, State};
use super::team::Team;
use super::types::*;
use super::{K, Ptr};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Reg as Id, Space, Type};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::convert::Cvta;

/// A request of a called body. Each one that the code needs is a word of 64 bits in the record of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// An argument: the generic address of a buffer, or the bits of a number in the low bits of the word.
    Arg(&'static str),
    /// A number of the configuration, its bits in the low bits of the word: see [`Dim`](super::Dim).
    Number(u64),
    /// A table of the configuration: the index of its first word among the words that contain the record. The table
    /// does not change while the caller runs.
    Table(Vec<u64>),
}

/// The requests of a called body, as in [`Built::calls`](super::Built::calls).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDesc {
    /// The contents of its record, word by word: the requests of the body in order, except those that the code does
    /// not need.
    pub asked: Vec<Asked>,
    /// Number of blocks of each of the [pieces](K::pieces) that its grid is divided into; empty if the grid is not
    /// divided.
    pub pieces: Vec<u32>,
}

/// Where the record of a call is said again: all words of records, and the word of shared memory with the index of the
/// record's first. Pointers, by their numbers.
type Late = (u32, u32);

/// A call under construction: the team that runs the body, and the record with what the body requests.
#[derive(Clone, Debug)]
pub struct Call<'k> {
    team: Team<'k>,
    /// The block that makes the call: values that a body computes from its inputs are computed here.
    home: BlockId,
    grid: [Reg<'k, u32>; 3],
    record: Record,
}

/// The record of a call while its body is run.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// All words of records, by the number of the pointer, and the address of this one, in global memory.
    words: u32,
    address: Id,
    late: Option<Late>,
    /// What the body has asked for.
    asked: Vec<Ask>,
    pub(super) piece: usize,
    pub(super) pieces: Vec<u32>,
}

/// Something that the body of a call has asked for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    what: Asked,
    /// The registers that it was loaded into, where it was asked for and anew, and how far the address of each load is
    /// before the record.
    values: Vec<(Id, i64)>,
}

impl<'k> Call<'k> {
    /// A call by the team as the only block of its grid. Its record begins at word `record` of `words`, a parameter
    /// whose memory must not change while the body runs.
    #[track_caller]
    pub fn new(team: Team<'k>, words: Ptr<'k, Global, u64>, record: Reg<'k, u32>) -> Self {
        let (k, loc) = (team.k, Location::caller());
        let home = k.state().current;
        let grid = [k.u32(1); 3];
        let pointer = words.pointer_in(&k.state());
        let address = match pointer {
            Some(Pointer { base: Base::Reg(base), form: FormId::ZERO, .. }) => {
                let address = Reg::<u64>::new(k, base) + record.to::<u64>() * 8;
                k.state().sealed(address.id, loc)
            }
            _ => k.state().mistake(Code::Parameter, loc, "records are in a buffer that is a parameter"),
        };
        let words = words.id;
        let (asked, pieces) = (Vec::new(), Vec::new());
        let record = Record { words, address, late: None, asked, piece: 0, pieces };
        Call { team, home, grid, record }
    }

    /// Sets the grid that the body sees.
    pub fn grid(mut self, grid: [Reg<'k, u32>; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Gives the record's position a second time: `words` is a parameter, moved by a constant at most, and `at` holds
    /// the index of the record's first word. A body that takes an argument [anew](Ptr::anew) uses this, and need not
    /// keep the record's address until then.
    pub fn late(mut self, words: Ptr<'k, Global, u64>, at: Ptr<'k, Shared, u32>) -> Self {
        self.record.late = Some((words.id, at.id));
        self
    }

    /// Selects the [piece](K::pieces) of the body to call, by its number; the default is the first.
    pub fn piece(mut self, piece: usize) -> Self {
        self.record.piece = piece;
        self
    }

    /// Runs the body of a kernel as block `block` of its grid, with all threads of the team: see [`Team::run`].
    #[track_caller]
    pub fn run(&self, kernel: &dyn AnyKernel, block: [Reg<'k, u32>; 3]) {
        let (k, loc) = (self.team.k, Location::caller());
        let rule = kernel.launch();
        let own = self.team.warps * 32;
        if !rule.any_warps && rule.block != super::Block::Exactly([own, 1, 1]) {
            let message =
                format!("`{}` has blocks of {:?}; the team has {own} threads", kernel.entry(), rule.block);
            k.state().mistake(Code::Parameter, loc, message);
            return;
        }
        let declared = k.state().declared.replace(kernel.args());
        let place = (block, self.grid);
        let frame = self.team.frame(self.home, place, Some(self.record.clone()), || kernel.body(k), loc);
        let mut state = k.state();
        state.declared = declared;
        let Some(Record { asked, piece, pieces, .. }) = frame.and_then(|frame| frame.record) else { return };
        if piece > 0 && piece >= pieces.len() {
            let message = format!("piece {piece} of a body that has {}", pieces.len());
            state.mistake(Code::Parameter, loc, message);
        }
        state.calls.asked.push((asked, pieces));
    }
}

impl State {
    pub(super) fn record(&mut self) -> Option<&mut Record> {
        self.frame.as_mut()?.record.as_mut()
    }

    /// A request of the called body, from the record; `None` if there is no record.
    pub(super) fn asked(&mut self, what: Asked, ty: Type, loc: Loc) -> Option<Id> {
        let home = self.frame.as_ref()?.home;
        let address = self.record()?.address;
        let home = if self.block(home).open { home } else { self.current };
        let value = self.word(address, home, ty, loc);
        self.record()?.asked.push(Ask { what, values: vec![(value, 0)] });
        Some(value)
    }

    /// A word of the record, as an address. Its index is determined once the code's needs are known.
    fn word(&mut self, record: Id, block: BlockId, ty: Type, loc: Loc) -> Id {
        if !self.usable(record, loc) {
            return POISON;
        }
        let address = ir::Address::reg(record, 0);
        self.pure_in(block, ty, loc, |d| emit::ld(Space::Global, true, ty, d, address))
    }

    /// Numbers the words of each record, of what is needed.
    pub(super) fn number_words(&mut self, live: &[bool]) -> Vec<CallDesc> {
        let is_live = |(reg, _): &(Id, i64)| live.get(reg.0 as usize).copied().unwrap_or(false);
        let mut descriptions = Vec::new();
        for (asked, pieces) in std::mem::take(&mut self.calls.asked) {
            let mut needed = Vec::new();
            for Ask { what, values } in asked {
                if !values.iter().any(is_live) {
                    continue;
                }
                for (value, before) in values {
                    let Some(Def::Inst(inst)) = self.values.get(value.0 as usize).map(|value| value.def)
                    else {
                        continue;
                    };
                    if let Op::Ld(load) = &mut self.ops[inst as usize] {
                        load.address.offset = before + needed.len() as i64 * 8;
                    }
                }
                needed.push(what);
            }
            descriptions.push(CallDesc { asked: needed, pieces });
        }
        descriptions
    }

    /// The buffer of an argument, from the record. It is read through the read-only cache only if the kernel declares
    /// it constant.
    pub(super) fn framed_buffer(&mut self, name: &'static str, mutable: bool, loc: Loc) -> Option<Pointer> {
        let place = self.record()?.asked.len();
        let address = self.asked(Asked::Arg(name), Type::U64, loc)?;
        let base = self.global(address, loc);
        self.frame.as_mut()?.taken.push((base, place));
        let (form, shifting) = (FormId::ZERO, !self.is_constant(name));
        Some(Pointer { base: Base::Reg(base), form, narrow: false, mutable, shifting })
    }

    /// A generic address as one of global memory.
    pub(super) fn global(&mut self, address: Id, loc: Loc) -> Id {
        if !self.usable(address, loc) {
            return POISON;
        }
        let a = self.operand(address, loc);
        self.pure(Type::U64, loc, |d| {
            Cvta { to: true, space: Space::Global, ty: Type::U64, d: ir::Dst(d), a }.into()
        })
    }
}

impl<'k, T: Data> Ptr<'k, Global, T> {
    /// The same argument, loaded again: in a called body its address is loaded here, so no register needs to hold it
    /// until here. Any other pointer is returned unchanged.
    #[track_caller]
    pub fn anew(self) -> Self {
        let (k, loc) = (self.k, Location::caller());
        let Some((pointer, (words, at), place)) = self.taken() else { return self };
        let place_of = |state: &State| {
            let pointer = *state.pointers.get(words as usize)?;
            let Base::Reg(base) = pointer.base else { return None };
            Some((Reg::<u64>::new(k, base), state.forms.constant(pointer.form)))
        };
        let found = place_of(&k.state());
        let Some((words, before)) = found else { return self };
        let at: Ptr<'k, Shared, u32> = Ptr::with_id(k, at);
        let record = words + at.ld(0).to::<u64>() * 8;
        let pointer = {
            let mut state = k.state();
            let (record, block) = (state.sealed(record.id, loc), state.current);
            let address = state.word(record, block, Type::U64, loc);
            if let Some(record) = state.record() {
                record.asked[place].values.push((address, before));
            }
            Pointer { base: Base::Reg(state.global(address, loc)), ..pointer }
        };
        if matches!(pointer.base, Base::Reg(POISON)) {
            return Ptr::poison(k);
        }
        let mut anew = Ptr::new(k, pointer);
        anew.access = self.access;
        anew
    }

    /// The second position of the record's address, and the number of the request, for an argument of a call that has
    /// such a position.
    fn taken(self) -> Option<(Pointer, Late, usize)> {
        let state = self.k.state();
        let pointer = self.pointer_in(&state)?;
        let Pointer { base: Base::Reg(base), form: FormId::ZERO, .. } = pointer else { return None };
        let frame = state.frame.as_ref()?;
        let &(_, place) = frame.taken.iter().find(|(address, _)| *address == base)?;
        Some((pointer, frame.record.as_ref()?.late?, place))
    }
}

impl<'k> K<'k> {
    /// Whether what the body asks for is in the record of a call.
    pub(super) fn has_record(self) -> bool {
        self.state().record().is_some()
    }

    /// A table of the called body.
    pub(super) fn asked_table<T: Data>(self, words: Vec<u64>, loc: Loc) -> Ptr<'k, Global, T> {
        let mut state = self.state();
        let index = state.asked(Asked::Table(words), Type::U32, loc).unwrap_or(POISON);
        let all = state.record().map_or(super::pointer::INVALID, |record| record.words);
        drop(state);
        let all: Ptr<'k, Global, u64> = Ptr::with_id(self, all);
        all.at_loc(Reg::<u32>::new(self, index), loc).cast().nc()
    }
}
