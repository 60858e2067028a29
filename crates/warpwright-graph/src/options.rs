//! Options of a plan.

use std::fmt;
use std::path::PathBuf;
use warpwright_kernels::tune::{DeviceModel, Tuning};
use warpwright_ptx::ir::Arch;
use warpwright_runtime::{CubinCache, Device};

/// The device that a plan is made for, and how it is made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The device, and how kernels are chosen for it.
    pub tuning: Tuning,
    /// How activations are multiplied.
    pub arithmetic: Arithmetic,
    /// The fusions that may be formed if the dispatcher accepts them.
    pub fusions: Fusions,
}

impl PlanOptions {
    /// Exact arithmetic and all fusions, for a [typical](DeviceModel::typical) device of an architecture with this
    /// number of multiprocessors.
    pub fn new(arch: Arch, multiprocessors: u32) -> Self {
        Self::of(Tuning::new(DeviceModel::typical(arch).with_multiprocessors(multiprocessors)))
    }

    /// Exact arithmetic and all fusions, with this tuning.
    pub fn of(tuning: Tuning) -> Self {
        PlanOptions { tuning, arithmetic: Arithmetic::Exact, fusions: Fusions::all() }
    }

    /// Exact arithmetic and all fusions, for this device.
    pub fn for_device(device: &Device) -> Self {
        Self::of(Tuning::new(device_model(device)))
    }

    /// The architecture of the device.
    pub fn arch(&self) -> Arch {
        self.tuning.device.arch
    }
}

/// The properties of a device as it reports them; all others are those of a typical device of its architecture.
pub fn device_model(device: &Device) -> DeviceModel {
    let properties = device.properties();
    let mut model = DeviceModel::typical(properties.arch).with_multiprocessors(properties.multiprocessors);
    model.name.clone_from(&properties.name);
    model.shared = properties.shared_per_multiprocessor;
    model.warps = properties.threads_per_multiprocessor / 32;
    model.blocks = properties.blocks_per_multiprocessor;
    model.l2 = properties.l2_cache.unwrap_or(model.l2);
    model.bandwidth = properties.bandwidth.unwrap_or(model.bandwidth);
    model
}

/// The file where `warpwright tune` keeps the choices that it has measured: `WARPWRIGHT_TUNING` (`off` for none), else
/// `tuning` beside the cache of compiled kernels. The file need not exist. A [`Table`](warpwright_kernels::tune::Table)
/// reads it.
pub fn tuning_file() -> Option<PathBuf> {
    match std::env::var_os("WARPWRIGHT_TUNING") {
        Some(off) if off.eq_ignore_ascii_case("off") => None,
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => Some(CubinCache::default().directory?.parent()?.join("tuning")),
    }
}

/// How activations are multiplied with weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As `f32`; on the tensor cores as two halves each.
    #[default]
    Exact,
    /// As signed bytes with a scale for each 32 where weights are quantised; on the tensor cores as one half.
    Int8,
}

impl Arithmetic {
    /// Its name: `exact` or `int8`.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Exact => "exact",
            Arithmetic::Int8 => "int8",
        }
    }
}

/// A way of combining the work of several nodes in one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fusion {
    /// Gate and up products yield `activation(gate) · up`: with SiLU, SwiGLU.
    Glu,
    /// Products of the same activations become one launch: q, k and v; gate and up of different formats.
    SharedProducts,
    /// A product adds the residual to its result.
    Residual,
    /// Products normalise their activations.
    NormProduct,
    /// Rotations of q and k and the write into the cache become one launch.
    RopeAppend,
    /// A rotation normalises the heads first.
    HeadNormRope,
    /// A norm yields `int8` for the products that take it; activations are quantised once for all of their products.
    Quantize,
}

impl Fusion {
    /// All of them, in the order in which they are formed.
    pub const ALL: [Fusion; 7] = [
        Fusion::Glu,
        Fusion::SharedProducts,
        Fusion::Residual,
        Fusion::NormProduct,
        Fusion::RopeAppend,
        Fusion::HeadNormRope,
        Fusion::Quantize,
    ];

    /// Its name: `shared_products`.
    pub fn name(self) -> &'static str {
        match self {
            Fusion::SharedProducts => "shared_products",
            Fusion::Glu => "glu",
            Fusion::Residual => "residual",
            Fusion::NormProduct => "norm_product",
            Fusion::HeadNormRope => "head_norm_rope",
            Fusion::RopeAppend => "rope_append",
            Fusion::Quantize => "quantize",
        }
    }
}

impl fmt::Display for Fusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of fusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fusions(u32);

impl Fusions {
    /// All of them.
    pub fn all() -> Self {
        Fusion::ALL.into_iter().fold(Self::none(), Self::with)
    }

    /// None of them.
    pub fn none() -> Self {
        Fusions(0)
    }

    /// With this one.
    pub fn with(self, fusion: Fusion) -> Self {
        Fusions(self.0 | 1 << fusion as u32)
    }

    /// Without this one.
    pub fn without(self, fusion: Fusion) -> Self {
        Fusions(self.0 & !(1 << fusion as u32))
    }

    /// Whether this one is among them.
    pub fn contains(self, fusion: Fusion) -> bool {
        self.0 & 1 << fusion as u32 != 0
    }
}
