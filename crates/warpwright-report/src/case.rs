//! What formats for continuous integration are made of: cases, each with its problems.

use crate::{Access, Event, Finding, Launch, Severity, Site, Trap};
use warpwright_vm::render::symbol;

/// A launch, or all launches of a kernel by a program, or the rest of what a program did. It passes unless a problem is
/// an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub(crate) name: String,
    /// The file that has the PTX, or the program.
    pub(crate) file: String,
    /// Whether lines of the PTX are lines of the file.
    pub(crate) is_ptx: bool,
    pub(crate) seconds: f64,
    pub(crate) problems: Vec<Problem>,
    /// What was printed.
    pub(crate) output: String,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The check.
    pub(crate) tool: String,
    /// What it is, in a word that stays; unique for the check.
    pub(crate) kind: String,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    /// The text for people.
    pub(crate) rendered: String,
    /// The kernel, as the module names it.
    pub(crate) kernel: Option<String>,
    /// How often it was found.
    pub(crate) count: u64,
    /// Where it is, and other places that have to do with it, each with what happened there.
    pub(crate) places: Vec<(Site, String)>,
}

/// `thread (1,0,0) of block (0,0,0)`.
fn who(block: [u32; 3], thread: [u32; 3]) -> String {
    let [[bx, by, bz], [x, y, z]] = [block, thread];
    format!("thread ({x},{y},{z}) of block ({bx},{by},{bz})")
}

impl From<&Finding> for Problem {
    fn from(finding: &Finding) -> Problem {
        let label = |access: &Access| match &access.kernel {
            Some(kernel) => format!(
                "{} by {}, in kernel `{}`",
                access.action,
                who(access.block, access.thread),
                symbol(kernel)
            ),
            None => format!("{} by {}", access.action, who(access.block, access.thread)),
        };
        let places = finding.accesses.iter().map(|access| (access.place.clone(), label(access)));
        Problem {
            tool: finding.tool.clone(),
            kind: finding.kind.clone(),
            severity: finding.severity,
            message: finding.message.clone(),
            rendered: finding.rendered.clone(),
            kernel: Some(finding.kernel.clone()),
            count: finding.count,
            places: places.collect(),
        }
    }
}

impl From<&Trap> for Problem {
    fn from(trap: &Trap) -> Problem {
        let by = trap.block.zip(trap.thread).map(|(block, thread)| who(block, thread));
        let first = (trap.place != Site::default()).then(|| (trap.place.clone(), by.unwrap_or_default()));
        let waiting = trap.waiting.iter().filter(|waiting| waiting.place != trap.place).map(|waiting| {
            let label = match waiting.threads {
                1 => "1 thread was here".to_owned(),
                threads => format!("{threads} threads were here"),
            };
            (waiting.place.clone(), label)
        });
        Problem {
            tool: "trap".to_owned(),
            kind: trap.kind.clone(),
            severity: Severity::Error,
            message: trap.message.clone(),
            rendered: trap.rendered.clone(),
            kernel: Some(trap.kernel.clone()),
            count: 1,
            places: first.into_iter().chain(waiting).collect(),
        }
    }
}

impl Problem {
    /// The name of its rule.
    pub(crate) fn rule(&self) -> String {
        format!("{}/{}", self.tool, self.kind)
    }

    /// One that is no kernel's.
    fn of_program(tool: &str, kind: &str, message: String, event: &Event) -> Problem {
        Problem {
            tool: tool.to_owned(),
            kind: kind.to_owned(),
            severity: Severity::Error,
            message,
            rendered: event.text(),
            kernel: None,
            count: 1,
            places: Vec::new(),
        }
    }
}

impl From<&Launch> for Case {
    fn from(launch: &Launch) -> Case {
        let findings = launch.findings.iter().map(Problem::from);
        Case {
            name: symbol(&launch.kernel).into_owned(),
            file: launch.file.clone(),
            is_ptx: true,
            seconds: launch.seconds,
            problems: findings.chain(launch.trap.as_ref().map(Problem::from)).collect(),
            output: launch.output.clone(),
        }
    }
}

impl Case {
    /// The cases of what the CUDA driver has reported of a program: one for the program itself, with calls that failed and
    /// with leaks, then one for each kernel that had problems.
    pub fn of_events<'a>(program: &str, events: impl IntoIterator<Item = &'a Event>) -> Vec<Case> {
        let case = |name: &str| Case {
            name: name.to_owned(),
            file: program.to_owned(),
            is_ptx: false,
            seconds: 0.0,
            problems: Vec::new(),
            output: String::new(),
        };
        let mut cases = vec![case(program)];
        for event in events {
            let problem = match event {
                Event::Finding { finding, .. } => Problem::from(finding),
                Event::Trap { trap, .. } => Problem::from(trap),
                Event::Condition { handle, message, .. } => {
                    let message = format!("conditional node of {handle:#x}: {message}");
                    Problem::of_program("api", "condition", message, event)
                }
                Event::Api { function, error, name, message, .. } => {
                    let why = message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                    let message = format!("{function} returned {name} ({error}){why}");
                    Problem::of_program("api", "error", message, event)
                }
                Event::Leak { what, bytes, .. } => {
                    let of = if *bytes > 0 { format!(" of {bytes} bytes") } else { String::new() };
                    let message = format!("{what}{of} was never given back");
                    Problem::of_program("api", "leak", message, event)
                }
                Event::Repeated { .. }
                | Event::Assumed(_)
                | Event::Refused { .. }
                | Event::End { .. }
                | Event::Unknown => continue,
            };
            let Some(kernel) = problem.kernel.as_deref().map(|kernel| symbol(kernel).into_owned()) else {
                cases[0].problems.push(problem);
                continue;
            };
            match cases[1..].iter_mut().find(|case| case.name == kernel) {
                Some(case) => case.problems.push(problem),
                None => cases.push(Case { problems: vec![problem], ..case(&kernel) }),
            }
        }
        cases
    }

    /// The case with another name than the kernel's, such as that of a test.
    pub fn named(mut self, name: &str) -> Case {
        name.clone_into(&mut self.name);
        self
    }

    /// Whether nothing is wrong but what works on every existing device.
    pub fn passes(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity == Severity::Warning)
    }
}
