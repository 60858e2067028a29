//! Findings and traps.

use crate::Site;
use serde::{Deserialize, Serialize};
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The kernel is wrong.
    Error,
    /// The kernel breaks a rule but works on every existing device.
    Warning,
}

/// A finding of a check. It stands for all of its kind at its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The check: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub tool: String,
    /// What it is, in a word that stays: `out-of-bounds`.
    pub kind: String,
    /// The severity.
    pub severity: Severity,
    /// What it is, in a sentence, with advice.
    pub message: String,
    /// The kernel that was launched, as the module names it.
    pub kernel: String,
    /// How often it was found.
    pub count: u64,
    /// What the address is in or nearest to, of a finding about memory.
    pub allocation: Option<Allocation>,
    /// The accesses involved; of a race both, the one that came first before the other.
    pub accesses: Vec<Access>,
    /// The text for people, with lines of the source and of the PTX.
    #[serde(default)]
    pub rendered: String,
}

/// What one thread did, the first of those that did it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Access {
    /// Its instruction.
    #[serde(flatten)]
    pub place: Site,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
    /// `read`, `write`, `atomic`, `async-read`, `async-write`, or `execute` for what is no access to memory.
    pub action: String,
    /// The memory space, of an access to memory.
    pub space: Option<String>,
    /// The address: generic for global memory, relative to the beginning of the space for others.
    pub address: Option<u64>,
    /// The width in bytes.
    pub bytes: Option<u32>,
    /// The kernel, if it is of an earlier launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// The allocation or variable that an address is in, or nearest to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Allocation {
    /// The variable's name, or the host's name for it; empty if it has none.
    pub name: String,
    /// The arguments of the launch that point into it.
    pub arguments: Vec<String>,
    /// Address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// From its first byte to the address.
    pub offset: i64,
    /// Whether it was given back before.
    pub freed: bool,
}

/// Why a kernel did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trap {
    /// What it is, in a word that stays: `deadlock`.
    pub kind: String,
    /// What it is, in a sentence.
    pub message: String,
    /// The kernel, as the module names it.
    pub kernel: String,
    /// The instruction, if one is to blame.
    #[serde(flatten)]
    pub place: Site,
    /// `%ctaid`, if one thread is to blame.
    pub block: Option<[u32; 3]>,
    /// `%tid`, if one thread is to blame.
    pub thread: Option<[u32; 3]>,
    /// Where threads were that went no further, most threads first.
    pub waiting: Vec<Waiting>,
    /// In a deadlock, the mbarriers that threads wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mbarriers: Vec<MbarrierWait>,
    /// The text for people, with lines of the source and of the PTX.
    #[serde(default)]
    pub rendered: String,
}

/// Threads that were at one instruction when a launch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waiting {
    /// The instruction.
    #[serde(flatten)]
    pub place: Site,
    /// The number of threads.
    pub threads: u64,
}

/// Threads that waited at one instruction for a phase of an mbarrier when a launch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MbarrierWait {
    /// The instruction.
    #[serde(flatten)]
    pub place: Site,
    /// Address and variable of the mbarrier.
    pub mbarrier: String,
    /// `%ctaid` of the threads.
    pub block: [u32; 3],
    /// The parity of the phase, which is the present one of the mbarrier.
    pub parity: u8,
    /// Arrivals that the phase still expects.
    pub pending: u32,
    /// Arrivals that it expects in all.
    pub expected: u32,
    /// Bytes that are outstanding; negative: more have come than are expected.
    pub bytes: i32,
    /// The number of threads.
    pub threads: u64,
    /// Threads of the cluster that have not exited and do not wait for this phase.
    pub others: u64,
}

impl MbarrierWait {
    fn new(wait: &vm::MbarrierWait, renderer: &Renderer<'_>) -> MbarrierWait {
        MbarrierWait {
            place: Site::new(wait.origin, wait.source.as_ref(), renderer),
            mbarrier: wait.mbarrier.clone(),
            block: wait.block,
            parity: wait.parity,
            pending: wait.pending,
            expected: wait.expected,
            bytes: wait.bytes,
            threads: wait.threads,
            others: wait.others,
        }
    }
}

impl From<vm::Severity> for Severity {
    fn from(severity: vm::Severity) -> Severity {
        match severity {
            vm::Severity::Error => Severity::Error,
            vm::Severity::Warning => Severity::Warning,
        }
    }
}

impl Finding {
    /// A finding, with its places and its text as the renderer shows them.
    pub fn new(found: &vm::Finding, renderer: &Renderer<'_>) -> Finding {
        let memory = found.accesses.iter().find_map(|access| access.memory.as_ref()?.allocation.as_ref());
        Finding {
            tool: found.tool.name().to_owned(),
            kind: found.kind.name().to_owned(),
            severity: found.severity.into(),
            message: found.message.clone(),
            kernel: found.kernel.clone(),
            count: found.count,
            allocation: memory.map(Allocation::new),
            accesses: found.accesses.iter().map(|site| Access::new(site, renderer)).collect(),
            rendered: renderer.finding(found),
        }
    }
}

impl Access {
    fn new(site: &vm::AccessSite, renderer: &Renderer<'_>) -> Access {
        let memory = site.memory.as_ref();
        let mut place = Site::new(site.origin, site.source.as_ref(), renderer);
        // The instruction of an earlier launch may be in another text.
        if let Some(text) = &site.text {
            (place.ptx_line, place.ptx) = Renderer::of_ptx("", text).ptx(site.origin).unzip();
        }
        Access {
            place,
            block: site.block,
            thread: site.thread,
            action: site.action.name().to_owned(),
            space: memory.map(|memory| memory.space.name().to_owned()),
            address: memory.map(|memory| memory.address),
            bytes: memory.map(|memory| memory.bytes),
            kernel: site.kernel.clone(),
        }
    }
}

impl Allocation {
    fn new(allocation: &vm::AllocationRef) -> Allocation {
        Allocation {
            name: allocation.name.clone(),
            arguments: allocation.arguments.iter().map(|argument| argument.name.clone()).collect(),
            address: allocation.base,
            bytes: allocation.bytes,
            offset: allocation.offset,
            freed: allocation.freed,
        }
    }
}

impl Trap {
    /// A trap, with its places and its text as the renderer shows them.
    pub fn new(trap: &vm::Trap, renderer: &Renderer<'_>) -> Trap {
        let waiting = trap.waiting.iter().map(|waiting| Waiting {
            place: Site::new(waiting.origin, waiting.source.as_ref(), renderer),
            threads: waiting.threads,
        });
        let mut waiting: Vec<_> = waiting.collect();
        // Stable: places with as many threads stay in the order of the text.
        waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.threads));
        Trap {
            kind: trap.kind.name().to_owned(),
            message: trap.message.clone(),
            kernel: trap.kernel.clone(),
            place: Site::new(trap.origin.unwrap_or(Origin::Unknown), trap.source.as_ref(), renderer),
            block: trap.thread.map(|(block, _)| block),
            thread: trap.thread.map(|(_, thread)| thread),
            waiting,
            mbarriers: trap.mbarriers.iter().map(|wait| MbarrierWait::new(wait, renderer)).collect(),
            rendered: renderer.trap(trap),
        }
    }
}
