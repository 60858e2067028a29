//! The intermediate representation: what a PTX module says, as data.
//!
//! The IR is close to the text: every declaration and statement keeps its place, so that printing a
//! parsed module gives the module back. Names of local things are resolved (a register is a number,
//! a local variable an index), so that shadowing in nested scopes needs no care later.
//!
//! Equality of IR values ignores where they came from: [`Origin`]s always compare equal.

mod index;
mod limits;
mod modifier;
mod module;
mod operand;
mod origin;
mod selector;
mod target;
mod types;

pub use index::{GlobalSymbol, ModuleIndex};
pub use limits::Limits;
pub use modifier::*;
pub use module::*;
pub use operand::*;
pub use origin::{Origin, Span};
pub use selector::{PartDst, PartSrc, Selector, SelectorUnit};
pub use target::{
    AddressSize, Arch, ArchVariant, Feature, Needs, Requirement, Target, TargetOption, Version,
};
pub use types::{Type, TypeKind};
