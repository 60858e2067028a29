//! What a run has found, in the form that `--json` prints and that is shown to people.

use super::locate::{Locator, Place};
use super::memory_map::MemoryMap;
use serde::Serialize;
use warpwright_ptx::diag::Severity;
use warpwright_ptx::ir::Origin;
use warpwright_vm::{FaultKind, Report, SpaceKind, TrapKind};

/// Findings of one kind at one place.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The check: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub(super) tool: &'static str,
    /// What it is, in one word that stays.
    pub(super) kind: &'static str,
    /// `error`, or `warning` for what may be meant.
    #[serde(serialize_with = "severity")]
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) kernel: String,
    /// How often it was found.
    pub(super) count: u64,
    /// Where the memory is, of a finding about memory.
    pub(super) allocation: Option<Allocation>,
    /// The access that it is about, and the other one if there are two.
    pub(super) accesses: Vec<Access>,
}

/// The allocation that an address is in, or nearest to.
#[derive(Debug, Serialize)]
pub(super) struct Allocation {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// From the allocation's first byte to the address.
    pub(super) offset: i64,
}

/// What one thread did, the first of those that did it.
#[derive(Debug, Serialize)]
pub(super) struct Access {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) block: Option<[u32; 3]>,
    pub(super) thread: Option<[u32; 3]>,
    pub(super) address: Option<u64>,
    pub(super) bytes: Option<u32>,
    /// `reads`, `writes`, ….
    pub(super) action: &'static str,
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
}

fn severity<S: serde::Serializer>(severity: &Severity, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(severity)
}

/// The findings of a report.
pub(super) fn findings(report: &Report, locator: &Locator<'_>, memory: &MemoryMap) -> Vec<Finding> {
    let mut findings = Vec::new();
    for fault in &report.faults {
        let action = if fault.write { "writes" } else { "reads" };
        let (kind, rule) = fault_kind(fault.kind);
        let space = space_name(fault.space);
        let allocation = match fault.space {
            SpaceKind::Generic | SpaceKind::Global | SpaceKind::Const => memory.nearest(fault.address),
            _ => None,
        };
        let (block, thread) = fault.thread;
        let what = if fault.write { "write" } else { "read" };
        let mut message = format!("{space}{what} of {} bytes {rule}", fault.bytes);
        if let (Some(allocation), FaultKind::OutOfBounds | FaultKind::Freed) = (&allocation, fault.kind) {
            message += &format!(": {}", allocation.describe(fault.bytes));
        }
        findings.push(Finding {
            tool: "memcheck",
            kind,
            severity: Severity::Error,
            message,
            kernel: report.kernel.clone(),
            count: fault.count,
            allocation,
            accesses: vec![Access {
                place: locator.place(fault.origin),
                block: Some(block),
                thread: Some(thread),
                address: Some(fault.address),
                bytes: Some(fault.bytes),
                action,
            }],
        });
    }
    findings
}

/// The trap of a report.
pub(super) fn trap(report: &Report, locator: &Locator<'_>) -> Option<Trap> {
    let trap = report.trap.as_ref()?;
    Some(Trap {
        kind: match trap.kind {
            TrapKind::Instruction => "instruction",
            TrapKind::Unsupported => "unsupported",
            TrapKind::BadBranch => "bad-branch",
            TrapKind::BadCall => "bad-call",
            TrapKind::StackOverflow => "stack-overflow",
            TrapKind::BadAtomic => "bad-atomic",
            TrapKind::BadBarrier => "bad-barrier",
            TrapKind::BadFree => "bad-free",
            TrapKind::Assertion => "assertion",
            TrapKind::Deadlock => "deadlock",
            TrapKind::Budget => "budget",
            _ => "other",
        },
        message: trap.message.clone(),
        kernel: trap.kernel.clone(),
        place: locator.place(trap.origin.unwrap_or(Origin::Unknown)),
        block: trap.thread.map(|(block, _)| block),
        thread: trap.thread.map(|(_, thread)| thread),
    })
}

fn fault_kind(kind: FaultKind) -> (&'static str, &'static str) {
    match kind {
        FaultKind::OutOfBounds => ("out-of-bounds", "is out of bounds"),
        FaultKind::Misaligned => ("misaligned", "is not aligned to its size"),
        FaultKind::Freed => ("use-after-free", "is in memory that was given back"),
        FaultKind::Null => ("null", "is through a null pointer"),
        FaultKind::WrongSpace => ("wrong-space", "is to an address of another space"),
        FaultKind::ReadOnly => ("read-only", "is to memory that cannot be written"),
        _ => ("invalid", "is not allowed"),
    }
}

fn space_name(space: SpaceKind) -> &'static str {
    match space {
        SpaceKind::Generic => "",
        SpaceKind::Global => "global ",
        SpaceKind::Const => "constant ",
        SpaceKind::Shared => "shared ",
        SpaceKind::Local => "local ",
        SpaceKind::Param => "parameter ",
        _ => "",
    }
}

impl Allocation {
    /// Where an access of that many bytes lies.
    fn describe(&self, width: u32) -> String {
        let Allocation { name, bytes, offset, .. } = self;
        let end = i128::from(*offset) + i128::from(width) - i128::from(*bytes);
        let before = -i128::from(*offset);
        if before > 0 {
            format!("{before} bytes before `{name}`, which has {bytes} bytes")
        } else if end > i128::from(width) {
            format!("{} bytes past the end of `{name}`, which has {bytes} bytes", end - i128::from(width))
        } else if end > 0 {
            format!("at byte {offset} of `{name}`, which has {bytes} bytes")
        } else {
            format!("at byte {offset} of `{name}`")
        }
    }
}
