//! Runs the same device tests on the virtual GPU or on CUDA devices.
//!
//! `WARPWRIGHT_TEST_DEVICE` chooses: `vm`, which is the default, `cuda`, or `cuda:N` for one of them. Every test gets its device from [`device`],
//! and [`RunHere`] runs the kernel of a [`KernelTest`](warpwright_test::KernelTest) on one. `cargo xtask test` runs the
//! tests a second time with `cuda`, through the driver of `warpwright-libcuda`. `WARPWRIGHT_TEST_ORDER` sets the order
//! of virtual GPUs (`issue`, `reverse`, `random:SEED`).
//!
//! Numerical results hold on both. Tests of counters, traffic, findings, the order of blocks, and the behaviour of a
//! device after a failure are for the virtual GPU alone: they are in modules called `on_the_vm`, which the second run
//! leaves out.
//!
//! [`Apart`] runs a test in its own process, for tests that end the process or need another driver.
#![deny(unsafe_code)]

mod apart;
mod compare;
mod rig;
mod test_device;

pub use apart::{Apart, Ended, Running};
pub use compare::{Comparison, compare_launches};
pub use rig::{Ran, Rig, RunError, RunHere, announce_launch, observe_launches};
pub use test_device::{TestDevice, cuda, device, orders, test_device};
