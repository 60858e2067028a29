//! The virtual GPU as a device: one worker that does what all streams ask for.
//!
//! Streams promise less order than this keeps: operations of a stream in their order, those of others in any that
//! events allow. **One queue has the operations of all streams of a device in the order of issue, and one
//! thread executes them one after the other**, which is always such an order. An event that is waited for has been
//! recorded before, so a wait within a device is over when the queue gets there. A kernel that waits for what a
//! later operation does, on any stream, waits in vain; hardware promises it nothing either.
//!
//! An operation that fails leaves an error, and what is behind it is skipped until a synchronising call has
//! returned the error.

mod execute;
mod mark;
mod memory;
mod module;
mod queue;
mod task;
mod worker;

pub(crate) use execute::Code;
pub(crate) use mark::Mark;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub(crate) use task::StreamHandle;
pub(crate) use worker::{Worker, properties};

use warpwright_vm::{DeviceConfig, Options};

/// What a virtual GPU is like, and what it looks for in launches.
#[derive(Clone, Debug, Default)]
pub struct VmConfig {
    /// The device.
    pub device: DeviceConfig,
    /// What is looked for in every launch, and how launches run. With checks on, an error that they find is an error
    /// of the launch.
    pub options: Options,
}
