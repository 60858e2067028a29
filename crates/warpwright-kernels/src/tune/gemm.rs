//! Products of many tokens: the tile of a block.

use super::{DeviceModel, Launch, Shape};
use crate::linear::block::{COLUMNS, ROWS};
use crate::{Gemm, QuantGemm, WeightFormat};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{BuildError, Config};

/// The launch of a [`Gemm`] or a [`QuantGemm`].
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "gemm")]
pub struct GemmShape {
    /// How the weights are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of the weights.
    #[field(range = 1..=1 << 22)]
    pub n: u32,
    /// Columns of the weights.
    #[field(range = 1..=1 << 22)]
    pub k: u32,
    /// Split terms of each activation.
    #[field(range = 1..=2, default = 1)]
    pub terms: u32,
    /// Tokens of the launch.
    #[field(range = 1..=u32::MAX)]
    pub tokens: u32,
}

/// The tile of a block. The order of the sums does not depend on it.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct GemmChoice {
    /// Tokens of the tile.
    #[field(domain = ROWS)]
    pub rows: u32,
    /// Columns of the tile.
    #[field(domain = COLUMNS)]
    pub columns: u32,
}

impl GemmShape {
    fn kernel(&self, choice: &GemmChoice) -> Box<dyn AnyKernel> {
        let &GemmShape { format, n, k, terms, .. } = self;
        let &GemmChoice { rows, columns } = choice;
        match format.is_float() {
            true => Box::new(Gemm { terms, rows, columns, ..Gemm::new(format.half(), n, k) }),
            false => Box::new(QuantGemm { terms, rows, columns, ..QuantGemm::new(format, n, k) }),
        }
    }
}

/// Columns of weights that are multiplied at a time.
const DEPTH: u64 = 16;
/// Cycles of an `ldmatrix` of 16 × 16 for each of four warps, which shared memory of 128 bytes a cycle takes, and of what
/// a block waits for itself, for each 16 columns of weights.
const LOAD: u64 = 16;
const WAIT: u64 = 32;

impl Shape for GemmShape {
    type Choice = GemmChoice;

    /// An estimate of cycles for each 16 columns of weights: tensor cores and shared memory work at the same time, weights
    /// that are quants are decoded by all threads besides, and a device runs so many blocks at a time. So few tokens have
    /// few rows, many have tiles that decode each weight for all the more of them, and tiles are small where there would be
    /// too few of them for the device.
    fn estimate(&self, device: &DeviceModel) -> GemmChoice {
        let cost = |choice: &GemmChoice| {
            let &GemmChoice { rows, columns } = choice;
            let blocks = u64::from(self.tokens.div_ceil(rows)) * u64::from(self.n.div_ceil(columns));
            let across = if rows >= 128 { 2 } else { 4 };
            let (terms, columns) = (u64::from(self.terms), u64::from(columns));
            // What a warp multiplies, in units of 16 and 8.
            let (down, wide) = (u64::from(rows.min(64)) / 16, columns / across / 8);
            let multiply = u64::from(device.mma_cycles) * down * wide * terms;
            let load = LOAD * (down * terms + wide / 2);
            let rule = self.kernel(choice).launch();
            let threads = u64::from(rule.block.threads());
            let decode = if self.format.is_float() { 0 } else { columns * DEPTH * 2 / threads };
            let slots = u64::from(device.multiprocessors) * u64::from(device.resident(&rule));
            blocks.div_ceil(slots) * (multiply.max(load) + decode + WAIT)
        };
        let possible = self.space().into_iter().filter(|choice| {
            let kernel = self.kernel(choice);
            kernel.check().is_ok() && kernel.launch().min_sm <= device.arch.sm
        });
        possible.min_by_key(cost).unwrap_or(GemmChoice { rows: 128, columns: 128 })
    }

    fn check(&self, choice: &GemmChoice) -> Result<(), BuildError> {
        self.kernel(choice).check()
    }

    fn space(&self) -> Vec<GemmChoice> {
        let tiles = [256, 128, 64, 32, 16].into_iter().flat_map(|rows| [(rows, 128), (rows, 64)]);
        tiles.map(|(rows, columns)| GemmChoice { rows, columns }).collect()
    }

    fn launch(&self, choice: &GemmChoice) -> Option<Launch> {
        let (kernel, weights) = (self.kernel(choice), vec![(self.format, self.n, self.k)]);
        Some(Launch { kernel, numbers: vec![("tokens", self.tokens.into())], weights })
    }
}
