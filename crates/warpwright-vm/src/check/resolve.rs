//! From raw findings to those of a report: names, lines, allocations.

use super::finding::message;
use super::{AccessSite, AllocationRef, Finding, MemorySite, RawFinding, RawPlace, RawSite, SourceLine};
use crate::decode::NO_STATEMENT;
use crate::launch::Launch;
use crate::memory::SpaceKind;
use warpwright_ptx::ir::{Function, ItemKind, Module, StatementKind};

/// A finding, told in full.
pub(crate) fn resolve(launch: &Launch, kernel: &str, raw: RawFinding) -> Finding {
    let accesses: Vec<AccessSite> =
        std::iter::once(raw.first).chain(raw.second).map(|raw| site(launch, raw)).collect();
    let message = message(&raw.kind, &accesses);
    Finding {
        tool: raw.kind.tool(),
        severity: raw.kind.severity(),
        kind: raw.kind,
        kernel: kernel.to_owned(),
        count: raw.count,
        accesses,
        message,
    }
}

fn site(launch: &Launch, raw: RawSite) -> AccessSite {
    let meta = &launch.code.meta[raw.pc as usize];
    let module = &launch.module.ir;
    let function =
        launch.module.functions.get(meta.function as usize).and_then(|&index| module.functions().nth(index));
    let statement = (meta.statement != NO_STATEMENT).then_some(meta.statement);
    let in_text = function.zip(statement);
    let [x, y, z, _] = launch.shape.thread_index(raw.thread);
    AccessSite {
        action: raw.action,
        opcode: in_text.map_or("", |(function, statement)| opcode(function, statement)),
        function: function.map(|function| function.name.to_string()).unwrap_or_default(),
        statement,
        origin: meta.origin,
        source: in_text.and_then(|(function, statement)| source(module, function, statement)),
        block: launch.shape.block_index(raw.block),
        thread: [x, y, z],
        memory: raw.memory.map(|place| memory(launch, place)),
    }
}

fn opcode(function: &Function, statement: u32) -> &'static str {
    match function.statements().get(statement as usize).map(|statement| &statement.kind) {
        Some(StatementKind::Instruction(instruction)) => instruction.op.name(),
        _ => "",
    }
}

/// What the last `.loc` before a statement says.
fn source(module: &Module, function: &Function, statement: u32) -> Option<SourceLine> {
    let before = function.statements().get(..statement as usize)?;
    let loc = before.iter().rev().find_map(|statement| match &statement.kind {
        StatementKind::Loc(loc) => Some(loc),
        _ => None,
    })?;
    let file = module.items.iter().find_map(|item| match &item.kind {
        ItemKind::File(file) if file.index == loc.file => Some(file.path.clone()),
        _ => None,
    })?;
    Some(SourceLine { file, line: loc.line })
}

fn memory(launch: &Launch, place: RawPlace) -> MemorySite {
    let RawPlace { space, address, bytes } = place;
    let allocation = match space {
        SpaceKind::Global | SpaceKind::Generic | SpaceKind::Const => {
            launch.memory.lookup(address).or_else(|| launch.memory.nearest(address)).map(|found| {
                AllocationRef {
                    name: found.name.clone(),
                    base: found.base,
                    bytes: found.bytes,
                    offset: address.wrapping_sub(found.base) as i64,
                    freed: found.freed,
                }
            })
        }
        _ => None,
    };
    MemorySite { space, address, bytes, allocation }
}
