//! Findings of the checks, as data.

use super::race::ProxyFence;
use super::source::SourceLine;
use crate::memory::{FaultKind, SpaceKind};
use crate::names::named;
use crate::render::{Renderer, symbol};
use std::fmt;
use std::sync::Arc;
use warpwright_ptx::ir::Origin;

/// Arguments that are named where many point into one allocation.
const MAX_ARGUMENTS: usize = 4;

named! {
    /// The check that a finding belongs to, with the name of NVIDIA's sanitizer tool.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Tool {
        /// Bounds, alignment, lifetime.
        Memcheck = "memcheck",
        /// Concurrent accesses without ordering.
        Racecheck = "racecheck",
        /// Reads of uninitialised data.
        Initcheck = "initcheck",
        /// Barriers and collectives that threads do not reach together.
        Synccheck = "synccheck",
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The kernel is wrong.
    Error,
    /// The kernel breaks a rule but works on every existing device.
    Warning,
}

/// The order in which the accesses of a race happened in this run. Another run may show another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// A read of a location that another thread wrote.
    ReadAfterWrite,
    /// A write to a location that another thread read.
    WriteAfterRead,
    /// Two writes.
    WriteAfterWrite,
}

/// The relation between the threads of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Between {
    /// An asynchronous copy and the thread that issued it.
    Copy,
    /// Lanes of one warp.
    Lanes,
    /// Warps of one block.
    Warps,
    /// Blocks.
    Blocks,
    /// Launches that may overlap: the later one is a programmatic dependent launch.
    Launches,
}

/// How a use of tensor memory is waited for, and so what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorWait {
    /// `tcgen05.commit`, and the mbarrier at which it arrives: a product, a copy or a shift.
    Commit,
    /// `tcgen05.wait::st`: a store.
    Stores,
    /// `tcgen05.wait::ld`: a load.
    Loads,
}

/// The kind of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// An invalid access. It was not performed.
    Access(FaultKind),
    /// Columns of tensor memory that are not freed when their block ends.
    TensorMemoryLeak {
        /// How many.
        columns: u32,
    },
    /// Two accesses without ordering, at least one of them a write.
    Race {
        /// The order in which they happened.
        hazard: Hazard,
        /// The relation between their threads.
        between: Between,
        /// The memory space.
        space: SpaceKind,
        /// Whether both write the same value.
        same_value: bool,
    },
    /// A read by `ld.global.nc` of memory that the launch writes, before or after the read; or that a launch writes which
    /// may overlap with it. Or a read by a texture or surface of memory that the launch has written.
    NonCoherent,
    /// An access through the asynchronous or the tensormap proxy to what a thread has written, without a proxy fence
    /// between the two.
    ProxyFence {
        /// The memory space.
        space: SpaceKind,
        /// The fence that is missing.
        missing: ProxyFence,
    },
    /// A register is used that a product of a warpgroup still uses, or a product uses one that no fence has made known to
    /// it.
    RegisterInFlight {
        /// There is no `wgmma.fence`; otherwise no `wgmma.wait_group`.
        unfenced: bool,
    },
    /// An access to tensor memory that an operation still writes or reads.
    TensorMemoryInFlight {
        /// What nobody has done.
        wait: TensorWait,
    },
    /// An access to shared memory of another block of the cluster, which nothing shows to have begun.
    UnstartedBlock,
    /// A read of memory that was never written.
    UninitializedMemory {
        /// The memory space.
        space: SpaceKind,
    },
    /// A value that nothing has given is used. The second access is where it was read.
    UndefinedValue {
        /// What it is used for.
        used: Use,
        /// Why it is undefined.
        cause: Cause,
    },
    /// An output that the kernel has not written, or not completely.
    UnwrittenOutput {
        /// The argument.
        argument: String,
        /// Its number of elements.
        elements: u64,
        /// The number of elements that were not written.
        missing: u64,
        /// The first of them.
        first: u64,
    },
    /// A part of a warp reached a barrier of the block that the whole warp must reach together.
    DivergentBarrier {
        /// The lanes that arrived.
        present: u32,
        /// The lanes that were expected.
        expected: u32,
    },
    /// A part of a warp is at an aligned barrier whose other lanes have exited. Devices since Volta do not wait for
    /// them.
    ExitedLanes {
        /// The lanes that arrived.
        present: u32,
        /// The lanes that have exited.
        exited: u32,
        /// Whether the barrier is for whole warps, to the letter.
        strict: bool,
    },
    /// Lanes named by a `.sync` instruction never arrived.
    MissingLanes {
        /// The lanes that arrived.
        present: u32,
        /// The lanes that the mask names.
        named: u32,
    },
    /// A lane executes a `.sync` instruction whose mask does not name it.
    UnnamedLane {
        /// The mask.
        named: u32,
    },
    /// Threads arrive at one barrier with different thread counts, or some with a count and some without.
    BarrierCount {
        /// The barrier.
        barrier: u32,
        /// The count that the barrier waits for; `None` for all threads.
        expected: Option<u32>,
        /// The count of this arrival.
        said: Option<u32>,
    },
}

/// The advice for a finding of a kind, with these accesses.
pub(super) fn advice_for(kind: &FindingKind, accesses: &[AccessSite]) -> Option<&'static str> {
    let is_copy =
        matches!(accesses, [first, ..] if matches!(first.action, Action::AsyncRead | Action::AsyncWrite));
    match *kind {
        FindingKind::Race { hazard, between: Between::Warps | Between::Lanes, space, same_value: false }
            if is_copy && space != SpaceKind::Tensor =>
        {
            FindingKind::Race { hazard, between: Between::Copy, space, same_value: false }.advice()
        }
        _ => kind.advice(),
    }
}

impl FindingKind {
    /// The check that reports this kind.
    pub const fn tool(&self) -> Tool {
        match self {
            FindingKind::Access(_) | FindingKind::TensorMemoryLeak { .. } => Tool::Memcheck,
            FindingKind::Race { .. }
            | FindingKind::NonCoherent
            | FindingKind::ProxyFence { .. }
            | FindingKind::RegisterInFlight { .. }
            | FindingKind::TensorMemoryInFlight { .. }
            | FindingKind::UnstartedBlock => Tool::Racecheck,
            FindingKind::UninitializedMemory { .. }
            | FindingKind::UndefinedValue { cause: Cause::Memory | Cause::Register(_), .. }
            | FindingKind::UnwrittenOutput { .. } => Tool::Initcheck,
            _ => Tool::Synccheck,
        }
    }

    /// The severity of this kind.
    pub const fn severity(&self) -> Severity {
        match self {
            FindingKind::Race { same_value: true, .. }
            | FindingKind::ExitedLanes { strict: false, .. }
            | FindingKind::Access(FaultKind::Constant | FaultKind::OtherLanes) => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Advice that applies to all findings of this kind.
    pub const fn advice(&self) -> Option<&'static str> {
        let (between, same_value) = match self {
            FindingKind::Race {
                between: Between::Blocks,
                space: SpaceKind::Shared,
                same_value: false,
                ..
            } => {
                return Some(
                    "let the blocks of the cluster meet between the two (`barrier.cluster`, `cluster.sync()`), or order \
                     them with an mbarrier; barriers of a block do not reach others",
                );
            }
            FindingKind::Race { space: SpaceKind::Tensor, .. } => {
                return Some(
                    "let the warps meet between the two, at a barrier or an mbarrier: behind `tcgen05.wait`, or behind the \
                     wait for the commit of an operation, and with `tcgen05.fence`s around",
                );
            }
            FindingKind::RegisterInFlight { unfenced: false } => {
                return Some(
                    "close the group of the product and wait for it first (`wgmma.commit_group`, `wgmma.wait_group`)",
                );
            }
            FindingKind::RegisterInFlight { unfenced: true } => {
                return Some(
                    "put `wgmma.fence` behind what writes registers of a product, and in front of the first product",
                );
            }
            FindingKind::TensorMemoryInFlight { wait } => {
                return Some(match wait {
                    TensorWait::Commit => {
                        "let the thread that issued it execute `tcgen05.commit`, wait at the mbarrier of that, and put \
                         `tcgen05.fence::after_thread_sync` behind the wait"
                    }
                    TensorWait::Stores => {
                        "let the warp that stored execute `tcgen05.wait::st`, and then meet with the thread that issues \
                         this"
                    }
                    TensorWait::Loads => {
                        "let the warp that loaded execute `tcgen05.wait::ld`, and then meet with the thread that issues \
                         this"
                    }
                });
            }
            FindingKind::UnstartedBlock => {
                return Some(
                    "the memory of a block is there from its beginning to its end: let the blocks of the cluster meet \
                     first (`barrier.cluster`, `cluster.sync()`)",
                );
            }
            FindingKind::Race { between, same_value, .. } => (between, same_value),
            FindingKind::ProxyFence { missing, .. } => {
                return Some(match missing {
                    ProxyFence::AsyncShared | ProxyFence::AsyncGlobal => {
                        "let the threads that wrote execute `fence.proxy.async` before they meet with the one that \
                         issues this, or let that one execute it in between; a barrier alone does not reach the \
                         asynchronous proxy"
                    }
                    ProxyFence::MapRelease => {
                        "let the threads that wrote execute `fence.proxy.tensormap::generic.release`, or write the map \
                         in shared memory and publish it with `tensormap.cp_fenceproxy`; whoever uses it executes \
                         `fence.proxy.tensormap::generic.acquire` behind that"
                    }
                    ProxyFence::MapAcquire => {
                        "the map is released: let the thread that uses it execute \
                         `fence.proxy.tensormap::generic.acquire` for it, behind what orders the release before it"
                    }
                });
            }
            FindingKind::TensorMemoryLeak { .. } => {
                return Some(
                    "free it with `tcgen05.dealloc`, by a warp of the block: who comes next on the multiprocessor waits \
                     for these columns",
                );
            }
            FindingKind::NonCoherent => {
                return Some(
                    "what is read with `.nc` is constant for as long as the launch is in flight, whatever orders the \
                     two: read it without",
                );
            }
            _ => return None,
        };
        Some(match (between, same_value) {
            (_, true) => "both write the same value, which works but is a race",
            (Between::Copy, _) => {
                "wait for the copy first: at its mbarrier, or for its group in the thread that started it \
                 (`cp.async.wait_group`, `cp.async.bulk.wait_group`, `wgmma.wait_group`), and let the others meet with \
                 that thread behind the wait"
            }
            (Between::Lanes, _) => {
                "a `bar.warp.sync` (`__syncwarp`) is missing between the two, or an atomic operation if both update one \
                 value"
            }
            (Between::Warps, _) => {
                "a barrier of the block (`bar.sync`, `__syncthreads`) is missing between the two, or an atomic operation \
                 if both update one value"
            }
            (Between::Launches, _) => {
                "the launches may overlap: put `griddepcontrol.wait` in front, in every thread that accesses what \
                 launches in flight access, and in every block of the launches between the two"
            }
            (Between::Blocks, _) => {
                "order them with a release and an acquire (`__threadfence` and a flag), or use atomics for both; barriers \
                 of a block do not reach others"
            }
        })
    }

    /// Its name in machine-readable reports.
    pub const fn name(&self) -> &'static str {
        match self {
            FindingKind::Access(FaultKind::OutOfBounds) => "out-of-bounds",
            FindingKind::Access(FaultKind::Misaligned) => "misaligned",
            FindingKind::Access(FaultKind::Freed) => "use-after-free",
            FindingKind::Access(FaultKind::Null) => "null",
            FindingKind::Access(FaultKind::WrongSpace) => "wrong-space",
            FindingKind::Access(FaultKind::Exited) => "exited-block",
            FindingKind::Access(FaultKind::ReadOnly) => "read-only",
            FindingKind::Access(FaultKind::Unmapped) => "unmapped",
            FindingKind::Access(FaultKind::NoAccess) => "no-access",
            FindingKind::Access(FaultKind::BadHandle) => "bad-handle",
            FindingKind::Access(FaultKind::Constant) => "constant-memory",
            FindingKind::Access(FaultKind::OtherLanes) => "other-lanes",
            FindingKind::Access(FaultKind::Multimem) => "multimem-address",
            FindingKind::Access(FaultKind::NotMultimem) => "no-multimem-address",
            FindingKind::TensorMemoryLeak { .. } => "tensor-memory-leak",
            FindingKind::Race { .. } => "race",
            FindingKind::NonCoherent => "non-coherent",
            FindingKind::ProxyFence { .. } => "proxy-fence",
            FindingKind::RegisterInFlight { unfenced: false } => "register-in-flight",
            FindingKind::RegisterInFlight { unfenced: true } => "unfenced-register",
            FindingKind::TensorMemoryInFlight { .. } => "tensor-memory-in-flight",
            FindingKind::UnstartedBlock => "unstarted-block",
            FindingKind::UninitializedMemory { .. }
            | FindingKind::UndefinedValue { cause: Cause::Memory | Cause::Register(_), .. } => {
                "uninitialized"
            }
            FindingKind::UnwrittenOutput { .. } => "unwritten-output",
            FindingKind::DivergentBarrier { .. } => "divergent-barrier",
            FindingKind::ExitedLanes { .. } => "exited-lanes",
            FindingKind::MissingLanes { .. }
            | FindingKind::UndefinedValue { cause: Cause::Lane { .. }, .. }
            | FindingKind::UnnamedLane { .. } => "missing-lane",
            FindingKind::BarrierCount { .. } => "barrier-count",
        }
    }
}

/// Why a value is undefined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It was in memory that was never written.
    Memory,
    /// It was in a register, of this name, that was never written on the way there.
    Register(String),
    /// A shuffle read it from a lane that did not take part.
    Lane {
        /// The lanes that took part.
        present: u32,
    },
}

/// What an undefined value is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Use {
    /// As the address of an access to memory.
    Address,
    /// As the guard of a branch or of another instruction.
    Guard,
    /// It is stored to global memory; with synccheck alone, to any.
    Store,
    /// As an operand of something that other threads, or the runtime, notice.
    Operand,
}

named! {
    /// The action of a thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Action {
        /// It read memory.
        Read = "read",
        /// It wrote memory.
        Write = "write",
        /// It read and wrote memory in one atomic operation.
        Atomic = "atomic",
        /// It issued an asynchronous copy that read memory.
        AsyncRead = "async-read",
        /// It issued an asynchronous copy that wrote memory.
        AsyncWrite = "async-write",
        /// It executed an instruction that does not access memory.
        Execute = "execute",
    }
}

impl Action {
    /// Whether it changes memory.
    pub(crate) const fn changes_memory(self) -> bool {
        matches!(self, Action::Write | Action::Atomic | Action::AsyncWrite)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Atomic => "atomic",
            Action::AsyncRead => "asynchronous read",
            Action::AsyncWrite => "asynchronous write",
            Action::Execute => "instruction",
        })
    }
}

/// An argument of the launch that points into an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentRef {
    /// The parameter's name; for a pointer in a structure, with its offset there: `p+8`.
    pub name: String,
    /// Its number, if a compiler has named it after the kernel: `add_param_1`.
    pub number: Option<u32>,
    /// The address that it points to, in bytes from the allocation's beginning.
    pub offset: u64,
}

/// The allocation or variable that contains an address, or is nearest to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationRef {
    /// The variable's name, or the host's name for it; empty if it has none.
    pub name: String,
    /// The arguments of the launch that point into it.
    pub arguments: Vec<ArgumentRef>,
    /// Address of its first byte.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The offset of the address from the base.
    pub offset: i64,
    /// Whether it was freed before.
    pub freed: bool,
}

impl fmt::Display for AllocationRef {
    /// What people know it by: the arguments, its name, or else its address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = symbol(&self.name);
        for (i, argument) in self.arguments.iter().take(MAX_ARGUMENTS).enumerate() {
            let and = if i > 0 { " and " } else { "" };
            match argument.number {
                Some(number) => write!(f, "{and}parameter {number}")?,
                None => write!(f, "{and}`{}`", argument.name)?,
            }
            if argument.offset > 0 {
                write!(f, " (from byte {} on)", argument.offset)?;
            }
        }
        match (self.arguments.len(), self.name.as_str()) {
            (0, "") => write!(f, "the allocation at {:#x}", self.base),
            (0, _) => write!(f, "`{name}`"),
            (_, "") => Ok(()),
            (_, _) => write!(f, " ({name})"),
        }
    }
}

/// The location of an access in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySite {
    /// The memory space.
    pub space: SpaceKind,
    /// The address: generic for global memory, relative to the beginning of the space for others.
    pub address: u64,
    /// The width of the access in bytes.
    pub bytes: u32,
    /// The allocation there, or the nearest one.
    pub allocation: Option<AllocationRef>,
}

/// An access or other action of one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessSite {
    /// The action.
    pub action: Action,
    /// The instruction's opcode without its modifiers; empty for actions without an instruction in the text.
    pub opcode: &'static str,
    /// The function.
    pub function: String,
    /// Index of the statement in the function.
    pub statement: Option<u32>,
    /// The instruction's origin.
    pub origin: Origin,
    /// Its source line, if known.
    pub source: Option<SourceLine>,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
    /// The memory location, for accesses to memory.
    pub memory: Option<MemorySite>,
    /// The kernel, if it is of an earlier launch.
    pub kernel: Option<String>,
    /// The PTX that the origin refers to, if it is another one than that of the finding's kernel.
    pub text: Option<Arc<str>>,
}

impl AccessSite {
    /// Whether it reads by a texture or surface.
    pub(crate) fn is_by_texture(&self) -> bool {
        self.action == Action::Read && matches!(self.opcode, "tex" | "tld4" | "suld")
    }

    /// What its instruction takes a handle of.
    pub(crate) fn object(&self) -> &'static str {
        if self.opcode.starts_with("su") { "surface" } else { "texture" }
    }
}

/// A finding of a check. Findings of one kind at one location are merged and counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The check.
    pub tool: Tool,
    /// The kind.
    pub kind: FindingKind,
    /// The severity.
    pub severity: Severity,
    /// The kernel that was launched.
    pub kernel: String,
    /// The number of warp instructions in which it occurred. For a race, an access that is repeated without ordering
    /// in between may count once.
    pub count: u64,
    /// The accesses involved; for a race both, the earlier one first.
    pub accesses: Vec<AccessSite>,
    /// The finding in words, with advice.
    pub message: String,
}

impl Finding {
    /// What to do about it: the advice for its kind, or for an asynchronous copy that others meet before its end.
    pub fn advice(&self) -> Option<&'static str> {
        advice_for(&self.kind, &self.accesses)
    }

    /// A finding that a kernel has left elements of an output unwritten. Only the caller knows which arguments are
    /// outputs.
    pub fn unwritten_output(
        kernel: &str,
        argument: &str,
        elements: u64,
        missing: u64,
        first: u64,
    ) -> Finding {
        let kind = FindingKind::UnwrittenOutput { argument: argument.to_owned(), elements, missing, first };
        let which = if missing == 1 {
            format!("1 element of {elements} that was never written: element {first}")
        } else {
            format!("{missing} elements of {elements} that were never written: the first is element {first}")
        };
        let message = format!("the output `{argument}` has {which}");
        let (tool, severity, kernel) = (kind.tool(), kind.severity(), kernel.to_owned());
        Finding { tool, kind, severity, kernel, count: 1, accesses: Vec::new(), message }
    }

    /// Where it is in the text: what reports are sorted by.
    pub(crate) fn place(&self) -> (String, u32) {
        self.accesses
            .first()
            .map_or((String::new(), 0), |site| (site.function.clone(), site.statement.unwrap_or(0)))
    }
}

/// As a [`Renderer`] shows it that knows no PTX.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Renderer::new().finding(self).trim_end())
    }
}
