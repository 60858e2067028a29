//! Where tests of devices run: the same tests, on the virtual GPU or on CUDA devices.
//!
//! `WARPWRIGHT_TEST_DEVICE` says where: `vm`, as when nothing is said, or `cuda`. [`device`] is what every test asks
//! for a device, and [`RunHere`] runs the kernel of a [`KernelTest`](warpwright_vm::testing::KernelTest) on one. `cargo xtask test` runs tests a second
//! time with `cuda`, through the driver of `warpwright-libcuda`.
//!
//! What is true of numbers is true on both. What judges counters, traffic, findings or the order in which blocks run
//! is a test of the virtual GPU alone, and does not ask here.
#![deny(unsafe_code)]

mod place;
mod rig;

pub use place::{Place, cuda, device, orders, place};
pub use rig::{Ran, Rig, RunError, RunHere};
