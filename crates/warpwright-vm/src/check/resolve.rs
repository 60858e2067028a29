//! Turns raw findings into those of a report, with names, lines and allocations.

use super::message::{ShownSite, message};
use super::{
    AccessSite, AllocationRef, ArgumentRef, Cause, Finding, FindingKind, MemorySite, RawFinding, RawPlace,
    RawSite, SourceLines,
};
use crate::decode::NO_STATEMENT;
use crate::launch::Launch;
use crate::memory::{NULL_ZONE, RANK_BITS, RANK_MASK, SHARED_WINDOW, SpaceKind, Window, window};
use crate::module::Loaded;
use warpwright_ptx::ir::{Function, StatementKind};
use warpwright_ptx::op::Op;

/// The findings of a launch, in the order of the text.
pub(crate) fn resolve(launch: &Launch, kernel: &str) -> Vec<Finding> {
    let mut all = launch.findings.all();
    // A read that races with the write that it waits for may come before it: that is one mistake.
    let races: Vec<(u32, SpaceKind)> = all
        .iter()
        .filter(|raw| matches!(raw.kind, FindingKind::Race { .. }))
        .flat_map(|raw| std::iter::once(raw.first).chain(raw.second))
        .filter_map(|site| Some((site.pc, site.memory?.space)))
        .collect();
    all.retain(|raw| {
        let read = match raw.kind {
            FindingKind::UninitializedMemory { .. } => Some(raw.first),
            FindingKind::UndefinedValue { cause: Cause::Memory, .. } => raw.second,
            _ => None,
        };
        let place = read.and_then(|read| Some((read.pc, read.memory?.space)));
        place.is_none_or(|place| !races.contains(&place))
    });
    let mut lines = SourceLines::new(&launch.module);
    let mut findings: Vec<Finding> =
        all.into_iter().map(|raw| tell(launch, kernel, raw, &mut lines)).collect();
    findings.sort_by_key(Finding::place);
    findings
}

/// A finding, told in full.
fn tell(launch: &Launch, kernel: &str, raw: RawFinding, lines: &mut SourceLines<'_>) -> Finding {
    let accesses: Vec<AccessSite> =
        std::iter::once(raw.first).chain(raw.second).map(|raw| site(launch, raw, lines)).collect();
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

/// A finding about an access of an earlier launch, and one of the present launch.
pub(crate) fn between(
    earlier: (&Launch, &mut SourceLines<'_>),
    later: (&Launch, &mut SourceLines<'_>),
    raw: RawFinding,
) -> Finding {
    let mut first = site(earlier.0, raw.first, earlier.1);
    let texts = [earlier.0, later.0].map(|launch| launch.module.text.get());
    if texts[0] != texts[1] {
        first.text = texts[0].cloned();
    }
    first.kernel = Some(earlier.0.kernel_name());
    let accesses: Vec<_> =
        std::iter::once(first).chain(raw.second.map(|second| site(later.0, second, later.1))).collect();
    let message = message(&raw.kind, &accesses);
    Finding {
        tool: raw.kind.tool(),
        severity: raw.kind.severity(),
        kind: raw.kind,
        kernel: later.0.kernel_name(),
        count: raw.count,
        accesses,
        message,
    }
}

fn site(launch: &Launch, raw: RawSite, lines: &mut SourceLines<'_>) -> AccessSite {
    let meta = &launch.code.meta[raw.pc as usize];
    let function = launch.module.function_at(raw.pc);
    let statement = (meta.statement != NO_STATEMENT).then_some(meta.statement);
    let [x, y, z, _] = launch.shape.thread_index(raw.thread);
    AccessSite {
        action: raw.action,
        opcode: launch.module.op(raw.pc).map_or("", Op::name),
        function: function.map(|function| function.name.to_string()).unwrap_or_default(),
        statement,
        origin: meta.origin,
        source: lines.of(raw.pc),
        block: launch.shape.block_index(raw.block),
        thread: [x, y, z],
        memory: raw.memory.map(|place| memory(launch, place)),
        kernel: None,
        text: None,
    }
}

impl Launch {
    /// The kernel's name.
    pub(crate) fn kernel_name(&self) -> String {
        self.code.functions[self.kernel as usize].name.clone()
    }
}

impl Loaded {
    /// The function that an instruction is of.
    pub(crate) fn function_at(&self, pc: u32) -> Option<&Function> {
        let function = self.code.meta[pc as usize].function;
        let index = *self.functions.get(function as usize)?;
        self.ir.functions().nth(index)
    }

    /// The origin of an instruction; `None` if it is not from the text.
    pub(crate) fn op(&self, pc: u32) -> Option<&Op> {
        let statement = self.code.meta[pc as usize].statement as usize;
        let statement = self.function_at(pc).and_then(|function| function.statements().get(statement));
        match statement.map(|statement| &statement.kind) {
            Some(StatementKind::Instruction(instruction)) => Some(&instruction.op),
            _ => None,
        }
    }
}

/// Where a place is, in words.
pub(crate) fn shown(launch: &Launch, place: RawPlace) -> String {
    ShownSite(&memory(launch, place)).to_string()
}

fn memory(launch: &Launch, place: RawPlace) -> MemorySite {
    let RawPlace { space, address, bytes, frame } = place;
    let allocation = match space {
        SpaceKind::Shared | SpaceKind::SharedCluster => shared_variable(launch, address, 0),
        SpaceKind::Generic if window(address) == Window::Shared => {
            shared_variable(launch, address, SHARED_WINDOW)
        }
        // What is near what should be a handle says nothing about it.
        SpaceKind::Texture
            if bytes == 0 && launch.memory.lookup(address).is_none_or(|at| at.base != address) =>
        {
            None
        }
        SpaceKind::Global | SpaceKind::Generic | SpaceKind::Const | SpaceKind::Texture => {
            global_allocation(launch, address)
        }
        SpaceKind::Local => frame.and_then(|frame| local_variable(launch, address, frame)),
        _ => None,
    };
    MemorySite { space, address, bytes, allocation }
}

/// The allocation or variable of global or constant memory that the address is in, or nearest to.
fn global_allocation(launch: &Launch, address: u64) -> Option<AllocationRef> {
    // What owns the page may end before the address, and another begin close behind it.
    let inside = launch.memory.lookup(address).filter(|found| address - found.base < found.bytes.max(1));
    let near = || launch.memory.nearest(address).filter(|found| is_near(address, found.base, found.bytes));
    let found = inside.or_else(near)?;
    if let Some((piece, freed)) = found.heap().and_then(|heap| heap.nearest(address)) {
        let (base, bytes) = piece;
        let offset = address.wrapping_sub(base) as i64;
        let arguments = arguments(launch, base, bytes);
        return Some(AllocationRef {
            name: "what `malloc` gave".into(),
            arguments,
            base,
            bytes,
            offset,
            freed,
        });
    }
    Some(AllocationRef {
        name: found.name.clone(),
        arguments: arguments(launch, found.base, found.bytes),
        base: found.base,
        bytes: found.bytes,
        offset: address.wrapping_sub(found.base) as i64,
        freed: found.freed,
    })
}

/// Whether an index that is wrong may have led from an allocation to an address outside of it. Pointers that are wrong
/// themselves lie anywhere, and no allocation says anything of them.
fn is_near(address: u64, base: u64, bytes: u64) -> bool {
    const MARGIN: u64 = 1 << 20;
    let distance = if address < base { base - address } else { (address - base).saturating_sub(bytes) };
    address >= NULL_ZONE && distance <= bytes.saturating_add(MARGIN)
}

/// The arguments of the launch that point into an allocation. A number as wide as an address counts as one if it lies
/// in an allocation: addresses of allocations are far from typical counts.
fn arguments(launch: &Launch, base: u64, bytes: u64) -> Vec<ArgumentRef> {
    let words = &launch.shape.params;
    let kernel = &launch.code.functions[launch.kernel as usize].name;
    let params = launch.module.kernels.get(kernel).map_or(&[][..], |kernel| &kernel.params);
    let mut found = Vec::new();
    for (index, param) in params.iter().enumerate() {
        let by_compiler = param.name.strip_prefix(&**kernel).and_then(|rest| rest.strip_prefix("_param_"));
        let number =
            by_compiler.and_then(|number| number.parse().ok()).filter(|number| *number as usize == index);
        // A structure may hold pointers, at multiples of their size.
        let end = param.offset + param.bytes;
        for place in (param.offset.next_multiple_of(8)..end).step_by(8).filter(|place| place + 8 <= end) {
            let (at, word) = (place - param.offset, (place / 4) as usize);
            let Some(&[low, high]) = words.get(word..word + 2) else { continue };
            let offset = (u64::from(high) << 32 | u64::from(low)).wrapping_sub(base);
            if offset < bytes.max(1) {
                let name = if at == 0 { param.name.clone() } else { format!("{}+{at}", param.name) };
                found.push(ArgumentRef { name, number: number.filter(|_| at == 0), offset });
            }
        }
    }
    found
}

/// The variable of local memory that the address is in, of the frame of a function that starts at `base`.
fn local_variable(launch: &Launch, address: u64, (function, base): (u32, u32)) -> Option<AllocationRef> {
    let code = launch.code.functions.get(function as usize)?;
    let offset = address.checked_sub(base.into())?;
    let mut regions = code.local_regions.iter().zip(&code.local_variables);
    let (&(start, bytes), id) = regions.find(|((start, bytes), _)| offset.wrapping_sub(*start) < *bytes)?;
    Some(AllocationRef {
        name: launch.module.function_at(code.entry)?.variable(*id).name.to_string(),
        arguments: Vec::new(),
        base: u64::from(base) + start,
        bytes,
        offset: (offset - start) as i64,
        freed: false,
    })
}

/// The variable of shared memory that the address is in, or nearest to; addresses are from `window` on.
fn shared_variable(launch: &Launch, address: u64, window: u64) -> Option<AllocationRef> {
    let rank = address & RANK_MASK;
    if rank >> RANK_BITS >= u64::from(launch.shape.cluster_blocks()) {
        return None;
    }
    let offset = address.wrapping_sub(window + rank);
    let distance = |&(_, &(start, bytes)): &(usize, &(u64, u64))| {
        if offset < start { start - offset } else { (offset - start).saturating_sub(bytes.saturating_sub(1)) }
    };
    let regions = &launch.shape.shared_regions;
    let (index, &(start, bytes)) = regions.iter().enumerate().min_by_key(distance)?;
    Some(AllocationRef {
        name: launch.shape.shared_names.get(index).cloned().unwrap_or_default(),
        arguments: Vec::new(),
        base: window + rank + start,
        bytes,
        offset: offset.wrapping_sub(start) as i64,
        freed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_says_something_of_what_is_near() {
        const MIB: u64 = 1 << 20;
        let base = 1 << 40;
        for (address, bytes, expected) in [
            (base, 16, true),
            (base + 16 + 16 + MIB, 16, true),
            (base + 16 + 16 + MIB + 1, 16, false),
            (base - 16 - MIB, 16, true),
            (base - 16 - MIB - 1, 16, false),
            (base + 9 * MIB, 4 * MIB, true),
            (base + 9 * MIB + 1, 4 * MIB, false),
            (0, 1 << 41, false),
            (u64::MAX, u64::MAX - base, true),
        ] {
            assert_eq!(is_near(address, base, bytes), expected, "{address:#x} {bytes}");
        }
    }
}
