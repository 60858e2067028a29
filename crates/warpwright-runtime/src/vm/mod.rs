//! The virtual GPU as a device: the engine of [`warpwright_device`], and what its failures mean here.
//!
//! Streams promise less order than most programs get: operations of a stream in their order, those of others in any
//! that events allow. [`VmConfig::order`] chooses one, so that a wait that was forgotten is seen.
//!
//! An operation that fails leaves an error, and what is behind it is skipped until a synchronising call has returned
//! the error.

mod failures;
mod launch;
mod memory;
mod module;
mod worker;

pub(crate) use launch::Code;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub(crate) use worker::{Replay, Worker, properties};

use warpwright_vm::{DeviceConfig, Options};

/// What a virtual GPU is like, and what it looks for in launches.
#[derive(Clone, Debug, Default)]
pub struct VmConfig {
    /// The device.
    pub device: DeviceConfig,
    /// What is looked for in every launch, and how launches run. With checks on, an error that they find is an error
    /// of the launch.
    pub options: Options,
    /// In which order it does what different streams ask for, of all that their events allow.
    pub order: Order,
}

/// A place in the work of a stream.
pub(crate) type EventHandle = std::sync::Arc<warpwright_device::Signal>;

/// A stream, as the engine has it.
pub(crate) type StreamHandle = std::sync::Arc<warpwright_device::Stream>;

pub use warpwright_device::Order;
