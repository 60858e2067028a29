//! How long the launch would take on cards that are not here: `profile --estimate`.

use super::program::Program;
use crate::cli::Failure;
use crate::cli::json::object;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use warpwright_estimate::machine::{Disassembler, Ptxas, Resources, first_error};
use warpwright_estimate::{Estimate, Workload, estimate};
use warpwright_kernels::tune::DeviceModel;
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;

/// What is estimated.
#[derive(clap::Args)]
pub(super) struct EstimateOptions {
    /// Estimate the time on these cards, such as h200 or rtx4090, from machine code: needs NVIDIA's `ptxas` and
    /// `nvdisasm`
    #[arg(long = "estimate", value_name = "CARD", value_delimiter = ',', value_parser = card)]
    pub(super) cards: Vec<DeviceModel>,
    /// Execute and count only so many blocks, from all over the grid
    #[arg(long, value_name = "BLOCKS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) sample: Option<u64>,
    /// Estimate a launch whose data are in the L2 cache already, as far as they fit
    #[arg(long, requires = "cards")]
    warm: bool,
    /// The folder with `ptxas` and `nvdisasm` [default: WARPWRIGHT_TOOLS, target/tools, the PATH]
    #[arg(long, value_name = "DIR", requires = "cards")]
    tools: Option<PathBuf>,
}

fn card(name: &str) -> Result<DeviceModel, String> {
    DeviceModel::named(name).ok_or_else(|| format!("the cards are {}", DeviceModel::names().join(", ")))
}

/// The programs that an estimate needs.
pub(super) struct Tools([PathBuf; 2]);

impl EstimateOptions {
    /// Finds the programs, if an estimate is asked for.
    pub(super) fn tools(&self) -> Result<Option<Tools>, Failure> {
        if self.cards.is_empty() {
            return Ok(None);
        }
        tools(self.tools.as_deref()).map(|programs| Some(Tools(programs)))
    }
}

/// Where the PTX's kernel was launched, and what was counted.
pub(super) struct Launched<'a> {
    pub(super) program: &'a Program,
    pub(super) kernel: &'a str,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u32,
    pub(super) report: &'a vm::Report,
}

/// What there is to say of a card: the estimate, or why there is none.
pub(super) struct OnCard {
    card: String,
    estimate: Result<Estimate, String>,
    /// What speaks against it, in words.
    doubts: Vec<String>,
}

/// The estimates, by card.
pub(super) fn estimates(
    launched: &Launched<'_>,
    options: &EstimateOptions,
    tools: Option<Tools>,
) -> Result<Vec<OnCard>, Failure> {
    let Some(Tools([ptxas, nvdisasm])) = tools else { return Ok(Vec::new()) };
    let scratch = std::env::temp_dir().join(format!("warpwright-{}", std::process::id()));
    let made = Scratch(scratch);
    let ptxas = Ptxas::new(&ptxas, &made.0).map_err(Failure::Message)?;
    let disassembler = Disassembler::new(&nvdisasm, &made.0).map_err(Failure::Message)?;
    let index = LineIndex::new(&launched.program.text);
    let line = |origin| match origin {
        Origin::Text(span) => Some(index.position(span.start).line),
        _ => None,
    };
    let report = launched.report;
    let of_card = |card: &DeviceModel| {
        if report.trap.is_some() {
            return Err("the kernel did not run to its end".into());
        }
        let target = launched.program.module.target.arch;
        if !card.arch.runs(target) {
            return Err(format!("the file is for {target}, which a card of {} does not run", card.arch));
        }
        let text = &launched.program.text;
        let assembled = ptxas.assemble_kernel(text, &card.arch.to_string(), launched.kernel);
        let assembled = assembled.map_err(|log| format!("ptxas: {}", first_error(&log)))?;
        let code = disassembler.code(&assembled.cubin, Some(launched.kernel))?;
        let work = Workload {
            code: &code,
            resources: Resources::read(&assembled.log),
            blocks: launched.grid.iter().map(|&extent| u64::from(extent)).product(),
            threads: launched.block.iter().product(),
            dynamic_shared: launched.shared,
            counters: &report.counters,
            line: &line,
            cached: &|_| options.warm,
        };
        estimate(&work, card).map_err(|error| error.to_string())
    };
    let of_card = |card: &DeviceModel| {
        let estimate = of_card(card);
        let mut doubts = Vec::new();
        if let Ok(estimate) = &estimate {
            doubts.extend(estimate.doubts().iter().map(ToString::to_string));
            if !report.findings.is_empty() {
                doubts.push("there are findings: a kernel without them may take another time".into());
            }
        }
        OnCard { card: card.name.clone(), estimate, doubts }
    };
    Ok(options.cards.iter().map(of_card).collect())
}

/// A folder that goes in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Names of the programs.
const PROGRAMS: [&str; 2] = ["ptxas", "nvdisasm"];

/// Finds the programs: in the folder that was named, or where they usually are.
fn tools(folder: Option<&Path>) -> Result<[PathBuf; 2], Failure> {
    let named =
        folder.map(Path::to_path_buf).or_else(|| std::env::var_os("WARPWRIGHT_TOOLS").map(PathBuf::from));
    let runs = |program: &PathBuf| match Command::new(program).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{} --version: {}", program.display(), output.status)),
        Err(error) => Err(format!("{}: {error}", program.display())),
    };
    let in_folder = |folder: &Path| {
        let programs = PROGRAMS.map(|name| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
        programs.iter().try_for_each(runs).map(|()| programs)
    };
    if let Some(folder) = &named {
        let failed =
            |why| Failure::Message(format!("the folder of `ptxas` and `nvdisasm` is not right: {why}"));
        return in_folder(folder).map_err(failed);
    }
    // Where `cargo xtask tools` puts them.
    let python = std::fs::read_dir("target/tools/venv/lib").into_iter().flatten().flatten();
    let mut folders = vec![PathBuf::from("target/tools/bin")];
    folders.extend(python.map(|version| version.path().join("site-packages/nvidia/cu13/bin")));
    let found = folders.iter().find_map(|folder| in_folder(folder).ok());
    let on_path =
        || Some(PROGRAMS.map(PathBuf::from)).filter(|programs| programs.iter().all(|one| runs(one).is_ok()));
    found.or_else(on_path).ok_or_else(|| {
        Failure::Message(
            "an estimate needs NVIDIA's `ptxas` and `nvdisasm`, and neither the PATH nor target/tools has both: `pip \
             install nvidia-cuda-nvcc nvidia-cuda-nvdisasm` has them, `--tools DIR` says where (in a checkout of the \
             project, `cargo xtask tools` is enough)"
                .into(),
        )
    })
}

/// A number in the unit that fits, of some that are each a thousand of the one in front.
fn scaled(value: f64, units: &[&str], digits: usize) -> String {
    let mut value = value;
    for (i, unit) in units.iter().enumerate() {
        if value < 999.5 || i + 1 == units.len() {
            return format!("{value:.digits$} {unit}");
        }
        value /= 1e3;
    }
    String::new()
}

fn time(seconds: f64) -> String {
    scaled(seconds * 1e9, &["ns", "us", "ms", "s"], 2)
}

fn bytes(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB"], 1)
}

/// Prints the estimates.
pub(super) fn print(out: &mut impl Write, estimates: &[OnCard]) -> io::Result<()> {
    for OnCard { card, estimate, doubts } in estimates {
        let estimate = match estimate {
            Ok(estimate) => estimate,
            Err(why) => {
                writeln!(out, "\nno estimate for {card}: {why}")?;
                continue;
            }
        };
        writeln!(out, "\nestimate for {card:<31} {:>11}", time(estimate.seconds()))?;
        let row = |out: &mut dyn Write, name: &str, seconds: f64| {
            writeln!(out, "  {name:<42} {:>11}", time(seconds))
        };
        row(out, "the kernel", estimate.kernel)?;
        row(out, "its launch", estimate.launch)?;
        row(out, "floor: memory or tensor cores at full rate", estimate.floor)?;
        writeln!(out, "  by itself each of these takes")?;
        for (resource, seconds) in &estimate.resources {
            row(out, &format!("  {}", resource.name()), *seconds)?;
        }
        writeln!(
            out,
            "  {} block(s) on a multiprocessor at once, {:.2} waves; {:.0} machine instructions a warp; {} of memory, {} \
             of L2",
            estimate.resident,
            estimate.waves,
            estimate.instructions,
            bytes(estimate.dram_bytes),
            bytes(estimate.l2_bytes),
        )?;
        for doubt in doubts {
            writeln!(out, "  doubtful: {doubt}")?;
        }
    }
    if !estimates.is_empty() {
        writeln!(out, "\nan estimate is no measurement: docs/performance.md says how far they were off")?;
    }
    Ok(())
}

/// Whether there is an estimate for every card.
pub(super) fn are_complete(estimates: &[OnCard]) -> bool {
    estimates.iter().all(|on_card| on_card.estimate.is_ok())
}

/// The estimates, for `--json`.
pub(super) fn objects(estimates: &[OnCard]) -> impl Serialize + use<> {
    let object = |OnCard { card, estimate, doubts }: &OnCard| {
        let resource = |(resource, seconds): &(warpwright_estimate::Resource, f64)| {
            object! { resource: resource.name(), seconds: *seconds }
        };
        let found = estimate.as_ref().ok().map(|estimate| {
            object! {
                seconds: estimate.seconds(),
                kernel: estimate.kernel,
                launch: estimate.launch,
                floor: estimate.floor,
                // What each takes by itself, the longest first.
                resources: estimate.resources.iter().map(resource).collect::<Vec<_>>(),
                resident_blocks: estimate.resident,
                waves: estimate.waves,
                instructions_per_warp: estimate.instructions,
                dram_bytes: estimate.dram_bytes,
                l2_bytes: estimate.l2_bytes,
                accounted: estimate.accounted,
                // What speaks against it, in words.
                doubts: doubts.clone(),
            }
        });
        object! {
            card: card.clone(),
            // Why there is none.
            error: estimate.as_ref().err().cloned(),
            #[serde(flatten)]
            found: found,
        }
    };
    estimates.iter().map(object).collect::<Vec<_>>()
}
