//! Launches: what is asked for, and what has come of it.

use crate::module::Texts;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use warpwright_device::Order;
use warpwright_ptx::ir::Arch;
use warpwright_report::{BufferArgument, Launch, LaunchInfo};
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// What Python asks of a launch.
pub(crate) struct Asked<'a> {
    pub(crate) grid: Vec<u32>,
    pub(crate) block: Vec<u32>,
    /// The parameters at their offsets.
    pub(crate) params: &'a [u8],
    pub(crate) shared: u32,
    pub(crate) check: &'a str,
    pub(crate) order: &'a str,
    pub(crate) race: &'a str,
    pub(crate) cooperative: bool,
    pub(crate) cluster: Option<Vec<u32>>,
    pub(crate) counters: bool,
    pub(crate) max_instructions: Option<u64>,
}

impl Asked<'_> {
    /// The launch and its options, or what is wrong with them.
    pub(crate) fn read(&self) -> Result<(vm::LaunchConfig, vm::Options), String> {
        let mut config = vm::LaunchConfig::new(1, 1);
        config.grid_dim = dims("grid", &self.grid)?;
        config.block_dim = dims("block", &self.block)?;
        config.shared_mem_bytes = self.shared;
        config.cooperative = self.cooperative;
        config.cluster_dim = self.cluster.as_ref().map(|cluster| dims("cluster", cluster)).transpose()?;
        let default = vm::Options::default();
        let order: Order = self.order.parse().map_err(|error| format!("order={:?}: {error}", self.order))?;
        let options = vm::Options {
            checks: self.check.parse().map_err(|error| format!("check={:?}: {error}", self.check))?,
            race: match self.race {
                "normal" => vm::Race::Normal,
                "strict" => vm::Race::Strict,
                other => return Err(format!("race={other:?}: it is normal or strict")),
            },
            schedule: order.schedule(),
            counters: self.counters,
            max_instructions: self.max_instructions.unwrap_or(default.max_instructions),
            ..default
        };
        Ok((config, options))
    }

    /// The arguments of a kernel.
    pub(crate) fn args(&self, kernel: &vm::KernelInfo) -> Result<Vec<vm::Arg>, String> {
        let bytes = kernel.params.last().map_or(0, |last| (last.offset + last.bytes) as usize);
        if bytes != self.params.len() {
            let given = self.params.len();
            return Err(format!(
                "the parameters of {} have {bytes} bytes, and {given} are given",
                kernel.name
            ));
        }
        let arg = |param: &vm::KernelParam| {
            let first = param.offset as usize;
            vm::Arg::Bytes(self.params[first..first + param.bytes as usize].into())
        };
        Ok(kernel.params.iter().map(arg).collect())
    }
}

/// One to three extents.
fn dims(name: &str, extents: &[u32]) -> Result<(u32, u32, u32), String> {
    match *extents {
        [x] => Ok((x, 1, 1)),
        [x, y] => Ok((x, y, 1)),
        [x, y, z] => Ok((x, y, z)),
        _ => Err(format!("{name} has {} extents: it is one number, or up to three of them", extents.len())),
    }
}

/// A launch that is over.
#[pyclass(frozen, module = "warpwright._warpwright")]
pub(crate) struct Launched {
    pub(crate) report: vm::Report,
    pub(crate) texts: Arc<Texts>,
    pub(crate) device: Arch,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) took: Duration,
    /// If traffic was counted.
    pub(crate) arguments: Vec<BufferArgument>,
}

impl Launched {
    /// All of it as data.
    fn data(&self) -> Launch {
        let info = LaunchInfo {
            file: &self.texts.name,
            device: self.device.to_string(),
            grid: self.grid,
            block: self.block,
            seconds: self.took.as_secs_f64(),
            arguments: &self.arguments,
            top: Some(usize::MAX),
        };
        Launch::new(&self.report, &info, &self.renderer())
    }

    fn renderer(&self) -> Renderer<'_> {
        let renderer = Renderer::of_ptx(&self.texts.name, self.report.text.as_deref().unwrap_or_default());
        let renderer = renderer.help_for_budget(
            "a kernel that needs more gets it from `max_instructions` of the launch or of `warpwright.settings`; in \
             pytest from `--gpu-max-instructions`",
        );
        let sources = self.texts.sources.iter();
        sources.fold(renderer, |renderer, (file, text)| renderer.with_source(file, text))
    }
}

#[pymethods]
impl Launched {
    #[getter]
    fn kernel(&self) -> &str {
        &self.report.kernel
    }

    #[getter]
    fn is_clean(&self) -> bool {
        self.report.is_clean()
    }

    #[getter]
    fn has_errors(&self) -> bool {
        self.report.has_errors()
    }

    #[getter]
    fn output(&self) -> &str {
        &self.report.output
    }

    fn json(&self) -> String {
        self.data().json()
    }

    fn documents(&self) -> [String; 1] {
        [self.json()]
    }

    fn text(&self) -> String {
        self.renderer().report(&self.report)
    }
}
