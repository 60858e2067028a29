//! `warpwright emit`: a kernel's PTX, and how to launch it.

use super::json::{self, object};
use super::{Failure, Outcome};
use serde::Serialize;
use serde_json::Value;
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
    /// Print a JSON document: the PTX with entry name, arguments and launch rule. Lengths and grids may be formulas of
    /// sizes that the caller chooses, such as `rows/128`; quotients are rounded up
    #[arg(long)]
    json: bool,
}

/// An argument of a kernel that was built.
fn argument(arg: &ArgDesc, built: &Built) -> impl Serialize + use<> {
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
    object! {
        name: arg.name,
        dtype: arg.dtype.name(),
        role: role,
        // Elements.
        length: count(arg.len),
        // What the address of a buffer is a multiple of, in bytes; `null` for a scalar.
        alignment: alignment,
        // The inputs whose buffer an output may be. Nothing else that is written may overlap.
        may_share: arg.shares,
    }
}

/// A number, or a formula in a number that the caller chooses.
fn count(extent: Extent) -> Value {
    extent.evaluate(|_| None).map_or_else(|| extent.to_string().into(), Value::from)
}

/// A launch rule. Shared memory is in bytes.
fn launched(rule: &LaunchRule) -> impl Serialize + use<> {
    let (Block::Exactly(block) | Block::AtMost(block)) = rule.block;
    object! {
        grid: rule.grid.map(count),
        block: block,
        // Whether the block must have exactly those dimensions, or at most.
        block_exact: matches!(rule.block, Block::Exactly(_)),
        static_shared: rule.static_shared,
        dynamic_shared: rule.dynamic_shared,
        cluster: rule.cluster,
        cooperative: rule.cooperative,
        minimum_target: Arch::sm(rule.min_sm).to_string(),
        resident_blocks: rule.resident_blocks,
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
        let document = object! {
            kernel: entry.name,
            entry: kernel.entry(),
            target: module.target.arch.to_string(),
            ptx_version: module.version.to_string(),
            arguments: kernel.args().iter().map(|arg| argument(arg, &built)).collect::<Vec<_>>(),
            #[serde(flatten)]
            launch: launched(launch),
            ptx: &text,
        };
        json::document(&mut printed, document)?;
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
