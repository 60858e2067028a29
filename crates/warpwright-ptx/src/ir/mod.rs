//! The intermediate representation: a PTX module as data.
//!
//! The IR is close to the text: it keeps the order of all declarations and statements, so printing a parsed module
//! returns the module. Local names are resolved (a register is a number, a local variable an index), so shadowing in
//! nested scopes needs no further care.
//!
//! Equality of IR values ignores their origin: [`Origin`]s always compare equal.

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
