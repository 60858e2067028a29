//! `warpwright tune`: the best choices of kernels for a device, measured.

use super::{Failure, Outcome, qualify};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use warpwright_graph::tuning_file;
use warpwright_kernels::tune::Table;
use warpwright_qualify::{Plan, Report, Stage};
use warpwright_runtime::DeviceSpec;

/// Measure the choices of kernels on a device, and keep the best
///
/// Engines and plans on this device use them from then on. Rows of earlier runs for other shapes and devices stay.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shapes to tune, as `plan --choices` prints them; those of well-known models if absent
    #[arg(value_name = "SHAPES")]
    shapes: Option<PathBuf>,
    /// The device: `cuda:N` or `vm`; the best one if absent
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceSpec,
    /// Measure a few choices of a few shapes only
    #[arg(long)]
    quick: bool,
    /// Seconds without a sign of life after which a process counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// The file; by default the one that is used without `--tuning`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let path = arguments.output.clone().or_else(tuning_file);
    let path = path.ok_or_else(|| "there is no folder for the file: name one with `-o`".to_string())?;
    // What cannot be kept is not measured.
    let kept = || if path.exists() { qualify::table(&path) } else { Ok(Table::default()) };
    kept()?;
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(said)?;
    }
    if let Some(shapes) = &arguments.shapes {
        qualify::table(shapes)?;
    }
    let mut plan = Plan::new();
    plan.stages = vec![Stage::Tune];
    plan.patience = Duration::from_secs(arguments.patience);
    let spec = qualify::chosen(arguments.device);
    let keep = |report: &Report| -> Result<Table, Failure> {
        let tuned = report.tuning().map_err(|error| format!("what was tuned: {error}"))?;
        // Others may have written it meanwhile.
        let mut table = kept()?;
        table.merge(tuned.clone());
        if table.devices().next().is_none() {
            return Ok(tuned);
        }
        // A reader finds the old file or the new one.
        let new = path.with_extension("new");
        std::fs::write(&new, table.to_string()).and_then(|()| std::fs::rename(&new, &path)).map_err(said)?;
        Ok(tuned)
    };
    let shapes = arguments.shapes.as_deref();
    // What cannot be written now is said in the end.
    let mut sometimes = |report: &Report| drop(keep(report));
    let report = qualify::stages(spec, &plan, (arguments.quick, shapes), &mut sometimes, out)?;
    write!(out, "{}", keep(&report)?)?;
    writeln!(out, "{}", path.display())?;
    Ok(if report.is_right() { Outcome::Fine } else { Outcome::Found })
}
