//! All that is known of a launch, in one document.

use crate::{Assumed, BufferArgument, Counters, Finding, Line, Trap, VERSION, hottest};
use serde::{Deserialize, Serialize};
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// A launch that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// The file that has the PTX, or another name for it.
    pub file: String,
    /// The kernel, as the module names it.
    pub kernel: String,
    /// The architecture of the device: `sm_80`.
    pub device: String,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// How long it took by the clock of this machine, which says nothing of a GPU.
    pub seconds: f64,
    /// The findings of the checks, in the order of the text.
    pub findings: Vec<Finding>,
    /// Why the kernel did not run to its end.
    pub trap: Option<Trap>,
    /// What a profiler would show.
    pub counters: Counters,
    /// The hottest instructions, of a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<Line>>,
    /// What it executed that hardware may compute otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<Assumed>,
    /// What the kernel printed.
    pub output: String,
}

/// What a report does not say of its launch.
#[derive(Clone, Debug, Default)]
pub struct LaunchInfo<'a> {
    /// The file that has the PTX, or another name for it.
    pub file: &'a str,
    /// The architecture of the device: `sm_80`.
    pub device: String,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// How long it took.
    pub seconds: f64,
    /// The arguments that are buffers.
    pub arguments: &'a [BufferArgument],
    /// How many of the hottest instructions are wanted; `None` if this is no profile.
    pub top: Option<usize>,
}

/// A document.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    #[serde(flatten)]
    launch: &'a Launch,
}

impl Launch {
    /// A launch, with places and texts as the renderer shows them.
    pub fn new(report: &vm::Report, info: &LaunchInfo<'_>, renderer: &Renderer<'_>) -> Launch {
        Launch {
            file: info.file.to_owned(),
            kernel: report.kernel.clone(),
            device: info.device.clone(),
            grid: info.grid,
            block: info.block,
            seconds: info.seconds,
            findings: report.findings.iter().map(|found| Finding::new(found, renderer)).collect(),
            trap: report.trap.as_ref().map(|trap| Trap::new(trap, renderer)),
            counters: Counters::new(&report.counters, info.arguments, renderer),
            lines: info.top.map(|top| hottest(&report.counters, renderer, top)),
            assumed: Assumed::of(&report.assumptions),
            output: report.output.clone(),
        }
    }

    /// The document with its version, as JSON.
    pub fn json(&self) -> String {
        let document = serde_json::to_string_pretty(&Document { version: VERSION, launch: self });
        document.expect("its keys are strings")
    }
}
