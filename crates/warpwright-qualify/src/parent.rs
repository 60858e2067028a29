//! Runs stages in processes of their own: one that fails is reported and the others go on, and one that hangs is ended.

use crate::event::{Event, Finding};
use crate::stages::Stage;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How stages are run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The time for all of them.
    pub budget: Option<Duration>,
    /// The longest time without a sign of life, after which a process counts as hung.
    pub patience: Duration,
}

impl Plan {
    /// All stages, without a limit of time.
    pub fn new() -> Self {
        Plan { stages: Stage::ALL.to_vec(), budget: None, patience: Duration::from_secs(120) }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Plan::new()
    }
}

/// What an item came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemReport {
    /// Its name.
    pub name: String,
    /// What it found.
    pub findings: Vec<Finding>,
    /// What is wrong, if anything is.
    pub wrong: Option<String>,
    /// Seconds.
    pub seconds: f64,
}

/// What a stage came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    /// The stage.
    pub stage: Stage,
    /// Its items, as far as they were begun.
    pub items: Vec<ItemReport>,
    /// Items for which there was no time.
    pub left_out: usize,
    /// Whether there was no time for any, so that their number is not known.
    pub not_begun: bool,
    /// Why the stage as a whole could not be done.
    pub failure: Option<String>,
    /// Seconds.
    pub seconds: f64,
}

impl StageReport {
    /// A stage of which nothing has been done.
    pub fn new(stage: Stage) -> Self {
        StageReport { stage, items: Vec::new(), left_out: 0, not_begun: false, failure: None, seconds: 0.0 }
    }

    /// Whether all that was begun is right.
    pub fn is_right(&self) -> bool {
        self.failure.is_none() && self.items.iter().all(|item| item.wrong.is_none())
    }
}

/// What the processes say, as it comes.
pub trait Observer {
    /// A stage begins.
    fn stage(&mut self, stage: Stage);
    /// An item has ended, the `done`th of `of`.
    fn item(&mut self, item: &ItemReport, done: usize, of: usize);
}

/// Runs the stages of a plan. `command` makes the process that calls [`work`](crate::work) for a stage, from an item on,
/// within a time if there is one; its standard output is that of the events.
pub fn run(
    plan: &Plan,
    command: impl Fn(Stage, usize, Option<Duration>) -> Command,
    observer: &mut dyn Observer,
) -> Vec<StageReport> {
    let start = Instant::now();
    let mut reports = Vec::new();
    for (place, &stage) in plan.stages.iter().enumerate() {
        observer.stage(stage);
        let (before, begun) = (start.elapsed(), Instant::now());
        let mut report = StageReport::new(stage);
        let mut of = None;
        loop {
            // A stage leaves half of the time to those behind it.
            let share = if place + 1 == plan.stages.len() { 1 } else { 2 };
            let left = plan.budget.map(|budget| budget.saturating_sub(before) / share);
            let left = left.map(|time| time.saturating_sub(begun.elapsed()));
            let from = report.items.len();
            let ended = match left {
                // What no process has said is not known.
                Some(Duration::ZERO) => {
                    report.left_out = of.map_or(0, |of| of - from);
                    report.not_begun = of.is_none();
                    break;
                }
                left => process(command(stage, from, left), plan.patience, &mut report, &mut of, observer),
            };
            if let Err(why) = ended {
                report.failure = Some(why);
                break;
            }
            let done = report.items.len() + report.left_out;
            if of.is_some_and(|of| done >= of) {
                break;
            }
            if report.items.len() == from {
                report.failure = Some("its process ended before it began an item".into());
                break;
            }
        }
        report.seconds = begun.elapsed().as_secs_f64();
        reports.push(report);
    }
    reports
}

/// Follows one process to its end.
fn process(
    mut command: Command,
    patience: Duration,
    report: &mut StageReport,
    of: &mut Option<usize>,
    observer: &mut dyn Observer,
) -> Result<(), String> {
    let child = command.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("its process cannot be started: {error}"))?;
    // It ends when this process ends, however that may be, and with it this end of its input.
    let _input = child.stdin.take();
    let events = read(&mut child);
    let mut item: Option<(ItemReport, Instant)> = None;
    let mut launch = String::new();
    let wrong = loop {
        match events.recv_timeout(patience) {
            Ok(Ok(Event::Items(count))) => *of = Some(count),
            Ok(Ok(Event::Begin(_, name))) => {
                launch.clear();
                let begun = ItemReport { name, findings: Vec::new(), wrong: None, seconds: 0.0 };
                item = Some((begun, Instant::now()));
            }
            Ok(Ok(Event::Launch(kernel))) => launch = kernel,
            Ok(Ok(Event::Result(finding))) => {
                if let Some((item, _)) = &mut item {
                    item.findings.push(finding);
                }
            }
            Ok(Ok(Event::End(wrong))) => {
                if let Some((item, begun)) = item.take() {
                    end(item, begun, wrong, report, *of, observer);
                }
            }
            Ok(Ok(Event::OutOfTime(from))) => report.left_out = of.unwrap_or(from) - from,
            Ok(Err(why)) => {
                let _ = child.kill();
                break Some(why);
            }
            Err(RecvTimeoutError::Timeout) => {
                // It has not said anything for long: nothing that it does is of use any more.
                let _ = child.kill();
                break Some(format!("no sign of life for {} s", patience.as_secs_f64()));
            }
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    let status = child.wait().map_err(|error| format!("the end of its process is not known: {error}"))?;
    let wrong = wrong.or_else(|| (!status.success()).then(|| format!("the process ended with {status}")));
    match (item, wrong) {
        (Some((item, begun)), wrong) => {
            let mut wrong = wrong.unwrap_or_else(|| "the process ended in the middle of it".into());
            if !launch.is_empty() {
                wrong += &format!("; the last launch was {launch}");
            }
            end(item, begun, Some(wrong), report, *of, observer);
            Ok(())
        }
        (None, Some(wrong)) => Err(wrong),
        (None, None) => Ok(()),
    }
}

fn end(
    item: ItemReport,
    begun: Instant,
    wrong: Option<String>,
    report: &mut StageReport,
    of: Option<usize>,
    observer: &mut dyn Observer,
) {
    let item = ItemReport { wrong, seconds: begun.elapsed().as_secs_f64(), ..item };
    observer.item(&item, report.items.len() + 1, of.unwrap_or(0));
    report.items.push(item);
}

/// The events of a process, read by a thread of their own, so that silence is noticed.
fn read(child: &mut Child) -> Receiver<Result<Event, String>> {
    let (sender, receiver) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.map_err(|error| format!("its events cannot be read: {error}"));
                let event = line.and_then(|line| {
                    serde_json::from_str(&line).map_err(|error| format!("`{line}` is no event: {error}"))
                });
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}
