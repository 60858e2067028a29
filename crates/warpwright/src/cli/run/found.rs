//! The findings of a run, in the form that `--json` prints.

use super::locate::Location;
use crate::cli::json::object;
use serde::Serialize;
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// What was found, with its places.
pub(super) fn findings(found: &[vm::Finding], lines: &Renderer<'_>) -> Vec<impl Serialize + use<>> {
    let convert = |found: &vm::Finding| {
        let memory = found.accesses.iter().find_map(|access| access.memory.as_ref()?.allocation.as_ref());
        object! {
            // The check: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
            tool: found.tool.name(),
            // What it is, in a word that stays.
            kind: found.kind.name(),
            severity: match found.severity {
                vm::Severity::Error => "error",
                // What works on every device there is.
                vm::Severity::Warning => "warning",
            },
            message: found.message.clone(),
            kernel: found.kernel.clone(),
            count: found.count,
            // What the address is in or nearest to, of a finding about memory.
            allocation: memory.map(allocation),
            // Of a race both, the one that came first before the other.
            accesses: found.accesses.iter().map(|site| access(site, lines)).collect::<Vec<_>>(),
        }
    };
    found.iter().map(convert).collect()
}

/// What one thread did, the first of those that did it.
fn access(site: &vm::AccessSite, lines: &Renderer<'_>) -> impl Serialize + use<> {
    let memory = site.memory.as_ref();
    object! {
        #[serde(flatten)]
        place: Location::new(site.origin, site.source.as_ref(), lines),
        block: site.block,
        thread: site.thread,
        action: site.action.name(),
        space: memory.map(|memory| memory.space.name()),
        address: memory.map(|memory| memory.address),
        bytes: memory.map(|memory| memory.bytes),
    }
}

/// The allocation or variable that an address is in, or nearest to.
fn allocation(allocation: &vm::AllocationRef) -> impl Serialize + use<> {
    let arguments: Vec<_> = allocation.arguments.iter().map(|argument| argument.name.clone()).collect();
    object! {
        // What the command line gives an argument.
        name: match (arguments.first(), allocation.name.as_str()) {
            (Some(argument), given) if !given.is_empty() => format!("{argument} ({given})"),
            (_, name) => name.to_owned(),
        },
        // Those that point into it.
        arguments: arguments,
        address: allocation.base,
        bytes: allocation.bytes,
        // From the allocation's first byte to the address.
        offset: allocation.offset,
        // It was given back before.
        freed: allocation.freed,
    }
}

/// The trap of a report: why the kernel did not run to its end.
pub(super) fn trap(report: &vm::Report, lines: &Renderer<'_>) -> Option<impl Serialize + use<>> {
    let trap = report.trap.as_ref()?;
    let mut waiting: Vec<_> = trap.waiting.iter().collect();
    // Stable: places with as many threads stay in the order of the text.
    waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.threads));
    let waiting = waiting.into_iter().map(|waiting| {
        object! {
            #[serde(flatten)]
            place: Location::new(waiting.origin, waiting.source.as_ref(), lines),
            threads: waiting.threads,
        }
    });
    Some(object! {
        kind: trap.kind.name(),
        message: trap.message.clone(),
        kernel: trap.kernel.clone(),
        #[serde(flatten)]
        place: Location::new(trap.origin.unwrap_or(Origin::Unknown), trap.source.as_ref(), lines),
        block: trap.thread.map(|(block, _)| block),
        thread: trap.thread.map(|(_, thread)| thread),
        // Where threads were that went no further, most threads first.
        waiting: waiting.collect::<Vec<_>>(),
    })
}
