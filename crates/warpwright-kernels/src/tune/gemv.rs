//! Products of a few columns: how many warps share the rows of a tile.

use super::{DeviceModel, Launch, Shape};
use crate::linear::gemv::{MAX_BATCH, MAX_COLUMNS, MAX_MATRICES, MAX_ROWS, MAX_WARPS};
use crate::{Activation, Activations, Matrix, QuantGemv, WeightFormat};
use warpwright_dsl::{BuildError, Config, Domain, Kernel};

/// The launch of a [`QuantGemv`].
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "gemv")]
pub struct GemvShape {
    /// How the weights of the first matrix are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of each matrix that has a result.
    #[field(range = 1..=MAX_ROWS, max = MAX_MATRICES as u32)]
    pub n: Vec<u32>,
    /// Columns of the matrices.
    #[field(range = 1..=MAX_COLUMNS)]
    pub k: u32,
    /// Columns of activations; `any` for a choice that does not depend on their number.
    #[field(none = "any", range = 1..=MAX_BATCH, default = 1)]
    pub batch: Option<u32>,
    /// The form of the activations.
    #[field(default = "exact")]
    pub activations: Activations,
    /// Whether two matrices make one result.
    #[field(default = false)]
    pub gate: bool,
}

/// How many warps share the rows of a tile, which fixes the order of the sums, and how many rows a tile has.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct GemvChoice {
    /// Warps of a block.
    #[field(range = 1..=MAX_WARPS)]
    pub warps: u32,
    /// Rows that eight lanes work on at a time.
    #[field(domain = Domain::OneOf(&["2", "4", "8"]))]
    pub rows: u32,
}

impl GemvChoice {
    /// Applies the choice to a kernel.
    pub fn apply(&self, kernel: QuantGemv) -> QuantGemv {
        QuantGemv { warps: Some(self.warps), rows: Some(self.rows), ..kernel }
    }
}

impl QuantGemv {
    /// The launch that it is measured by.
    pub fn measured(self) -> Launch {
        let weights = self.matrices.iter().map(|matrix| (matrix.format, matrix.n, self.k)).collect();
        Launch { weights, ..Launch::new(self, &[]) }
    }
}

impl GemvShape {
    /// The shape of a kernel's launch, for this batch, or for any.
    pub fn of(kernel: &QuantGemv, batch: Option<u32>) -> Self {
        let results = if kernel.gate.is_some() { 1 } else { kernel.matrices.len() };
        GemvShape {
            format: kernel.matrices.first().map_or(WeightFormat::Q4K, |matrix| matrix.format),
            n: kernel.matrices.iter().take(results).map(|matrix| matrix.n).collect(),
            k: kernel.k,
            batch,
            activations: kernel.activations,
            gate: kernel.gate.is_some(),
        }
    }

    fn kernel(&self) -> QuantGemv {
        let matrix = |&n| Matrix::new(self.format, n);
        let times = if self.gate { 2 } else { 1 };
        QuantGemv {
            k: self.k,
            matrices: self.n.iter().map(matrix).flat_map(|matrix| [matrix].repeat(times)).collect(),
            gate: self.gate.then_some(Activation::Silu),
            // What has registers for most columns has them for any.
            batch: self.batch.unwrap_or(MAX_BATCH),
            activations: self.activations,
            ..QuantGemv::default()
        }
    }
}

/// Warps of a multiprocessor that have as many weights under way as memory needs to be busy. With activations of bytes,
/// half of them have.
const WARPS: u32 = 16;

impl Shape for GemvShape {
    type Choice = GemvChoice;

    /// Enough warps for all tiles of the launch to keep the device busy.
    fn estimate(&self, device: &DeviceModel) -> GemvChoice {
        let mut kernel = self.kernel();
        let multiprocessors = u64::from(device.multiprocessors);
        let exact = self.activations == Activations::Exact;
        // Tiles of both matrices, or of some that are small, have other warps to wait for.
        let most = if self.gate || exact && self.n.len() > 1 { 4 } else { 8 };
        kernel.rows = [8, 4, 2].into_iter().find(|&rows| {
            let kernel = QuantGemv { rows: Some(rows), ..kernel.clone() };
            // Tiles of fewer rows keep more multiprocessors busy.
            rows <= most && kernel.check().is_ok() && (rows < 8 || kernel.tiles() >= multiprocessors / 2)
        });
        let busy = if exact { WARPS } else { WARPS / 2 };
        let enough = multiprocessors * u64::from(busy);
        let wanted = enough.div_ceil(kernel.tiles().max(1)).clamp(2, if exact { 16 } else { 8 }) as u32;
        GemvChoice { warps: kernel.warps_near(wanted), rows: kernel.rows.unwrap_or(2) }
    }

    fn check(&self, choice: &GemvChoice) -> Result<(), BuildError> {
        choice.apply(self.kernel()).check()
    }

    fn space(&self) -> Vec<GemvChoice> {
        let kernel = self.kernel();
        let warps = (1..=MAX_WARPS).filter(|&warps| kernel.warps_near(warps) == warps);
        warps.flat_map(|warps| [2, 4, 8].map(|rows| GemvChoice { warps, rows })).collect()
    }

    fn launch(&self, choice: &GemvChoice) -> Option<Launch> {
        Some(choice.apply(self.kernel()).measured())
    }
}
