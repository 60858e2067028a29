//! Pipelines: copies to shared memory that run ahead of the computation.
//!
//! ```text
//!   stage 0   load 0 │ compute 0 │  load 2   │ compute 2 │           stages = 2
//!   stage 1          │  load 1   │ compute 1 │  load 3   │
//! ```
//!
//! With `n` stages, `n - 1` tiles are in flight while one is computed. Each iteration of the loop waits for its tile,
//! meets the block at one barrier (which also frees the previous iteration's stage), starts the next copies and
//! computes. Only this module knows how a stage is completed: by groups of asynchronous copies or, before `sm_80`, by
//! the barrier after plain copies.

use super::super::Ptr;
use super::super::carry::Carry;
use super::super::handle::handle;
use super::super::pointer::INVALID;
use super::super::reg::{IntoReg, Reg};
use super::super::state::Loc;
use super::super::types::*;
use super::{Filling, K, Ready, SharedTile, TileAccess};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;

/// The feed of stages that are copies alone.
type Feed<'k> = fn(Reg<'k, u32>) -> fn(Stage<'k, Filling>);

/// Stages of shared memory that are filled ahead: see [`K::pipeline`].
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'k> {
    k: K<'k>,
    number: u32,
    stages: u32,
}

/// A stage of a pipeline, inside the closure that receives it: [`Filling`] where its copies begin, [`Ready`] where
/// they are complete.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'k, X> {
    slot: Reg<'k, u32>,
    turn: u32,
    access: PhantomData<X>,
}

/// A shared tile for each stage of a pipeline: a handle, free to copy.
pub struct StagedTile<'k, T> {
    pipeline: u32,
    first: SharedTile<'k, T>,
}

handle!(StagedTile<T>);

impl<T: Data> std::fmt::Debug for StagedTile<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StagedTile({:?})", self.first)
    }
}

impl<'k> K<'k> {
    /// A pipeline of 1 to 8 stages: 1 loads and computes in turn, 2 is double buffering. Any other number is a
    /// mistake (`E0015`).
    #[track_caller]
    pub fn pipeline(self, stages: u32) -> Pipeline<'k> {
        if !(1..=8).contains(&stages) {
            let message = format!("a pipeline of {stages} stages; 1 to 8 are possible");
            self.state().mistake(Code::ImmediateRange, Location::caller(), message);
        }
        let number = self.state().order.pipeline();
        Pipeline { k: self, number, stages: stages.clamp(1, 8) }
    }
}

impl<'k> Pipeline<'k> {
    /// A shared tile of `rows` by `columns` for every stage: see [`K::shared_tile`].
    #[track_caller]
    pub fn tile<T: Data>(self, rows: u32, columns: u32) -> StagedTile<'k, T> {
        let first = self.k.shared_tiles(self.stages, rows, columns, Location::caller());
        StagedTile { pipeline: self.number, first }
    }

    /// Processes tiles `0, 1, … < tiles`, the same number for all threads of the block. `load` starts the copies of a
    /// tile into its stage ([`SharedTile::load`]); `compute` takes the state and returns the next. Returns the last
    /// state. Afterwards the stages are free.
    ///
    /// All threads of the block call it together. While tile `i` is computed, the copies of tiles up to `i + stages -
    /// 1` are in flight, each tile in a group of `cp.async`. An iteration costs one barrier, or two if there is one
    /// stage or if tiles are copied through registers (before `sm_80`, or in units of less than 4 bytes). A stage
    /// must not leave its closure, neither by Rust's means nor by the device's. This and the following are mistakes
    /// (`E0033`): a tile that `compute` reads and `load` does not fill, a tile that is filled twice, and a pipeline
    /// that runs inside itself.
    #[track_caller]
    pub fn run<C: Carry<'k>>(
        self,
        tiles: impl IntoReg<'k, u32>,
        init: C,
        load: impl Fn(Stage<'k, Filling>, Reg<'k, u32>),
        compute: impl Fn(Stage<'k, Ready>, Reg<'k, u32>, C) -> C,
    ) -> C {
        let (k, loc) = (self.k, Location::caller());
        if self.is_running(loc) {
            return init;
        }
        let tiles = tiles.into_reg(k, loc);
        self.run_ahead(tiles, &load, loc);
        let last = self.turns([k.u32(0), tiles, tiles], init, &load, None::<&Feed<'k>>, &compute, loc);
        k.sync();
        last
    }

    /// [`run`](Self::run) as two loops with separate closures: `first` are those for tiles `0, 1, … < split`, `rest`
    /// those for the others up to `tiles`. So work that only the first tiles need, such as masks and bounds, costs
    /// nothing afterwards. `split` is at most `tiles`, and both are the same for all threads of the block.
    ///
    /// Copies run ahead across the split: the `load` of `first` also starts the copies of the `stages - 1` tiles
    /// after it.
    #[track_caller]
    pub fn run_split<C: Carry<'k>>(
        self,
        split: impl IntoReg<'k, u32>,
        tiles: impl IntoReg<'k, u32>,
        init: C,
        first: (impl Fn(Stage<'k, Filling>, Reg<'k, u32>), impl Fn(Stage<'k, Ready>, Reg<'k, u32>, C) -> C),
        rest: (impl Fn(Stage<'k, Filling>, Reg<'k, u32>), impl Fn(Stage<'k, Ready>, Reg<'k, u32>, C) -> C),
    ) -> C {
        let (k, loc) = (self.k, Location::caller());
        if self.is_running(loc) {
            return init;
        }
        let (split, tiles) = (split.into_reg(k, loc), tiles.into_reg(k, loc));
        self.run_ahead(tiles, &first.0, loc);
        let state = self.turns([k.u32(0), split, tiles], init, &first.0, None::<&Feed<'k>>, &first.1, loc);
        let last = self.turns([split, tiles, tiles], state, &rest.0, None::<&Feed<'k>>, &rest.1, loc);
        k.sync();
        last
    }

    /// Like [`run`](Self::run), for tiles of which a part is computed from registers. For each tile, `feed` loads the
    /// data of that part and returns a closure that stores it ([`SharedTile::st_vec`]). The loads of a tile are in
    /// flight while the previous tile is computed.
    ///
    /// ```text
    ///   turn i    wait, barrier │ copies of i + stages - 1 begin │ feed i + 1 │ compute i │ store i + 1
    /// ```
    ///
    /// `feed` is never called with a tile that does not exist: in the last iteration it receives the last tile again,
    /// and the result is not read.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// use warpwright_ptx::ir::Arch;
    ///
    /// // One warp: y = x · wᵀ, 16 x 8, k = 64; w is bytes, which are halved.
    /// let built = build("fed", &LaunchRule::new(32), Arch::sm(80), |k| {
    ///     let x = k.ptr::<F16>("x").matrix(16, 64);
    ///     let (w, y) = (k.ptr::<i8>("w"), k.ptr_mut::<f32>("y").matrix(16, 8));
    ///     let pipeline = k.pipeline(2);
    ///     let (x_tiles, w_tiles) = (pipeline.tile::<F16>(16, 16), pipeline.tile::<F16>(8, 16));
    ///     let (row, column) = (k.lane() / 4, (k.lane() % 4) * 4);
    ///     let sums = pipeline.run_fed(
    ///         4,
    ///         k.accumulators(16, 8),
    ///         |stage, tile| x_tiles.at(stage).load(x, 0, tile * 16),
    ///         |tile| {
    ///             let bytes: [_; 4] = w.at(row * 64).at(tile * 16).ld_vec(column);
    ///             move |stage| w_tiles.at(stage).st_vec(row, column, bytes.map(|w| (w.f32() * 0.5).to()))
    ///         },
    ///         |stage, _, sums| x_tiles.at(stage).load_a().mma(w_tiles.at(stage).load_bt(), sums),
    ///     );
    ///     sums.store(y, 0, 0);
    /// })?;
    /// # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
    /// ```
    #[track_caller]
    pub fn run_fed<C: Carry<'k>, G: Fn(Stage<'k, Filling>)>(
        self,
        tiles: impl IntoReg<'k, u32>,
        init: C,
        load: impl Fn(Stage<'k, Filling>, Reg<'k, u32>),
        feed: impl Fn(Reg<'k, u32>) -> G,
        compute: impl Fn(Stage<'k, Ready>, Reg<'k, u32>, C) -> C,
    ) -> C {
        let (k, loc) = (self.k, Location::caller());
        if self.is_running(loc) {
            return init;
        }
        let tiles = tiles.into_reg(k, loc);
        self.run_ahead(tiles, &load, loc);
        if self.stages > 1 {
            let first = k.u32(0);
            self.where_there_is(first, tiles, loc, || {
                let store = feed(first);
                self.turn(first, store);
            });
        }
        let last = self.turns([k.u32(0), tiles, tiles], init, &load, Some(&feed), &compute, loc);
        k.sync();
        last
    }

    /// Whether the pipeline is run inside of itself, which is a mistake.
    fn is_running(self, loc: Loc) -> bool {
        let mut state = self.k.state();
        let runs = state.order.runs(self.number);
        if runs {
            state.mistake(Code::TileOrder, loc, "a pipeline is run inside of itself: its stages are in use");
        }
        runs
    }

    /// Begins the copies that are under way before the first turn.
    fn run_ahead(self, tiles: Reg<'k, u32>, load: &impl Fn(Stage<'k, Filling>, Reg<'k, u32>), loc: Loc) {
        for tile in 0..self.stages - 1 {
            self.begin(tiles, self.k.u32(tile), load, loc);
        }
    }

    /// The turns of tiles `from` to `to`, of `tiles` in all.
    fn turns<C: Carry<'k>, G: Fn(Stage<'k, Filling>)>(
        self,
        [from, to, tiles]: [Reg<'k, u32>; 3],
        init: C,
        load: &impl Fn(Stage<'k, Filling>, Reg<'k, u32>),
        feed: Option<&impl Fn(Reg<'k, u32>) -> G>,
        compute: &impl Fn(Stage<'k, Ready>, Reg<'k, u32>, C) -> C,
        loc: Loc,
    ) -> C {
        let (k, ahead) = (self.k, self.stages - 1);
        let range = k.on_line(loc, || k.range(from..to));
        let turn = |tile: Reg<'k, u32>, state| {
            let slot = k.on_line(loc, || self.slot(tile));
            if ahead == 0 {
                k.on_line(loc, || k.sync());
                self.turn(slot, |stage| {
                    load(stage, tile);
                    if let Some(feed) = feed {
                        feed(tile)(stage);
                    }
                });
                k.on_line(loc, || self.commit());
            }
            k.on_line(loc, || {
                self.wait();
                k.sync();
            });
            if ahead > 0 {
                let next = k.on_line(loc, || tile + ahead);
                self.begin(tiles, next, load, loc);
            }
            let store = feed.filter(|_| ahead > 0).map(|feed| {
                let next = k.on_line(loc, || tile + 1);
                let slot = k.on_line(loc, || self.slot(next));
                (feed(k.on_line(loc, || next.min(tiles - 1))), slot)
            });
            let state = self.turn(slot, |stage| compute(stage, tile, state));
            if let Some((store, slot)) = store {
                self.turn(slot, store);
            }
            state
        };
        k.counted("fold", range, init, turn, loc)
    }

    /// Runs the closure where there is such a tile.
    fn where_there_is(self, tile: Reg<'k, u32>, tiles: Reg<'k, u32>, loc: Loc, then: impl Fn()) {
        let k = self.k;
        let known = {
            let state = k.state();
            state.int_of(tiles.id).zip(state.int_of(tile.id)).map(|(tiles, tile)| tile < tiles)
        };
        match known {
            Some(true) => then(),
            Some(false) => {}
            None => {
                let there = k.on_line(loc, || tile.lt(tiles));
                k.branch(there, then, loc);
            }
        }
    }

    /// Starts the copies of a tile, if the tile exists. Every iteration closes a group, so the number of groups
    /// determines which tiles are complete.
    fn begin(
        self,
        tiles: Reg<'k, u32>,
        tile: Reg<'k, u32>,
        load: &impl Fn(Stage<'k, Filling>, Reg<'k, u32>),
        loc: Loc,
    ) {
        let k = self.k;
        let slot = k.on_line(loc, || self.slot(tile));
        self.where_there_is(tile, tiles, loc, || self.turn(slot, |stage| load(stage, tile)));
        k.on_line(loc, || self.commit());
    }

    /// The stage of a tile.
    fn slot(self, tile: Reg<'k, u32>) -> Reg<'k, u32> {
        let stages = self.stages;
        if stages.is_power_of_two() { tile & (stages - 1) } else { tile % stages }
    }

    /// Hands a stage to the closure, and takes it back.
    fn turn<X, V>(self, slot: Reg<'k, u32>, closure: impl FnOnce(Stage<'k, X>) -> V) -> V {
        let turn = self.k.state().order.begin(self.number);
        let value = closure(Stage { slot, turn, access: PhantomData });
        self.k.state().order.end(turn);
        value
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
    /// The tile of a stage of its pipeline, valid while the stage's closure runs.
    #[track_caller]
    pub fn at<X: TileAccess>(self, stage: Stage<'k, X>) -> SharedTile<'k, T, X> {
        let SharedTile { k, tile, base, layout, row, column, rows, columns, .. } = self.first;
        let misfit = k.state().order.misfit(self.pipeline, stage.turn);
        let base = if let Some(message) = misfit {
            k.state().mistake(Code::TileOrder, Location::caller(), message);
            Ptr::with_id(k, INVALID)
        } else {
            base.at(stage.slot * (rows * layout.row_bytes))
        };
        let tile = if misfit.is_some() { INVALID } else { tile };
        let (turn, kind) = (Some(stage.turn), PhantomData);
        SharedTile { k, tile, base, layout, row, column, rows, columns, turn, kind }
    }
}
