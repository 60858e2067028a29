//! Choices that depend on the device: warps, splits, tiles, rounds, and the work split of the persistent decoder.
//!
//! ```text
//!   DeviceModel ──┐
//!   Shape ────────┴──► measured row of the Table, else Shape::estimate ──► Choice ──► fields of a kernel
//! ```
//!
//! A [`Shape`] is the input of a choice, as data: sizes, formats, the batch. Its [`Choice`](Shape::Choice) holds the
//! fields of the kernel that it decides. [`Tuning`] returns a measured row if its [`Table`] has one for the device and
//! the shape, and otherwise an estimate from the [`DeviceModel`]. No other module contains device-specific numbers.
//!
//! Some choices fix the order of sums, and so the last bits of results: how many warps share a row, and how many blocks
//! share a sequence. The batch is a field of these shapes, and `any` is one of its values; a choice for `any` does not
//! depend on the batch. With [`Tuning::batch_invariant`], all choices are for `any`.
//!
//! A shape also knows its space, the choices that may be the best on some device, and the launch to measure one by.
//! [`Table::spaces`] lists them for the rows of a table; `warpwright tune` measures them and writes a table.
//!
//! Choices that depend on the shape alone are made by the kernel; choices that depend on the target alone (registers,
//! instructions) are in its launch rule.

mod attention;
mod cards;
mod device;
mod flash;
mod gemm;
mod gemv;
mod rope;
mod schedule;
mod table;

pub use attention::{AttentionChoice, AttentionShape};
pub use device::{DeviceModel, Speed};
pub use flash::{FlashChoice, FlashShape};
pub use gemm::{GemmChoice, GemmShape};
pub use gemv::{GemvChoice, GemvShape};
pub use rope::{RopeChoice, RopeShape};
pub use schedule::{ScheduleChoice, ScheduleShape};
pub use table::{Candidate, Space, Table, TableError, TableProblem};

use crate::WeightFormat;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{BuildError, Configure};

/// The input of a choice besides the device. Its fields are the key of the table's rows.
pub trait Shape: Configure {
    /// The fields of kernels that are chosen.
    type Choice: Configure;

    /// What an estimate takes, where nothing is measured.
    fn estimate(&self, device: &DeviceModel) -> Self::Choice;

    /// Why a kernel of this shape does not take a choice.
    fn check(&self, choice: &Self::Choice) -> Result<(), BuildError>;

    /// The choices that may be the best one on some device. Those that [`check`](Self::check) refuses are left out later.
    /// None if a single launch does not tell which is best.
    fn space(&self) -> Vec<Self::Choice> {
        Vec::new()
    }

    /// The launch that a choice is measured by; `None` if there is no space.
    fn launch(&self, _choice: &Self::Choice) -> Option<Launch> {
        None
    }
}

/// A launch to be measured: a kernel, and what its arguments are like.
pub struct Launch {
    /// The kernel.
    pub kernel: Box<dyn AnyKernel>,
    /// Scalars and dimensions, by name.
    pub numbers: Vec<(&'static str, u64)>,
    /// Format, rows and columns of the weights: `w` or `w0`, `w1` and so on.
    pub weights: Vec<(WeightFormat, u32, u32)>,
}

impl Launch {
    /// A launch whose arguments are buffers of numbers.
    pub fn new(kernel: impl AnyKernel + 'static, numbers: &[(&'static str, u64)]) -> Self {
        Launch { kernel: Box::new(kernel), numbers: numbers.to_vec(), weights: Vec::new() }
    }
}

/// Makes choices for a device.
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
    /// The measured choices.
    pub measured: Arc<Table>,
    /// Whether the order of sums is the same for every batch, so that the results of a sequence do not depend on the
    /// sequences computed with it.
    pub batch_invariant: bool,
    /// Whether launches may begin before the one in front of them is complete, on devices that can do that. Results have
    /// the same bits.
    pub overlap: bool,
}

impl Tuning {
    /// Uses estimates only, and chooses for each batch separately; launches may overlap.
    pub fn new(device: DeviceModel) -> Self {
        Tuning { device, measured: Arc::default(), batch_invariant: false, overlap: true }
    }

    /// The batch to choose for: `None` if choices are batch-invariant.
    pub fn batch(&self, batch: u32) -> Option<u32> {
        (!self.batch_invariant).then_some(batch)
    }

    /// The choice for a shape: the measured one for this device if there is one, otherwise an estimate.
    pub fn choose<S: Shape>(&self, shape: &S) -> S::Choice {
        self.measured.get(&self.device, shape).unwrap_or_else(|| shape.estimate(&self.device))
    }
}
