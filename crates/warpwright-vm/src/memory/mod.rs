//! Memory: the device's address space, global allocations, and the lanes' accesses to them.
//!
//! ```text
//! 0x3000_0000_0000  functions       their addresses, for indirect calls
//! 0x4000_0000_0000  parameters      of the kernel, read only
//! 0x5000_0000_0000  local           of the thread
//! 0x6000_0000_0000  shared          of the block
//! 0x7000_0000_0000  global          allocations, constants and variables of modules; 2 MiB pages
//! ```
//!
//! These are generic addresses. In their own spaces, shared and local addresses and those of parameters count from 0.
//! A global allocation has its own pages, so the addresses behind its end belong to nothing. Addresses are not reused
//! soon, so freed memory stays known for a while.
//!
//! Arrays are allocations too, which no load or store reaches: instructions for textures and surfaces and the host's
//! copies do. A handle of a texture or surface is the address of an allocation without bytes, so a destroyed one stays
//! known as well.
//!
//! Address space that the host reserves is one allocation, of which the parts can be accessed that it has mapped.
//!
//! Mapped host memory has its host addresses, which are outside of the windows above and of allocations. The host may
//! reuse addresses; they then belong to the new memory.

mod access;
mod address;
mod allocation;
mod heap;
mod image;
mod load_store;
mod map;
mod pages;
mod sampler;
mod used_bytes;

pub use access::FaultKind;
pub(crate) use access::{AccessSpec, Fault, Group, NULL_ZONE, RegionKind};
pub(crate) use address::{
    FUNCTION_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, RANK_BITS, RANK_MASK, SHARED_WINDOW, Window, window,
};
pub use allocation::HostWords;
pub(crate) use allocation::{Allocation, AllocationKind};
pub(crate) use heap::Heap;
pub use image::{ArrayShape, Channel, Image, Level, TexelFormat};
pub use load_store::SpaceKind;
pub(crate) use load_store::{Address, Element, MemoryOp, Order};
pub(crate) use map::{GlobalMap, Overlap};
pub use pages::PageAccess;
pub(crate) use pages::Pages;
pub(crate) use sampler::Object;
pub use sampler::{AddressMode, Filter, Sampler};
pub(crate) use used_bytes::UsedBytes;
