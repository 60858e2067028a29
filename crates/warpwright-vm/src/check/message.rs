//! What a finding is, which rule it breaks and what to do, in words.

use super::race::ProxyFence;
use super::{AccessSite, Action, AllocationRef, Cause, FindingKind, MemorySite, Use};
use crate::memory::{FaultKind, SpaceKind};
use crate::render::symbol;
use std::fmt;

struct Thread<'a>(&'a AccessSite);

impl fmt::Display for Thread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.0.block, self.0.thread);
        write!(f, "thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})")?;
        match &self.0.kernel {
            Some(kernel) => write!(f, " of kernel `{}`", symbol(kernel)),
            None => Ok(()),
        }
    }
}

/// Writes where an access went.
pub(super) struct ShownSite<'a>(pub(super) &'a MemorySite);

impl fmt::Display for ShownSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = self.0;
        write!(f, "{:#x}", site.address)?;
        if site.bytes > 0 {
            write!(f, " in {} memory", site.space.name())?;
        }
        let Some(allocation) = &site.allocation else { return Ok(()) };
        let AllocationRef { bytes, offset, freed, .. } = *allocation;
        let was = if freed { ", which was freed" } else { "" };
        match u64::try_from(offset) {
            // A handle.
            Ok(0) if bytes == 0 => {
                write!(f, ", {allocation}{}", if freed { ", which was destroyed" } else { "" })
            }
            Err(_) => {
                write!(f, ", {} bytes before {allocation} of {bytes} bytes{was}", offset.unsigned_abs())
            }
            Ok(at) if at < bytes => write!(f, ", byte {at} of {allocation} of {bytes} bytes{was}"),
            Ok(at) if at == bytes => write!(f, ", just past {allocation} of {bytes} bytes{was}"),
            Ok(at) => write!(f, ", {} bytes past the end of {allocation} of {bytes} bytes{was}", at - bytes),
        }
    }
}

/// Says what a finding is, which rule it breaks and what to do.
pub(super) fn message(kind: &FindingKind, accesses: &[AccessSite]) -> String {
    let Some(first) = accesses.first() else { return String::new() };
    let who = Thread(first);
    let site = first.memory.as_ref();
    let place = site.map(|site| ShownSite(site).to_string()).unwrap_or_default();
    let width = site.map_or(0, |site| site.bytes);
    match kind {
        FindingKind::Access(FaultKind::BadHandle) => {
            format!("`{}` of {who} has the handle {place}: it is that of no {}", first.opcode, first.object())
        }
        FindingKind::Access(fault) => {
            let is_multimem = site.is_some_and(|site| site.space == SpaceKind::Multimem);
            let what = match fault {
                FaultKind::OutOfBounds => "is outside every allocation and variable of its space",
                FaultKind::Misaligned => "is misaligned: the address must be a multiple of the size",
                FaultKind::Freed => "is to memory that was freed",
                FaultKind::Null => "goes through a null pointer",
                FaultKind::WrongSpace => "has an address of another state space; convert it with `cvta`",
                FaultKind::Exited => {
                    "is to shared memory of a block that may have exited: let the blocks of the cluster meet at \
                     `barrier.cluster` before they exit"
                }
                FaultKind::ReadOnly => "changes memory that is read only",
                FaultKind::Constant => {
                    "is to constant memory, which PTX leaves undefined outside of `.const`, and GPUs do: the host's \
                     address of a constant variable is for copies; in a kernel, convert it with `cvta.const`"
                }
                FaultKind::OtherLanes => {
                    "is to lanes of tensor memory of another warp, which PTX leaves undefined; GPUs access the warp's own \
                     lanes in their place: its number modulo 4 gives bits 21 and 22 of the address"
                }
                FaultKind::Unmapped if is_multimem => {
                    "is to a part of a multicast object to which no memory is bound"
                }
                FaultKind::Unmapped => "is to reserved addresses where no memory is mapped",
                FaultKind::NoAccess => "is to memory that the device was given no access to",
                FaultKind::Multimem => {
                    "is to a multimem address, which `multimem` instructions alone may access: others need the address \
                     where the memory itself is mapped"
                }
                FaultKind::NotMultimem => {
                    "is to an address that is no multimem address: map a multicast object (`cuMulticastCreate`, \
                     `cuMemMap`), and give its address"
                }
                FaultKind::BadHandle => "",
            };
            format!("{} of {width} bytes at {place}, by {who}, {what}", first.action)
        }
        FindingKind::TensorMemoryLeak { columns } => {
            let advice = kind.advice().unwrap_or_default();
            format!(
                "{columns} columns of tensor memory, allocated by {who}, are left when the block ends: {advice}"
            )
        }
        FindingKind::Race { .. } => {
            let second = accesses.get(1).unwrap_or(first);
            let advice = super::finding::advice_for(kind, accesses).unwrap_or_default();
            format!(
                "{} by {} races with the {} by {who} at {place}: {advice}",
                second.action,
                Thread(second),
                first.action
            )
        }
        FindingKind::RegisterInFlight { unfenced } => {
            let advice = kind.advice().unwrap_or_default();
            let opcode = accesses.get(1).unwrap_or(first).opcode;
            match unfenced {
                false => format!("{who} uses a register of `{opcode}`, which may be under way: {advice}"),
                true => {
                    format!("a register of `{}`, executed by {who}, is not fenced: {advice}", first.opcode)
                }
            }
        }
        FindingKind::TensorMemoryInFlight { .. } => {
            let second = accesses.get(1).unwrap_or(first);
            let advice = kind.advice().unwrap_or_default();
            format!(
                "{} of {width} bytes at {place}, by {who}, while `{}` of {} may be under way: {advice}",
                first.action,
                second.opcode,
                Thread(second)
            )
        }
        FindingKind::UnstartedBlock => {
            let advice = kind.advice().unwrap_or_default();
            format!(
                "{} of {width} bytes at {place}, by {who}, is to shared memory of a block that may not have begun: {advice}",
                first.action
            )
        }
        FindingKind::ProxyFence { missing, .. } => {
            let second = accesses.get(1).unwrap_or(first);
            let advice = kind.advice().unwrap_or_default();
            let (of_map, proxy) = match missing {
                ProxyFence::AsyncShared | ProxyFence::AsyncGlobal => ("", "asynchronous"),
                ProxyFence::MapRelease | ProxyFence::MapAcquire => (" of a tensor map", "tensormap"),
            };
            format!(
                "{}{of_map} by {} may not see the {} by {who} at {place}: the {proxy} proxy sees it behind a proxy fence; \
                 {advice}",
                second.action,
                Thread(second),
                first.action
            )
        }
        FindingKind::NonCoherent => {
            let second = accesses.get(1).unwrap_or(first);
            let (read, written) =
                if first.action == Action::Read { (first, second) } else { (second, first) };
            if read.is_by_texture() {
                return format!(
                    "`{}` by {} reads what the {} by {} has written in the same launch, at {place}: caches of \
                     textures and surfaces do not see that, whatever orders the two; read it in a later launch",
                    read.opcode,
                    Thread(read),
                    written.action,
                    Thread(written)
                );
            }
            let advice = kind.advice().unwrap_or_default();
            let launch =
                if written.kernel.is_some() { "a launch that may overlap" } else { "the same launch" };
            format!(
                "non-coherent read by {} of what the {} by {} changes in {launch}, at {place}: {advice}",
                Thread(read),
                written.action,
                Thread(written)
            )
        }
        FindingKind::UninitializedMemory { .. } => {
            format!("{} of {width} bytes at {place}, by {who}: they were never written", first.action)
        }
        FindingKind::UndefinedValue { used, cause } => {
            let opcode = first.opcode;
            let use_ = match used {
                Use::Address => format!("the address of `{opcode}`, executed by {who}, depends on"),
                Use::Guard => format!("whether {who} executes `{opcode}` depends on"),
                Use::Store if site.is_none() => format!("`{opcode}`, executed by {who}, stores"),
                Use::Store => format!("{} of {width} bytes at {place}, by {who}, stores", first.action),
                Use::Operand => format!("an operand of `{opcode}`, executed by {who}, depends on"),
            };
            let read = accesses.get(1);
            match cause {
                Cause::Memory => {
                    let site = read.and_then(|read| read.memory.as_ref());
                    let from = site.map(|site| format!(": {} bytes at {}", site.bytes, ShownSite(site)));
                    format!("{use_} a value that was never written{}", from.unwrap_or_default())
                }
                Cause::Register(name) => {
                    format!("{use_} the value of `{name}`, which was never written on the way there")
                }
                Cause::Lane { present } => format!(
                    "{use_} what `{}` reads from a lane that does not take part: there are lanes {present:#010x} only",
                    read.map_or("", |read| read.opcode)
                ),
            }
        }
        // It has no access that would be told of.
        FindingKind::UnwrittenOutput { .. } => String::new(),
        FindingKind::DivergentBarrier { present, expected } => format!(
            "`{}` is reached by lanes {present:#010x} of the warp of {who}, and by lanes {:#010x} not or from \
             elsewhere: all must execute it together",
            first.opcode,
            expected & !present
        ),
        FindingKind::ExitedLanes { present, exited, .. } => format!(
            "`{}` is for whole warps and is reached by lanes {present:#010x} of the warp of {who}, while lanes \
             {exited:#010x} have exited: devices before Volta would wait for them",
            first.opcode
        ),
        FindingKind::MissingLanes { present, named } => format!(
            "`{}` names lanes {named:#010x} and lanes {:#010x} never arrive, in the warp of {who}",
            first.opcode,
            named & !present
        ),
        FindingKind::UnnamedLane { named } => {
            format!("`{}` is executed by {who}, which its mask {named:#010x} does not name", first.opcode)
        }
        FindingKind::BarrierCount { barrier, expected, said } => {
            let expected =
                expected.map_or("all threads, without a count".into(), |count| format!("{count} threads"));
            let said = said.map_or("no count".into(), |count| format!("a count of {count}"));
            format!(
                "barrier {barrier} waits for {expected}, and {who} comes with {said}: all must say the same"
            )
        }
    }
}
