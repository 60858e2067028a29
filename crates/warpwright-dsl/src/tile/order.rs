//! Checks the order in which shared tiles are filled and read, as far as the build can see it.
//!
//! Instructions are recorded in the order in which a thread executes them, apart from repetition by loops and
//! omission by branches. If a tile is filled, then read, and nothing between the two makes threads wait for one
//! another, the kernel is wrong on every path that does both: that is a mistake at the line of the second. Errors
//! that need the back edge of a loop or a particular branch are found by the race check when the kernel runs.

use super::super::Ptr;
use super::super::pointer::INVALID;
use super::super::state::{BlockId, Loc, POISON, State};
use super::SharedTile;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Reg, Semantics};
use warpwright_ptx::op::Op;

/// What is known of the order so far.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Stages that pipelines have handed out: the pipeline, and whether their closure is running.
    turns: Vec<(u32, bool)>,
    /// Pipelines, and which tiles of theirs have been filled.
    pipelines: u32,
    filled: Vec<u32>,
    /// Since threads have last waited for one another.
    touches: Vec<Touch>,
}

/// A window of a tile was filled, or read by a warp.
#[derive(Clone, Copy, Debug)]
struct Touch {
    window: Window,
    fills: bool,
    block: BlockId,
    loc: Loc,
}

/// A part of a shared tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The tile: the pointer to its beginning.
    tile: u32,
    turn: Option<u32>,
    /// Row and column.
    start: [Reg; 2],
    /// Rows and columns.
    extent: [u32; 2],
    /// Not all of it: elements somewhere in it.
    somewhere: bool,
}

impl Order {
    pub(super) fn pipeline(&mut self) -> u32 {
        self.pipelines += 1;
        self.pipelines - 1
    }

    /// A stage for a closure that is about to be run.
    pub(super) fn begin(&mut self, pipeline: u32) -> u32 {
        self.turns.push((pipeline, true));
        self.turns.len() as u32 - 1
    }

    pub(super) fn end(&mut self, turn: u32) {
        self.turns[turn as usize].1 = false;
    }

    /// Whether a closure of the pipeline is being run.
    pub(super) fn runs(&self, pipeline: u32) -> bool {
        self.turns.contains(&(pipeline, true))
    }

    /// What is wrong with a tile of a pipeline for a stage.
    pub(super) fn misfit(&self, pipeline: u32, turn: u32) -> Option<&'static str> {
        match self.turns[turn as usize] {
            (of, _) if of != pipeline => Some("a tile of one pipeline for the stage of another"),
            (_, false) => Some("a stage is used outside of the closure that it was handed to"),
            _ => None,
        }
    }

    /// An instruction with effects was appended.
    pub(crate) fn see(&mut self, op: &Op) {
        let alone = match op {
            Op::Ld(ld) => matches!(ld.semantics, None | Some(Semantics::Weak)),
            Op::St(_) | Op::Mov(_) | Op::Ldmatrix(_) | Op::Shfl(_) | Op::Vote(_) => true,
            Op::CpAsync(_) | Op::CpAsyncCommitGroup(_) | Op::CpAsyncWaitGroup(_) | Op::CpAsyncWaitAll(_) => {
                true
            }
            _ => false,
        };
        if !alone {
            self.touches.clear();
        }
    }
}

impl State {
    /// Whether two windows certainly have an element in common, whatever the registers hold.
    fn overlap(&mut self, a: &Window, b: &Window) -> bool {
        let known = |window: &Window| window.tile != INVALID && !window.start.contains(&POISON);
        (a.tile, a.turn) == (b.tile, b.turn)
            && known(a)
            && known(b)
            && (0..2).all(|axis| {
                let Some(distance) = self.distance(a.start[axis], b.start[axis]) else { return false };
                let [m, n] = [a, b].map(|window| i64::from(window.extent[axis]));
                match (a.somewhere, b.somewhere) {
                    (false, false) => -n < distance && distance < m,
                    (false, true) => 0 <= distance && distance + n <= m,
                    (true, false) => distance <= 0 && m <= distance + n,
                    (true, true) => false,
                }
            })
    }

    /// `b - a`, where that is a number.
    fn distance(&mut self, a: Reg, b: Reg) -> Option<i64> {
        if a == b {
            return Some(0);
        }
        let [a, b] = [a, b].map(|reg| self.form_of(reg));
        let difference = self.forms.add(b, a, -1)?;
        self.forms.terms(difference).is_empty().then(|| self.forms.constant(difference))
    }

    /// The last touch of an overlapping window that certainly comes before, without a wait between.
    fn touched(&mut self, window: &Window, fills: bool) -> Option<Loc> {
        let touches = std::mem::take(&mut self.order.touches);
        let before = |touch: &&Touch| {
            touch.fills == fills && self.block(touch.block).open && self.overlap(&touch.window, window)
        };
        let found = touches.iter().rev().find(before).map(|touch| touch.loc);
        self.order.touches = touches;
        found
    }

    fn touch(&mut self, window: Window, fills: bool, loc: Loc) {
        let (block, loc) = (self.current, self.line.unwrap_or(loc));
        self.order.touches.push(Touch { window, fills, block, loc });
    }
}

impl<'k, T, X> SharedTile<'k, T, X> {
    fn window(self, somewhere: bool) -> Window {
        let SharedTile { tile, turn, row, column, rows, columns, .. } = self;
        Window { tile, turn, start: [row.id, column.id], extent: [rows, columns], somewhere }
    }

    /// The tile, if its stage has not been given back; a mistake otherwise.
    fn in_its_turn(self, loc: Loc) -> Self {
        let mut state = self.k.state();
        if self.turn.is_none_or(|turn| state.order.turns[turn as usize].1) {
            return self;
        }
        let message = "a tile is used outside of the closure that its stage was handed to";
        state.mistake(Code::TileOrder, loc, message);
        SharedTile { tile: INVALID, base: Ptr::with_id(self.k, INVALID), turn: None, ..self }
    }

    /// The block fills the window, all of it.
    pub(super) fn fills(self, loc: Loc) -> Self {
        let tile = self.in_its_turn(loc);
        let (mut state, window) = (self.k.state(), tile.window(false));
        let several_warps = state.threads.is_none_or(|dims| dims.iter().product::<u32>() > 32);
        if let Some(first) = state.touched(&window, true) {
            let message = format!(
                "the tile is filled twice, here and in line {}, and nothing has waited between: one of the \
                 two is lost",
                first.line()
            );
            state.mistake(Code::TileOrder, loc, message);
        } else if let Some(first) = state.touched(&window, false).filter(|_| several_warps) {
            let message = format!(
                "the tile is filled while other warps may still read it, in line {}: `k.sync()` belongs \
                 between",
                first.line()
            );
            state.mistake(Code::TileOrder, loc, message);
        }
        state.order.filled.push(window.tile);
        state.touch(window, true, loc);
        tile
    }

    /// Threads store into the window.
    pub(super) fn stores(self, loc: Loc) -> Self {
        let tile = self.in_its_turn(loc);
        self.k.state().order.filled.push(tile.tile);
        tile
    }

    /// Threads read the window, or elements somewhere in it: others have filled it.
    pub(super) fn reads(self, somewhere: bool, loc: Loc) -> Self {
        let tile = self.in_its_turn(loc);
        let (mut state, window) = (self.k.state(), tile.window(somewhere));
        let alone = state.threads.is_some_and(|dims| dims.iter().product::<u32>() == 1);
        if window.turn.is_some() && !state.order.filled.contains(&window.tile) {
            let message = "a tile of a pipeline is read, and the pipeline's `load` does not fill it";
            state.mistake(Code::TileOrder, loc, message);
        } else if let Some(first) = state.touched(&window, true).filter(|_| !alone) {
            let message = format!(
                "the tile is read before all of the copies of line {} are there: `k.sync()` belongs between",
                first.line()
            );
            state.mistake(Code::TileOrder, loc, message);
        }
        state.touch(window, false, loc);
        tile
    }
}
