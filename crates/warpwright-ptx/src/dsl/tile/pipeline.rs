//! Pipelines: copies to shared memory that run ahead of what is computed from it.
//!
//! ```text
//!   stage 0   load 0 │ compute 0 │  load 2   │ compute 2 │           stages = 2
//!   stage 1          │  load 1   │ compute 1 │  load 3   │
//! ```
//!
//! With `n` stages, `n - 1` tiles are under way while one is computed. A turn of the loop waits for its
//! tile, meets the block at one barrier (which also says that the stage of the turn before is free), begins
//! the next copies and computes. What completes a stage, groups of asynchronous copies or, before
//! `sm_80`, the barrier after plain copies, is known here alone.

use super::super::control::Carry;
use super::super::reg::{IntoReg, Reg};
use super::super::state::Loc;
use super::super::types::*;
use super::{K, SharedTile};
use crate::diag::Code;
use std::panic::Location;

/// Stages of shared memory that are filled ahead: see [`K::pipeline`].
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'k> {
    k: K<'k>,
    stages: u32,
}

/// A stage of a pipeline, in a turn of its loop.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'k> {
    slot: Reg<'k, u32>,
}

/// A shared tile for each stage of a pipeline.
pub struct StagedTile<'k, T> {
    first: SharedTile<'k, T>,
}

impl<T> Clone for StagedTile<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StagedTile<'_, T> {}

impl<T: Data> std::fmt::Debug for StagedTile<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StagedTile({:?})", self.first)
    }
}

impl<'k> K<'k> {
    /// A pipeline of 1 to 8 stages: 1 loads and computes in turn, 2 is double buffering.
    #[track_caller]
    pub fn pipeline(self, stages: u32) -> Pipeline<'k> {
        if !(1..=8).contains(&stages) {
            let message = format!("a pipeline of {stages} stages; 1 to 8 are possible");
            self.state().mistake(Code::ImmediateRange, Location::caller(), message);
        }
        Pipeline { k: self, stages: stages.clamp(1, 8) }
    }
}

impl<'k> Pipeline<'k> {
    /// A shared tile of `rows` by `columns` for every stage.
    #[track_caller]
    pub fn tile<T: Data>(self, rows: u32, columns: u32) -> StagedTile<'k, T> {
        let first = self.k.shared_tiles(self.stages, rows, columns, Location::caller());
        StagedTile { first: SharedTile { pipelined: true, ..first } }
    }

    /// Goes through tiles `0, 1, … < tiles`, the same number for all threads of the block: `load`
    /// begins the copies of a tile into its stage ([`SharedTile::load`]), `compute` takes the state
    /// and returns the next. Yields the last. Afterwards the stages are free.
    #[track_caller]
    pub fn run<C: Carry<'k>>(
        self,
        tiles: impl IntoReg<'k, u32>,
        init: C,
        load: impl Fn(Stage<'k>, Reg<'k, u32>),
        compute: impl Fn(Stage<'k>, Reg<'k, u32>, C) -> C,
    ) -> C {
        let (k, loc) = (self.k, Location::caller());
        let tiles = tiles.into_reg(k, loc);
        let ahead = self.stages - 1;
        for tile in 0..ahead {
            self.begin(tiles, k.u32(tile), &load, loc);
        }
        let last = k.fold(k.upto(tiles), init, |tile, state| {
            let stage = k.on_line(loc, || self.stage(tile));
            if ahead == 0 {
                k.on_line(loc, || k.sync());
                load(stage, tile);
                k.on_line(loc, || self.commit());
            }
            k.on_line(loc, || {
                self.wait();
                k.sync();
            });
            if ahead > 0 {
                let next = k.on_line(loc, || tile + ahead);
                self.begin(tiles, next, &load, loc);
            }
            compute(stage, tile, state)
        });
        k.sync();
        last
    }

    /// Begins the copies of a tile, if there is such a tile. Every turn closes a group, so that their
    /// number says which tiles are there.
    fn begin(
        self,
        tiles: Reg<'k, u32>,
        tile: Reg<'k, u32>,
        load: &impl Fn(Stage<'k>, Reg<'k, u32>),
        loc: Loc,
    ) {
        let k = self.k;
        let stage = k.on_line(loc, || self.stage(tile));
        let known = {
            let state = k.state();
            state.int_of(tiles.id).zip(state.int_of(tile.id)).map(|(tiles, tile)| tile < tiles)
        };
        match known {
            Some(true) => load(stage, tile),
            Some(false) => {}
            None => {
                let there = k.on_line(loc, || tile.lt(tiles));
                k.branch(there, || load(stage, tile), None::<fn()>, loc);
            }
        }
        k.on_line(loc, || self.commit());
    }

    fn stage(self, tile: Reg<'k, u32>) -> Stage<'k> {
        let stages = self.stages;
        let slot = if stages.is_power_of_two() { tile & (stages - 1) } else { tile % stages };
        Stage { slot }
    }

    fn asynchronous(self) -> bool {
        self.k.target().sm >= 80
    }

    fn commit(self) {
        if self.asynchronous() {
            self.k.cp_async_commit();
        }
    }

    /// Waits for the copies of the turn's tile.
    fn wait(self) {
        if self.asynchronous() {
            self.k.cp_async_wait(self.stages.saturating_sub(2));
        }
    }
}

impl<'k, T: Data> StagedTile<'k, T> {
    /// The tile of a stage.
    #[track_caller]
    pub fn at(self, stage: Stage<'k>) -> SharedTile<'k, T> {
        let tile = self.first;
        let bytes = tile.rows * tile.layout.row_bytes;
        SharedTile { base: tile.base.at(stage.slot * bytes), ..tile }
    }
}
