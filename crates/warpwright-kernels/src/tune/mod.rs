//! Choices that depend on the device: warps, splits, tiles, rounds, and what the persistent decoder shares out.
//!
//! ```text
//!   DeviceModel ──┐
//!   Shape ────────┴──► measured row of the Table, else Shape::estimate ──► Choice ──► fields of a kernel
//! ```
//!
//! A [`Shape`] is what a choice depends on, as data: sizes, formats, the batch. Its [`Choice`](Shape::Choice) is the fields
//! of the kernel that it decides. [`Tuning`] answers with a measured row where its [`Table`] has one for the device and the
//! shape, and else with an estimate from the [`DeviceModel`]. No other module names a number of a device.
//!
//! Some choices fix the order in which sums are added, and so the last bits of results: how many warps share a row, and how
//! many blocks share a sequence. The batch is a field of these shapes, and `any` is one of its values: the choice for any
//! batch does not depend on it. With [`Tuning::batch_invariant`], all choices are for any batch.
//!
//! What depends on the shape alone stays with the kernel, and what depends on the target alone (registers, instructions)
//! in its launch rule.

mod attention;
mod device;
mod gemm;
mod gemv;
mod rope;
mod schedule;
mod table;

pub use attention::{AttentionChoice, AttentionShape};
pub use device::DeviceModel;
pub use gemm::{GemmChoice, GemmShape};
pub use gemv::{GemvChoice, GemvShape};
pub use rope::{RopeChoice, RopeShape};
pub use schedule::{ScheduleChoice, ScheduleShape};
pub use table::{Table, TableError, TableProblem};

use std::sync::Arc;
use warpwright_dsl::Configure;

/// What a choice depends on besides the device. Its fields are the key of the table's rows.
pub trait Shape: Configure {
    /// The fields of kernels that are chosen.
    type Choice: Configure;

    /// What an estimate takes, where nothing is measured.
    fn estimate(&self, device: &DeviceModel) -> Self::Choice;

    /// Why a kernel of this shape does not take a choice.
    fn check(&self, choice: &Self::Choice) -> Result<(), warpwright_dsl::BuildError>;
}

/// How choices are made for a device.
///
/// ```
/// use warpwright_kernels::IncrementalAttention;
/// use warpwright_kernels::tune::{AttentionShape, DeviceModel, Tuning};
/// use warpwright_ptx::ir::Arch;
///
/// let tuning = Tuning::new(DeviceModel::typical(Arch::sm(90)));
/// let mut kernel = IncrementalAttention::new(32, 8, 128, 8192);
/// kernel.splits = tuning.choose(&AttentionShape::of(&kernel, 8192, Some(1))).splits;
/// // 8 heads of keys are few blocks for 132 multiprocessors: each sequence is shared by several.
/// assert!(kernel.splits > 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// The device that launches are for.
    pub device: DeviceModel,
    /// What was measured.
    pub measured: Arc<Table>,
    /// Whether the order of sums is to be the same for every batch, so that a token's result does not depend on the others
    /// that are computed with it.
    pub batch_invariant: bool,
}

impl Tuning {
    /// By estimates alone, each batch by itself.
    pub fn new(device: DeviceModel) -> Self {
        Tuning { device, measured: Arc::default(), batch_invariant: false }
    }

    /// The batch that choices are for.
    pub fn batch(&self, batch: u32) -> Option<u32> {
        (!self.batch_invariant).then_some(batch)
    }

    /// The choice for a shape: what was measured for it on this device, else an estimate.
    pub fn choose<S: Shape>(&self, shape: &S) -> S::Choice {
        self.measured.get(&self.device, shape).unwrap_or_else(|| shape.estimate(&self.device))
    }
}
