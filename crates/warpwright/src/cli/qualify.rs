//! `warpwright qualify`: whether a device computes what it should, and how fast.

use super::{Failure, Outcome};
use std::io::{Read, Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use warpwright_kernels::tune::Table;
use warpwright_qualify::{Described, ItemReport, Observer, Plan, Report, Stage, StageReport, Work, work};
use warpwright_runtime::{Device, DeviceSpec};

/// Check and measure a device with every kernel
///
/// Each stage is a process of its own: what fails, crashes or hangs ends nothing else. DIR gets qualify.json,
/// qualify.md, roofline.svg and tuning, a file for `--tuning`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The device: `cuda:N` or `vm`; the best one if absent
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceSpec,
    /// Do a small part of each stage
    #[arg(long)]
    quick: bool,
    /// Stop after this time: seconds, or minutes as `8m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,
    /// Do these stages only, in the usual order
    #[arg(long = "only", value_name = "STAGE", value_delimiter = ',', value_parser = stage)]
    only: Vec<Stage>,
    /// Seconds without a sign of life after which a process counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// The folder of the results [default: qualify, or qualify-2 and so on where there is a report]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Tune the shapes of this file, as `plan --choices` prints them
    #[arg(long, value_name = "FILE")]
    shapes: Option<PathBuf>,
    /// Be the process of a stage
    #[arg(long, hide = true, value_name = "STAGE", value_parser = stage)]
    child: Option<Stage>,
    /// The first item
    #[arg(long, hide = true, default_value_t = 0)]
    from: usize,
}

/// The file with all of a report.
const JSON: &str = "qualify.json";

fn stage(name: &str) -> Result<Stage, String> {
    let known = || Stage::ALL.map(Stage::name).join(", ");
    Stage::ALL.into_iter().find(|stage| stage.name() == name).ok_or_else(|| format!("there are {}", known()))
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| !time.is_zero());
    time.ok_or_else(|| "it must be seconds, as 90, or minutes, as 8m, and more than none".to_string())
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let spec = chosen(arguments.device);
    if let Some(stage) = arguments.child {
        end_with_parent();
        let device = Device::open(spec).map_err(|error| error.to_string())?;
        let mut own = Work::new(stage);
        (own.from, own.quick, own.time) = (arguments.from, arguments.quick, arguments.budget);
        own.shapes = arguments.shapes.as_deref().map(table).transpose()?;
        work(&own, &device, stdout()).map_err(|error| error.to_string())?;
        return Ok(Outcome::Fine);
    }
    // What the stages could not read, or this could not write, is said before they begin.
    arguments.shapes.as_deref().map(table).transpose()?;
    let folder = &arguments.output.clone().unwrap_or_else(|| {
        let numbered = (2..).map(|i| PathBuf::from(format!("qualify-{i}")));
        let mut folders = std::iter::once(PathBuf::from("qualify")).chain(numbered);
        folders.find(|folder| !folder.join(JSON).exists()).unwrap_or_default()
    });
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut plan = Plan::new();
    plan.budget = arguments.budget;
    plan.patience = Duration::from_secs(arguments.patience);
    if !arguments.only.is_empty() {
        let mut asked = Stage::ALL.to_vec();
        asked.retain(|stage| arguments.only.contains(stage));
        plan.stages = asked;
    }
    let shapes = arguments.shapes.as_deref();
    // What cannot be written now is said in the end.
    let report =
        stages(spec, &plan, (arguments.quick, shapes), &mut |report| drop(write(folder, report)), out)?;
    let written = write(folder, &report)?;
    writeln!(out, "{}", written.display())?;
    Ok(if report.is_right() { Outcome::Fine } else { Outcome::Found })
}

/// Ends this process when the one that follows it has ended: that holds the other end of the standard input.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut stdin(), &mut std::io::sink());
        std::process::exit(2);
    });
}

/// Runs the stages of a plan, each in a process of its own, and says what they came to. `keep` has what is done so far every
/// now and then: however this process may end, that is not lost.
pub(super) fn stages(
    spec: DeviceSpec,
    plan: &Plan,
    (quick, shapes): (bool, Option<&Path>),
    keep: &mut dyn FnMut(&Report),
    out: &mut impl Write,
) -> Result<Report, Failure> {
    let device = Device::open(spec).map_err(|error| error.to_string())?;
    let mut report = Report::new(Described::new(&device), quick);
    // The processes of the stages have the device for themselves.
    drop(device);
    let program =
        std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    writeln!(out, "{}, {}", report.device.name, report.device.arch)?;
    out.flush()?;
    let command = |stage: Stage, from, time: Option<Duration>| {
        let mut command = Command::new(&program);
        command.args(["qualify", "--child", stage.name(), "--from", &format!("{from}")]);
        if stage == Stage::Load {
            // What compiling takes shows when it is done: neither our cache nor the driver's has it.
            command.env("WARPWRIGHT_CACHE", "off").env("CUDA_CACHE_DISABLE", "1");
        }
        let device = spec.to_string();
        command.args(["--device", &device]).env("WARPWRIGHT_TEST_DEVICE", device);
        command.args(quick.then_some("--quick"));
        if let Some(time) = time {
            command.args(["--budget", &format!("{:.3}", time.as_secs_f64())]);
        }
        if let Some(shapes) = shapes {
            command.arg("--shapes").arg(shapes);
        }
        command
    };
    let mut lines = Lines { report, keep, kept: Instant::now() };
    let stages = warpwright_qualify::run(plan, command, &mut lines);
    report = Report { finished: true, stages, ..lines.report };
    for stage in &report.stages {
        summarise(out, stage)?;
    }
    Ok(report)
}

/// Bytes of a file with rows, at most: some files have no end.
const MAX_TABLE: u64 = 64 << 20;

/// A file with rows for `--tuning`.
pub(super) fn table(path: &Path) -> Result<Table, Failure> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map(|file| file.take(MAX_TABLE));
    let read = file.and_then(|mut file| file.read_to_string(&mut text));
    let read = read.map_err(|error| format!("{}: {error}", path.display()))?;
    if read as u64 == MAX_TABLE {
        return Err(format!("{}: it has {} MiB or more", path.display(), MAX_TABLE >> 20).into());
    }
    Ok(Table::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// The device by its own name, for other processes.
pub(super) fn chosen(device: DeviceSpec) -> DeviceSpec {
    match device {
        DeviceSpec::Auto if Device::cuda(0).is_ok() => DeviceSpec::Cuda(0),
        DeviceSpec::Auto => DeviceSpec::Vm,
        named => named,
    }
}

/// Writes all forms of the report; yields the page's path.
fn write(folder: &Path, report: &Report) -> Result<PathBuf, Failure> {
    let said = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut json = serde_json::to_string_pretty(report).map_err(|error| said(folder, &error))?;
    json.push('\n');
    let page = folder.join("qualify.md");
    let tuning = report.tuning().map_err(|error| format!("what was tuned: {error}"))?;
    let tuning = tuning.devices().next().is_some().then(|| tuning.to_string());
    for (path, text) in [
        (folder.join(JSON), Some(json)),
        (page.clone(), Some(report.page())),
        (folder.join("tuning"), tuning),
        (folder.join("roofline.svg"), report.roofline()),
    ] {
        match text {
            Some(text) => {
                // A reader finds the old file or the new one.
                let new = path.with_extension("new");
                std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path))
            }
            // That of an earlier run says nothing about this one.
            None if path.exists() => std::fs::remove_file(&path),
            None => Ok(()),
        }
        .map_err(|error| said(&path, &error))?;
    }
    Ok(page)
}

fn summarise(out: &mut impl Write, report: &StageReport) -> std::io::Result<()> {
    let wrong: Vec<_> = report.items.iter().filter_map(|item| Some((item, item.wrong.as_ref()?))).collect();
    let StageReport { stage, items, left_out, seconds, .. } = report;
    if report.not_begun {
        return writeln!(out, "{:<15} no time: {}", stage.name(), stage.description());
    }
    let right = items.len() - wrong.len();
    write!(out, "{:<15} {right} of {} right in {seconds:.1} s", stage.name(), items.len() + left_out)?;
    if *left_out > 0 {
        write!(out, ", no time for {left_out}")?;
    }
    writeln!(out, ": {}", stage.description())?;
    for (item, wrong) in wrong {
        writeln!(out, "  {}: {wrong}", item.name)?;
    }
    match &report.failure {
        Some(why) => writeln!(out, "  {why}"),
        None => Ok(()),
    }
}

/// Says what goes on, on standard error, and has what is done so far.
struct Lines<'a> {
    report: Report,
    keep: &'a mut dyn FnMut(&Report),
    /// When it was kept.
    kept: Instant,
}

/// How often that is kept.
const KEEP: Duration = Duration::from_secs(1);

impl Observer for Lines<'_> {
    fn stage(&mut self, stage: Stage) {
        self.report.stages.push(StageReport::new(stage));
        let _ = writeln!(stderr(), "{stage}: {}", stage.description());
    }

    fn item(&mut self, item: &ItemReport, done: usize, of: usize) {
        let verdict = if item.wrong.is_some() { "WRONG" } else { "right" };
        let _ = writeln!(stderr(), "  {done}/{of} {verdict} {:.2} s {}", item.seconds, item.name);
        if let Some(stage) = self.report.stages.last_mut() {
            stage.items.push(item.clone());
            stage.seconds += item.seconds;
        }
        if self.kept.elapsed() >= KEEP {
            (self.keep)(&self.report);
            self.kept = Instant::now();
        }
    }
}
