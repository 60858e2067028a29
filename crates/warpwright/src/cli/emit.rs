//! `warpwright emit`: a kernel's PTX, and how to launch it.

use super::json::{self, Document};
use super::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use warpwright_dsl::{ArgDesc, Block, Built, Extent, LaunchRule, Role};
use warpwright_kernels::find;
use warpwright_ptx::ir::{Arch, Space};
use warpwright_ptx::print::{Options, print_with};

/// Print a kernel's PTX; with `--json`, also how to launch it
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the kernel: `warpwright kernels` lists them
    kernel: String,
    /// Set a field of the kernel's configuration
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Target architecture, such as sm_80 [default: the oldest that the kernel runs on]
    #[arg(long, value_name = "TARGET")]
    target: Option<Arch>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add `.loc` directives that name the kernel's Rust lines
    #[arg(long)]
    locations: bool,
    /// Print a JSON document: the PTX with entry name, arguments and launch rule. Lengths and grids may be
    /// formulas in sizes that the caller chooses, such as `rows/128`: quotients are rounded up
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Emitted<'a> {
    kernel: &'a str,
    entry: String,
    target: String,
    ptx_version: String,
    arguments: Vec<Argument>,
    #[serde(flatten)]
    launch: Launch,
    ptx: &'a str,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    dtype: &'static str,
    role: &'static str,
    /// Elements.
    length: Count,
    /// What the address of a buffer is a multiple of, in bytes; `null` for a scalar.
    alignment: Option<u32>,
    /// The inputs whose buffer an output may be. Nothing else that is written may overlap.
    may_share: &'static [&'static str],
}

/// Shared memory is in bytes.
#[derive(Serialize)]
struct Launch {
    grid: [Count; 3],
    block: [u32; 3],
    /// Whether the block must have exactly those dimensions, or at most.
    block_exact: bool,
    static_shared: u32,
    dynamic_shared: u32,
    cluster: Option<[u32; 3]>,
    cooperative: bool,
    minimum_target: String,
    resident_blocks: Option<u32>,
}

/// A number, or a formula in a number that the caller chooses.
#[derive(Serialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Formula(String),
}

impl From<Extent> for Count {
    fn from(extent: Extent) -> Self {
        match extent.evaluate(|_| None) {
            Some(number) => Count::Number(number),
            None => Count::Formula(extent.to_string()),
        }
    }
}

impl Argument {
    /// An argument of a kernel that was built.
    fn new(arg: &ArgDesc, built: &Built) -> Self {
        let role = match arg.role {
            Role::In => "in",
            Role::Out => "out",
            Role::InOut => "inout",
            Role::Scalar => "scalar",
        };
        let mut declared = built.module.entries().flat_map(|entry| &entry.variables);
        let alignment = declared
            .find(|variable| variable.space == Space::Param && *variable.name == *arg.name)
            .and_then(|parameter| parameter.pointee?.align);
        let (name, dtype) = (arg.name, arg.dtype.name());
        Argument { name, dtype, role, length: arg.len.into(), alignment, may_share: arg.shares }
    }
}

impl From<&LaunchRule> for Launch {
    fn from(rule: &LaunchRule) -> Self {
        let (block, block_exact) = match rule.block {
            Block::Exactly(dims) => (dims, true),
            Block::AtMost(dims) => (dims, false),
        };
        Launch {
            grid: rule.grid.map(Count::from),
            block,
            block_exact,
            static_shared: rule.static_shared,
            dynamic_shared: rule.dynamic_shared,
            cluster: rule.cluster,
            cooperative: rule.cooperative,
            minimum_target: Arch::sm(rule.min_sm).to_string(),
            resident_blocks: rule.resident_blocks,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Message(error.to_string());
    let entry = find(&arguments.kernel).map_err(|error| failed(&error))?;
    let kernel = entry.configure(arguments.set.iter().map(String::as_str)).map_err(|error| failed(&error))?;
    let target = arguments.target.unwrap_or(Arch::sm(kernel.launch().min_sm));
    let built = kernel.build(target).map_err(|error| failed(&error))?;
    let Built { module, launch, .. } = &built;
    let text = print_with(module, &Options { rust_locations: arguments.locations });
    let mut printed = Vec::new();
    if arguments.json {
        let document = Document::new(Emitted {
            kernel: entry.name,
            entry: kernel.entry(),
            target: module.target.arch.to_string(),
            ptx_version: module.version.to_string(),
            arguments: kernel.args().iter().map(|arg| Argument::new(arg, &built)).collect(),
            launch: launch.into(),
            ptx: &text,
        });
        json::write(&mut printed, &document)?;
    } else {
        printed = text.into_bytes();
    }
    match &arguments.output {
        Some(path) => std::fs::write(path, printed)
            .map_err(|error| Failure::Message(format!("cannot write {}: {error}", path.display())))?,
        None => out.write_all(&printed)?,
    }
    Ok(Outcome::Fine)
}
