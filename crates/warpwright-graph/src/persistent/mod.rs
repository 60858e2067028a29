//! A plan as the work of one persistent kernel: the schedule of the persistent decoder.
//!
//! ```text
//!  Plan ──► parts ──► form ──► Schedule ──► assign ──► Assigned ──► encode ──► words for the device
//!           launches   phases,   ops,        blocks,     │
//!           as         stages    instances   items       └──► check: does it do what the plan does?
//!           instances
//!
//!            phase 0                 phase 1                      phase 2
//!            stage 0    stage 1     │stage 0  stage 1            │stage 0
//!  block 0   embedding  q  q  k  k  │rope     attention attention│o  o  o
//!  block 1   embedding  q  q  k  v  │rope     attention attention│o  o  o
//!  block 2              q  q  k  v  │         attention          │o  o
//!                       ▲           ▲         ▲                  ▲
//!                       waits for   barrier   waits for          barrier
//!                       embedding             rope
//! ```
//!
//! An *instance* is a launch of the plan, or an independent part of one; its tiles are the blocks of its grid. An
//! *item* is a run of tiles of an instance that one block of the decoder computes. Phases consist of *stages*, and
//! stages of items. Between phases all blocks meet at a barrier. Within a phase, items of a later stage wait until all
//! items of the previous stage have been counted; blocks without such items do not wait.
//!
//! [`check`] verifies these invariants of any schedule, however it was made: an instance matches the plan; each of its
//! tiles is in one item; instances that share memory access it in the order of the plan if one of them writes it; waits are
//! for earlier stages of the phase, and every block has its items in the order of stages, so that some item can always
//! run.
//!
//! The module does not depend on devices, on addresses, or on how the kernel waits.

mod access;
mod assign;
mod check;
mod cost;
mod encode;
mod error;
mod form;
mod parts;
pub mod render;
mod schedule;

pub use assign::{Assigned, Item, Wait};
pub use check::check;
pub use cost::Timeline;
pub use encode::{Buffer, Encoded};
pub use error::{ScheduleError, ScheduleFault};
pub use schedule::{Appended, Instance, Operand, Origin, Phase, Schedule, ScheduleOptions, Stage};
