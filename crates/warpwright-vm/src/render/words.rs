//! One-line descriptions of findings, and of the accesses involved.

use super::symbol;
use crate::check::{
    AccessSite, Action, AllocationRef, Between, Cause, Finding, FindingKind, ProxyFence, Use,
};
use crate::memory::{FaultKind, SpaceKind};

/// The kind of an access; its thread and location are shown beside the lines.
pub(super) fn title(finding: &Finding) -> String {
    let first = finding.accesses.first();
    let noun = |access: Option<&AccessSite>| match access.map_or(Action::Execute, |access| access.action) {
        Action::Read => "a read",
        Action::Write => "a write",
        Action::Atomic => "an atomic operation",
        Action::AsyncRead => "an asynchronous read",
        Action::AsyncWrite => "an asynchronous write",
        Action::Execute => "an instruction",
    };
    let space =
        first.and_then(|access| access.memory.as_ref()).map_or("memory", |memory| memory.space.name());
    match &finding.kind {
        FindingKind::Access(FaultKind::BadHandle) => {
            let (opcode, object) = first.map_or(("", ""), |access| (access.opcode, access.object()));
            format!("`{opcode}` has a handle that is that of no {object}")
        }
        FindingKind::Access(fault) => {
            let rule = match fault {
                FaultKind::OutOfBounds => "is out of bounds",
                FaultKind::Misaligned => "is not aligned to its size",
                FaultKind::Freed => "is to memory that was given back",
                FaultKind::Null => "is through a null pointer",
                FaultKind::WrongSpace => "is to an address of another state space",
                FaultKind::Exited => "is to shared memory of a block that may have exited",
                FaultKind::ReadOnly => "is to memory that cannot be written",
                FaultKind::OtherLanes => "is to lanes of another warp, which PTX leaves undefined",
                FaultKind::Constant => "is to constant memory, which PTX leaves undefined",
                FaultKind::Unmapped if space == SpaceKind::Multimem.name() => "is to a part without memory",
                FaultKind::Unmapped => "is to reserved addresses where no memory is mapped",
                FaultKind::NoAccess => "is to memory that the device was given no access to",
                FaultKind::Multimem => "is to a multimem address",
                FaultKind::NotMultimem => "is to an address that is no multimem address",
                FaultKind::BadHandle => "",
            };
            format!("{} of {space} memory {rule}", noun(first))
        }
        FindingKind::TensorMemoryLeak { columns } => {
            format!("{columns} columns of tensor memory are not freed")
        }
        FindingKind::Race { between, .. } => {
            let between = match between {
                Between::Copy => "an asynchronous copy and a thread",
                Between::Lanes => "lanes of a warp",
                Between::Warps => "warps",
                Between::Blocks => "blocks",
                Between::Launches => "launches",
            };
            let second = noun(finding.accesses.get(1).or(first));
            format!("{} and {second} of {space} memory race, between {between}", noun(first))
        }
        FindingKind::RegisterInFlight { unfenced: false } => {
            "a register is used that a product of a warpgroup may still be using".to_owned()
        }
        FindingKind::RegisterInFlight { unfenced: true } => {
            "a product of a warpgroup has a register that is not fenced".to_owned()
        }
        FindingKind::TensorMemoryInFlight { .. } => {
            format!("{} of tensor memory that an operation may still be using", noun(first))
        }
        FindingKind::UnstartedBlock => {
            format!("{} of shared memory of a block that may not have begun", noun(first))
        }
        FindingKind::ProxyFence { missing: ProxyFence::MapRelease | ProxyFence::MapAcquire, .. } => {
            format!("a use of a tensor map without a proxy fence behind {} of it", noun(first))
        }
        FindingKind::ProxyFence { .. } => {
            let second = noun(finding.accesses.get(1).or(first));
            format!("{second} of {space} memory without a proxy fence behind {}", noun(first))
        }
        FindingKind::NonCoherent => {
            if let Some(read) = finding.accesses.iter().find(|read| read.is_by_texture()) {
                return format!("a {} reads what the same launch has written", read.object());
            }
            let writes = match first.is_some_and(|access| access.kernel.is_some()) {
                true => "a launch writes that may overlap",
                false => "the launch writes",
            };
            format!("a non-coherent read of global memory that {writes}")
        }
        FindingKind::UninitializedMemory { .. } => {
            format!("{} of {space} memory that was never written", noun(first))
        }
        FindingKind::UndefinedValue { used, cause } => {
            let what = match used {
                Use::Address => "an address depends on".to_owned(),
                Use::Guard => "a guard depends on".to_owned(),
                Use::Store if first.is_none_or(|access| access.memory.is_none()) => "a write of".to_owned(),
                Use::Store => format!("a write to {space} memory of"),
                Use::Operand => "an operand depends on".to_owned(),
            };
            match cause {
                Cause::Memory => format!("{what} a value that was never written"),
                Cause::Register(name) => format!("{what} the value of `{name}`, which was never written"),
                Cause::Lane { .. } => format!("{what} a value from a lane that does not take part"),
            }
        }
        FindingKind::DivergentBarrier { .. } => "a barrier is reached by a part of the warp alone".to_owned(),
        FindingKind::ExitedLanes { exited, .. } => {
            format!("a barrier for whole warps, of which lanes {exited:#010x} have exited")
        }
        FindingKind::MissingLanes { present, named } => {
            format!("lanes {:#010x} are named by the mask and never arrive", named & !present)
        }
        FindingKind::UnnamedLane { named } => {
            format!("a lane executes it that its mask {named:#010x} does not name")
        }
        // What the virtual GPU says stands for itself.
        FindingKind::BarrierCount { .. } | FindingKind::UnwrittenOutput { .. } => finding.message.clone(),
    }
}

/// Where in an allocation an address lies.
pub(super) fn position(allocation: &AllocationRef) -> String {
    let AllocationRef { bytes, offset, freed, .. } = *allocation;
    let was = if freed { ", which was given back" } else { "" };
    match u64::try_from(offset) {
        Err(_) => {
            let before = offset.unsigned_abs();
            format!("the address is {before} bytes before {allocation}, of {bytes} bytes{was}")
        }
        Ok(0) if bytes == 0 => {
            let was = if freed { ", which was destroyed" } else { "" };
            format!("the handle is that of {allocation}{was}")
        }
        Ok(at) if at < bytes => format!("the address is at byte {at} of {allocation}, of {bytes} bytes{was}"),
        Ok(at) if at == bytes => format!("the address is just past {allocation}, of {bytes} bytes{was}"),
        Ok(at) => format!("the address is {} bytes past {allocation}, of {bytes} bytes{was}", at - bytes),
    }
}

/// `thread (1,0,0) of block (0,0,0)`.
pub(super) fn who(([bx, by, bz], [x, y, z]): ([u32; 3], [u32; 3])) -> String {
    format!("thread ({x},{y},{z}) of block ({bx},{by},{bz})")
}

/// `thread (1,0,0) of block (0,0,0) writes 4 bytes at 0x10`.
pub(super) fn deed(site: &AccessSite) -> String {
    let who = who((site.block, site.thread));
    let Some(memory) = &site.memory else { return who };
    if memory.bytes == 0 {
        return format!("{who} has the handle {:#x}", memory.address);
    }
    let plural = if memory.bytes == 1 { "" } else { "s" };
    let action = match site.action {
        Action::Read => "reads",
        Action::Write => "writes",
        Action::Atomic => "updates",
        Action::AsyncRead => "copies from",
        Action::AsyncWrite => "copies to",
        Action::Execute => "accesses",
    };
    let of =
        site.kernel.as_ref().map(|kernel| format!(", in kernel `{}`", symbol(kernel))).unwrap_or_default();
    format!("{who} {action} {} byte{plural} at {:#x}{of}", memory.bytes, memory.address)
}
