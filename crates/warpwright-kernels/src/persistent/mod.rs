//! A persistent kernel: many decode steps, with all their launches, in one launch.
//!
//! [`PersistentDecoder`] does not know what it computes. Its work is a *schedule* in device memory. Each token has the
//! same *phases*, and each phase has *items*. An item is a range of tiles of one instance of an [`Op`]: a kernel of the
//! library whose body is called as a function.
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
//! A block runs one item at a time. Its warps form warp groups (*teams*) of the size that the op wants, and these walk
//! the item's tiles. Then the block synchronises, because the next item uses the same shared memory.
//!
//! The grid barrier separates phases. Within a phase a later *stage* may need an earlier one: its items wait until all
//! items of the earlier stage have incremented a counter. Each list and each queue has its items in the order of the
//! stages, so an item only waits for items that other blocks have started and that do not wait for it in turn.
//!
//! Every wait ends. A wait that runs out of polls records what it waited for ([`Fault`](format::Fault)) and raises a
//! flag; all other waits see the flag and give up too. A block that gives up does not arrive at any further barrier, so
//! no block gets past the next one, and no work that depends on it is done.
//!
//! | file | contains |
//! | --- | --- |
//! | `format` | the words of the schedule, of counters and faults |
//! | `op` | reading an item's operands and calling its body |
//! | `wait` | polls, budgets, faults |
//! | `barrier` | the grid barrier |
//! | `walk` | tokens, phases, items |
//! | `kernel` | arguments, the launch rule, names |
//! | `entry` | the catalogue entry |

mod barrier;
pub(crate) mod entry;
pub mod format;
mod kernel;
mod op;
mod wait;
mod walk;

pub use kernel::{Assignment, PersistentDecoder};
pub use op::Op;
