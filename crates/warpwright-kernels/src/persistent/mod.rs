//! A kernel that stays: all the launches of many steps of decoding in one.
//!
//! [`PersistentDecoder`] does not know what it computes. Its work is a *schedule* in device memory: for each token the
//! same *phases*, in each phase *items*, each of them tiles of one instance of an [`Op`], a kernel of the library whose
//! body is called.
//!
//! ```text
//!   token 0                                      token 1
//!   phase 0        phase 1       …   last phase  phase 0
//!
//!   block 0 ── items ──┐ ── items ──┐ … ─ items ─┐ ── items ──┐
//!   block 1 ── items ──┤ ── items ──┤ … ─ items ─┤ ── items ──┤ …    until `tokens`, or `finished`
//!   block 2 ───────────┘ ── items ──┘ … ─────────┘ ── items ──┘
//!                    barrier      barrier      barrier
//!
//!   item = op + record of operands + tiles          op 0   QuantGemv    items → teams of 1, 2, 4 or 8 warps
//!          (waits for a counter)                    op 1   RmsNorm
//!          (counts a counter up)                    op 2   …
//! ```
//!
//! A block runs one item at a time. The *teams* of its warps, each as large as the op wants it, walk the item's tiles;
//! then the block waits for itself, since the next item uses the same shared memory.
//!
//! Between phases stands the grid's barrier. Within a phase a later *stage* may need an earlier one: its items wait until
//! all items of the earlier stage have counted a counter up. Each list and each queue has its items in the order of the
//! stages, so that what is waited for has been begun by somebody who does not wait for it in turn.
//!
//! No wait is for ever: one that has run out of its polls writes down what it waited for ([`Fault`](format::Fault)), and
//! raises a flag at which all others give up. A block that gives up arrives at no further barrier, so that nobody gets
//! beyond the next one, and nothing that depends on its work is done.
//!
//! | file | knows |
//! | --- | --- |
//! | `format` | the words of the schedule, of counters and faults |
//! | `op` | how the operands of an item are read and its body is called |
//! | `wait` | polls, budgets, faults |
//! | `barrier` | how blocks wait for one another |
//! | `walk` | tokens, phases, items |
//! | `kernel` | arguments, the launch rule, names |
//! | `entry` | what the catalogue says |

mod barrier;
pub(crate) mod entry;
pub mod format;
mod kernel;
mod op;
mod wait;
mod walk;

pub use kernel::{Assignment, PersistentDecoder};
pub use op::Op;
