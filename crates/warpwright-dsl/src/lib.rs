//! The typed kernel DSL: kernels as Rust functions over registers.
//!
//! ```
//! use warpwright_dsl::*;
//! use warpwright_ptx::ir::Arch;
//!
//! // y = a · x + y, one element per thread
//! let built = build("saxpy", &LaunchRule::new(256), Arch::sm(80), |k| {
//!     let (n, a) = (k.scalar::<u32>("n"), k.scalar::<f32>("a"));
//!     let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
//!     let i = k.global_tid();
//!     k.when(i.lt(n), || y.st(i, x.ld(i).mul_add(a, y.ld(i))));
//! })?;
//! println!("{}", warpwright_ptx::print(&built.module));
//! # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
//! ```
//!
//! A register is a [`Copy`] handle ([`Reg`]); operators on it append instructions. A Rust `for` unrolls; [`K::each`]
//! and [`K::fold`] loop on the device, and [`K::loop_`] loops until it breaks. Device closures are [`Fn`]: they
//! return their results and never assign them. State that goes around a loop, comes out of a branch ([`K::if_`]) or
//! moves between threads ([`K::block_reduce_by`]) is one register or a struct of registers ([`Carry`]).
//!
//! ```compile_fail,E0594
//! use warpwright_dsl::*;
//! fn sum<'k>(k: K<'k>, x: Ptr<'k, Global, f32>) -> Reg<'k, f32> {
//!     let mut sum = k.f32(0.0);
//!     k.each(k.range(0..8), |i| sum = sum + x.ld(i)); // a fold, not an assignment
//!     sum
//! }
//! ```
//!
//! Matrices on the tensor cores are [`Tile`]s. You load them from [`SharedTile`]s, which a [`Pipeline`] fills.
//!
//! ```text
//! closures ──► values, instructions, blocks (state)      operators, pointers, control, tiles
//!                  │
//!                  ├─ addresses: affine indices become pointers, hoisted and counted up (address)
//!                  ├─ liveness: what nothing needs is dropped (live)
//!                  └─ registers and labels named, loops written (lower) ──► ir::Module
//! ```
//!
//! The DSL knows PTX and the target, so it picks the instructions. It optimises addresses only; `ptxas` does the
//! rest.
#![deny(unsafe_code)]

extern crate self as warpwright_dsl;

mod activation;
mod address;
pub mod any;
mod args;
mod array;
mod atomic;
mod bounded;
mod branch;
mod call;
mod carry;
mod checked;
mod choice;
mod codebook;
mod collective;
mod config;
mod control;
mod convert;
mod dim;
mod divide;
mod emit;
mod exchange;
mod extent;
mod form;
mod group;
mod guard;
mod handle;
mod kernel;
mod leave;
mod live;
mod lower;
mod math;
mod operator;
mod pointer;
mod reg;
mod renaming;

mod row_wise;
mod special;
mod spread;
mod staged;
mod state;
mod strips;
mod sync;
mod team;
mod tensor;
mod thin;
mod tile;
mod trig;
mod typed;
mod types;

pub use args::{AnyPtr, Arguments, Body, Mode, Sink, Source, Unbound};
pub use atomic::{AtomicAdd, AtomicBits, AtomicMinMax};
pub use bounded::Bounded;
pub use branch::If;
pub use call::{Asked, Call, CallDesc};
pub use carry::Carry;
pub use checked::build_checked;
pub use collective::Reduce;
pub use config::{
    Choice, Config, Configure, Domain, Field, FieldValue, Key, KeyPart, Texts, columns, joined,
};
pub use control::{Range, Var};
pub use convert::{ConvertFrom, ToF32};
pub use dim::Dim;
pub use divide::Divide;
pub use exchange::{Kept, Published};
pub use extent::Extent;
pub use group::Scan;
pub use guard::Guard;
pub use kernel::{ArgDesc, Block, BuildError, Built, LaunchRule, Role, build};
pub use leave::Break;
pub use math::{Bytes, Fused, Rounded, Wide};
pub use pointer::{Access, Index, Ptr};
pub use reg::{IntoReg, Reg};

pub use row_wise::{RowVector, RowWise, SpreadRows, SpreadTile};
pub use spread::{List, Spread};
pub use staged::Ahead;
pub use strips::{StripElement, StripRows, Strips};
pub use team::Team;
pub use tensor::{TensorMap, TileBarrier};
pub use thin::{LaneProducts, TensorProducts, ThinProducts, ThinRows, ThinShape, ThinStep};
pub use tile::*;
pub use typed::Kernel;
pub use types::*;
pub use warpwright_macros::{Args, Carry, Choice, Config, KeyPart};
pub use warpwright_ptx::ir::{Arch, Scope};

/// Items that derived code uses.
#[doc(hidden)]
pub mod derive {
    pub use warpwright_ptx::ir::Reg;
}

use state::State;
use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::op::Op;

/// The kernel under construction: a handle, free to copy.
#[derive(Clone, Copy)]
pub struct K<'k> {
    state: &'k RefCell<State>,
    /// Invariant: a brand.
    brand: PhantomData<fn(&'k ()) -> &'k ()>,
}

impl std::fmt::Debug for K<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("K")
    }
}

impl<'k> K<'k> {
    fn new(state: &'k RefCell<State>) -> Self {
        K { state, brand: PhantomData }
    }

    fn state(self) -> RefMut<'k, State> {
        self.state.borrow_mut()
    }

    /// The architecture that the kernel is built for.
    pub fn target(self) -> Arch {
        self.state.borrow().target
    }

    /// Refuses the kernel: [`build`] returns the message with the caller's line.
    #[track_caller]
    pub fn refuse(self, message: impl Into<String>) {
        self.state().mistake(Code::Parameter, Location::caller(), message);
    }

    /// Appends any instruction, for what the DSL does not offer. Its source registers come from [`Reg::ir`], its
    /// destinations from [`fresh`](Self::fresh) registers and its addresses from [`Ptr::address`]; each of these is
    /// for one instruction. A kernel with [checked pointers](build_checked) refuses it.
    #[track_caller]
    pub fn op(self, op: impl Into<Op>) {
        self.op_if(None, op);
    }

    /// Appends any instruction, executed where the predicate holds: see [`Guard`].
    #[track_caller]
    pub fn op_if(self, condition: impl Guard<'k>, op: impl Into<Op>) {
        let loc = Location::caller();
        let op = op.into();
        let mut state = self.state();
        let message = if state.bounds.is_some() {
            "an instruction of the kernel's own, which checked pointers do not know"
        } else if matches!(op, Op::Bra(_) | Op::BrxIdx(_) | Op::Call(_)) {
            "a branch or a call of the kernel's own: the DSL has `when`, `switch`, `loop_` and the like"
        } else if !state.has_all(&op) {
            "an instruction with registers that the kernel does not have"
        } else {
            drop(state);
            return self.append_if(condition, op);
        };
        state.mistake(Code::Parameter, loc, message);
    }

    /// Appends an instruction of the DSL's own.
    #[track_caller]
    fn append(self, op: impl Into<Op>) {
        self.append_if(None, op);
    }

    #[track_caller]
    fn append_if(self, condition: impl Guard<'k>, op: impl Into<Op>) {
        let loc = Location::caller();
        let mut state = self.state();
        if let Some(guard) = state.guard(condition.predicate(), loc) {
            state.effect(op, guard, loc);
        }
    }

    /// A register that [`op`](Self::op) will write.
    pub fn fresh<T: Element>(self) -> Reg<'k, T> {
        let id = self.state().written(T::TYPE);
        Reg::new(self, id)
    }
}

/// The examples in Rust of the page of diagnostics.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/diagnostics.md")]
struct DiagnosticsPage;

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
