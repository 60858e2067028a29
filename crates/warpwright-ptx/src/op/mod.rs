//! The instructions, one file per family.
//!
//! An instruction is a struct: its modifiers as enums and flags, its operands typed. The
//! [`instruction!`] macro takes both in the order of the canonical text and derives parsing,
//! printing and the walk over operands. What the instruction's parts may be together ([`Rule::check`]),
//! and what PTX version and target they need ([`Rule::needs`]), is written by hand beside it.
//!
//! ```text
//! instruction! {
//!     /// Sum.
//!     pub struct Add("add") {              // opcode
//!         rounding: Option<Rounding>,      // an optional modifier
//!         ftz: bool = "ftz",               // a flag
//!         ty: Type,                        // a modifier that must be there
//!     }(d: Dst, a: Src, b: Src)            // operands, in order
//! }
//! ```
//!
//! Modifiers may stand in any order in the text, as `ptxas` has it; where two fields take the same
//! kind of modifier, the first field takes the first in the text.

mod framework;
mod operand;
mod read;
mod word;

pub mod arith;
pub mod async_copy;
pub mod atomic;
pub mod bulk_copy;
pub mod cluster;
pub mod compare;
pub mod control;
pub mod convert;
pub mod logic;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod misc;
pub mod sync;
pub mod tcgen05;
pub mod texture;
pub mod video;
pub mod warp;
pub mod wgmma;
pub mod wmma;

pub use framework::{Access, Convergence, Instr, Rule, Visitor, VisitorMut};
pub use operand::{Arg, Operand};
pub use read::{InstrReader, LabelResolver};
pub use word::{Keyword, Modifier, ModifierField, Word, word_hash};

pub(crate) use framework::{instruction, ops};
pub(crate) use word::modifiers;

pub(crate) use framework::OpcodeRow;

ops! {
    arith { Add, Sub }
    control { Bra, BrxIdx, Call, Ret, Exit, Trap, Brkpt }
}
