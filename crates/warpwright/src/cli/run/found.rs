//! What a run has found, in the form that `--json` prints and that is shown to people.

use super::locate::Place;
use serde::Serialize;
use warpwright_ptx::diag::Severity;
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// Findings of one kind at one place.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// The check: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub(super) tool: &'static str,
    /// What it is, in a word that stays.
    pub(super) kind: &'static str,
    /// `error`, or `warning` for what works on every device there is.
    #[serde(serialize_with = "severity")]
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) kernel: String,
    /// How often it was found.
    pub(super) count: u64,
    /// What the address is in or nearest to, of a finding about memory.
    pub(super) allocation: Option<Allocation>,
    /// The access that it is about. Of a race both, the one that came first before the other.
    pub(super) accesses: Vec<Access>,
}

/// The allocation or variable that an address is in, or nearest to.
#[derive(Debug, Serialize)]
pub(super) struct Allocation {
    pub(super) name: String,
    /// The arguments that point into it.
    pub(super) arguments: Vec<String>,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// From the allocation's first byte to the address.
    pub(super) offset: i64,
    /// It was given back before.
    pub(super) freed: bool,
}

/// What one thread did, the first of those that did it.
#[derive(Debug, Serialize)]
pub(super) struct Access {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    /// `read`, `write`, `atomic`, `async-read`, `async-write`, or `execute` where it is not about memory.
    pub(super) action: &'static str,
    /// `global`, `shared`, …
    pub(super) space: Option<&'static str>,
    pub(super) address: Option<u64>,
    pub(super) bytes: Option<u32>,
}

/// Why the kernel did not run to its end.
#[derive(Debug, Serialize)]
pub(super) struct Trap {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) kernel: String,
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) block: Option<[u32; 3]>,
    pub(super) thread: Option<[u32; 3]>,
    /// Where threads were that went no further, most threads first.
    pub(super) waiting: Vec<Waiting>,
}

/// Threads that were at one instruction when the launch ended.
#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) threads: u64,
}

fn severity<S: serde::Serializer>(severity: &Severity, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(severity)
}

/// What was found, with its places.
pub(super) fn findings(found: &[vm::Finding], lines: &Renderer<'_>) -> Vec<Finding> {
    let convert = |found: &vm::Finding| Finding {
        tool: found.tool.name(),
        kind: found.kind.name(),
        severity: match found.severity {
            vm::Severity::Error => Severity::Error,
            vm::Severity::Warning => Severity::Warning,
        },
        message: found.message.clone(),
        kernel: found.kernel.clone(),
        count: found.count,
        allocation: found
            .accesses
            .iter()
            .find_map(|access| access.memory.as_ref()?.allocation.as_ref())
            .map(Allocation::from),
        accesses: found.accesses.iter().map(|site| access(site, lines)).collect(),
    };
    found.iter().map(convert).collect()
}

fn access(site: &vm::AccessSite, lines: &Renderer<'_>) -> Access {
    let memory = site.memory.as_ref();
    Access {
        place: Place::new(site.origin, site.source.as_ref(), lines),
        block: site.block,
        thread: site.thread,
        action: site.action.name(),
        space: memory.map(|memory| memory.space.name()),
        address: memory.map(|memory| memory.address),
        bytes: memory.map(|memory| memory.bytes),
    }
}

impl From<&vm::AllocationRef> for Allocation {
    fn from(allocation: &vm::AllocationRef) -> Self {
        let arguments = allocation.arguments.iter().map(|argument| argument.name.clone()).collect();
        // What the command line gives an argument.
        let name = match (allocation.arguments.first(), allocation.name.as_str()) {
            (Some(argument), given) if !given.is_empty() => format!("{} ({given})", argument.name),
            (_, name) => name.to_owned(),
        };
        Allocation {
            name,
            arguments,
            address: allocation.base,
            bytes: allocation.bytes,
            offset: allocation.offset,
            freed: allocation.freed,
        }
    }
}

/// The trap of a report.
pub(super) fn trap(report: &vm::Report, lines: &Renderer<'_>) -> Option<Trap> {
    let trap = report.trap.as_ref()?;
    let mut waiting: Vec<Waiting> = trap
        .waiting
        .iter()
        .map(|waiting| Waiting {
            place: Place::new(waiting.origin, waiting.source.as_ref(), lines),
            threads: waiting.threads,
        })
        .collect();
    // Stable: places with as many threads stay in the order of the text.
    waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.threads));
    Some(Trap {
        kind: trap.kind.name(),
        message: trap.message.clone(),
        kernel: trap.kernel.clone(),
        place: Place::new(trap.origin.unwrap_or(Origin::Unknown), trap.source.as_ref(), lines),
        block: trap.thread.map(|(block, _)| block),
        thread: trap.thread.map(|(_, thread)| thread),
        waiting,
    })
}
