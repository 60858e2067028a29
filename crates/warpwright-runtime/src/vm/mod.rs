//! The virtual GPU as a device: the engine of [`warpwright_device`], with its failures as errors of the runtime.
//!
//! Streams promise little order: each executes its own operations in order, and different streams in any order that
//! events allow. [`VmConfig::order`] chooses one, which shows a forgotten wait.
//!
//! After an operation has failed, later ones are skipped until a synchronising call has returned the error.

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

/// Configuration of a virtual GPU and of its checks.
#[derive(Clone, Debug, Default)]
pub struct VmConfig {
    /// The device.
    pub device: DeviceConfig,
    /// The checks of every launch, and how launches run. An error that a check finds is an error of the launch.
    pub options: Options,
    /// The order in which it executes operations of different streams, among those that their events allow.
    pub order: Order,
}

/// A recorded event of the engine.
pub(crate) type EventHandle = std::sync::Arc<warpwright_device::Signal>;

/// A stream, as the engine has it.
pub(crate) type StreamHandle = std::sync::Arc<warpwright_device::Stream>;

pub use warpwright_device::Order;
