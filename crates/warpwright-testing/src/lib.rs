//! Where tests of devices run: the same tests, on the virtual GPU or on CUDA devices.
//!
//! `WARPWRIGHT_TEST_DEVICE` says where: `vm`, as when nothing is said, or `cuda`. [`device`] is what every test asks
//! for a device, and [`RunHere`] runs the kernel of a [`KernelTest`](warpwright_test::KernelTest) on one. `cargo xtask test` runs tests a second
//! time with `cuda`, through the driver of `warpwright-libcuda`. `WARPWRIGHT_TEST_ORDER` is the order of virtual GPUs
//! (`issue`, `reverse`, `random:SEED`).
//!
//! What is true of numbers is true on both. What judges counters, traffic, findings or the order in which blocks run,
//! and what a device does that goes on after a failure, are tests of the virtual GPU alone: they are in modules called
//! `on_the_vm`, which the second run leaves out.
//!
//! [`Apart`] runs a test in a process of its own, for what ends the process or needs another driver.
#![deny(unsafe_code)]

mod apart;
mod test_device;
mod rig;

pub use apart::{Apart, Ended, Running};
pub use test_device::{TestDevice, cuda, device, orders, test_device};
pub use rig::{Ran, Rig, RunError, RunHere};
