//! Memory: the address space of the device, global allocations, and how lanes reach any of it.
//!
//! ```text
//! 0x3000_0000_0000  functions       their addresses, for indirect calls
//! 0x4000_0000_0000  parameters      of the kernel, read only
//! 0x5000_0000_0000  local           of the thread
//! 0x6000_0000_0000  shared          of the block
//! 0x7000_0000_0000  global          allocations, constants and variables of modules; 2 MiB pages
//! ```
//!
//! These are generic addresses. In the spaces of their own, shared and local addresses count from 0, and
//! addresses of parameters too. A global allocation has pages of its own, so that what lies behind its end
//! belongs to nothing, and addresses are not used again soon, so that what was freed stays known for a while.
//!
//! Memory of the host that is mapped is where it is for the host: anywhere but in the windows above and in what was
//! allocated. The host uses its addresses again, and then they are those of the new memory.

mod access;
mod address;
mod allocation;
mod heap;
mod load_store;
mod map;

pub use access::FaultKind;
pub(crate) use access::{AccessSpec, Fault, Group, RegionKind};
pub(crate) use address::{FUNCTION_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Window, window};
pub use allocation::HostWords;
pub(crate) use allocation::{Allocation, AllocationKind};
pub(crate) use heap::Heap;
pub use load_store::SpaceKind;
pub(crate) use load_store::{Address, Element, MemoryOp, Order};
pub(crate) use map::{GlobalMap, Overlap};
