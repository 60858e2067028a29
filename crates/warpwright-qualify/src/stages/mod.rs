//! The stages: what each does, item by item.

mod attention;
pub(crate) mod bandwidth;
mod cases;
mod compare;
mod decode;
mod load;
mod overhead;
mod products;
mod tune;

use crate::event::Finding;
use crate::measure::{Bench, Failure, Size};
use serde::{Deserialize, Serialize};
use std::fmt;
use warpwright_kernels::tune::Table;
use warpwright_runtime::Device;

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// The correctness cases of the kernels that decoding is made of, against float64.
    DecodePath,
    /// The bandwidth of memory.
    Bandwidth,
    /// Steps of decoding.
    Decode,
    /// The best choices for the device.
    Tune,
    /// The cost of launches and barriers.
    Overhead,
    /// Products with vectors.
    Gemv,
    /// Attention of one token.
    Attention,
    /// Every kernel and configuration of the catalogue through the driver.
    Load,
    /// Attention of many tokens.
    FlashAttention,
    /// Products with matrices.
    Gemm,
    /// The other correctness cases.
    Cases,
    /// The device against the virtual GPU.
    Compare,
}

impl Stage {
    /// All stages, the most valuable first.
    pub const ALL: [Stage; 12] = [
        Stage::DecodePath,
        Stage::Bandwidth,
        Stage::Decode,
        Stage::Tune,
        Stage::Overhead,
        Stage::Gemv,
        Stage::Attention,
        Stage::Load,
        Stage::FlashAttention,
        Stage::Gemm,
        Stage::Cases,
        Stage::Compare,
    ];

    /// Its name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::DecodePath => "decode-path",
            Stage::Bandwidth => "bandwidth",
            Stage::Decode => "decode",
            Stage::Tune => "tune",
            Stage::Overhead => "overhead",
            Stage::Gemv => "gemv",
            Stage::Attention => "attention",
            Stage::Load => "load",
            Stage::FlashAttention => "flash-attention",
            Stage::Gemm => "gemm",
            Stage::Cases => "cases",
            Stage::Compare => "compare",
        }
    }

    /// What it does, for people.
    pub const fn description(self) -> &'static str {
        match self {
            Stage::DecodePath => "kernels of decoding against float64",
            Stage::Bandwidth => "bandwidth of memory",
            Stage::Decode => "steps of decoding",
            Stage::Tune => "the best choices for the device",
            Stage::Overhead => "launches, barriers, the clock",
            Stage::Gemv => "products with vectors",
            Stage::Attention => "attention of one token",
            Stage::Load => "kernels through the compiler of the driver",
            Stage::FlashAttention => "attention of many tokens",
            Stage::Gemm => "products with matrices",
            Stage::Cases => "the other kernels against float64",
            Stage::Compare => "kernels against the virtual GPU, bit for bit",
        }
    }

    /// Its items: those of a quick qualification or of a whole one. `rows` has the shapes that are tuned.
    pub(crate) fn items(
        self,
        device: &Device,
        quick: bool,
        rows: Option<&Table>,
    ) -> Result<Vec<Item>, Failure> {
        let size = Size::of(device, quick);
        Ok(match self {
            Stage::DecodePath => cases::items(quick, cases::Part::DecodePath),
            Stage::Bandwidth => bandwidth::items(size),
            Stage::Decode => decode::items(size),
            Stage::Tune => tune::items(device, size, rows)?,
            Stage::Overhead => overhead::items(size),
            Stage::Gemv => products::gemv(size),
            Stage::Attention => attention::decode(size),
            Stage::Load => load::items(size, quick),
            Stage::FlashAttention => attention::flash(size),
            Stage::Gemm => products::gemm(size),
            Stage::Cases => cases::items(quick, cases::Part::Others),
            Stage::Compare => compare::items(quick),
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is wrong with what an item did; the findings that it has all the same come before.
pub(crate) type Outcome = Result<(), Failure>;

/// Does an item, and says what it finds.
type Run = Box<dyn Fn(&Device, &mut dyn FnMut(Finding)) -> Outcome>;

/// A piece of a stage that succeeds or fails by itself.
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) run: Run,
}

impl Item {
    /// A measurement.
    fn measure(
        name: impl Into<String>,
        size: Size,
        measure: impl Fn(&Bench<'_>, &mut dyn FnMut(Finding)) -> Outcome + 'static,
    ) -> Self {
        let run: Run = Box::new(move |device, found| measure(&Bench::new(device, size), found));
        Item { name: name.into(), run }
    }
}
