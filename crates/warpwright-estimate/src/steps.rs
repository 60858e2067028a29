//! What each instruction of a kernel asks of the machine.

use crate::estimate::Workload;
use crate::machine::Instruction;
use crate::path::Path;
use crate::pipes::{Cost, Memory};
use crate::simulate::{Kind, Request, Step};
use std::collections::HashMap;
use warpwright_kernels::tune::DeviceModel;
use warpwright_vm::{Fetches, LineCounters, WINDOWS};

/// Bytes of the first-level cache beyond the shared memory that a multiprocessor gives at most.
const CACHE_BESIDE_SHARED: f64 = 28.0 * 1024.0;

/// Shared memory that a block takes for itself.
const OF_A_BLOCK: f64 = 1024.0;

/// Bytes of a sector.
pub(crate) const SECTOR: f64 = 32.0;

/// Lines that the first-level cache looks up in a cycle.
const TAGS: f64 = 4.0;

/// What a sector costs the L2 cache beyond its bytes if only a part of it is written.
const PARTIAL: f64 = 4.0;

/// The part of the L2 cache that keeps what a launch uses again.
const KEPT: f64 = 0.8;

/// What becomes of the sectors that are asked for.
pub(crate) struct Caches {
    /// The window in which the first-level cache keeps one.
    window: usize,
    /// Of those that the launch has not loaded before, and not written, the part that memory has to do with.
    loaded: f64,
    written: f64,
    /// Whether it still has the buffers that are said to be in it.
    kept: bool,
    /// See [`narrow_bytes`].
    narrow_bytes: f64,
}

impl Caches {
    /// With that many blocks on each multiprocessor at once.
    pub(crate) fn new(work: &Workload<'_>, device: &DeviceModel, resident: u32) -> Caches {
        let shared = f64::from(resident) * (work.shared() as f64 + OF_A_BLOCK);
        let cache = device.shared as f64 + CACHE_BESIDE_SHARED - shared;
        let kept = fits(work, device, work.cached);
        let (loaded, written) = dram_part(work, device, resident, kept);
        Caches {
            window: window(work, device, resident, cache),
            loaded,
            written,
            kept,
            narrow_bytes: narrow_bytes(device),
        }
    }
}

/// The window of time in which the first-level cache keeps a sector: the longest in which the resident warps bring in no
/// more than it holds.
fn window(work: &Workload<'_>, device: &DeviceModel, resident: u32, cache: f64) -> usize {
    let counters = work.counters;
    let (warps, counted) = (work.warps() as f64, work.counted());
    let resident = u64::from(resident).min(work.own_blocks(device)) as f64 * warps;
    let instructions = counters.warp_instructions as f64 / counted;
    let fits = |window: usize| {
        let sectors: u64 = counters.lines.iter().map(|line| line.fetches.loaded[window]).sum();
        let brought = sectors as f64 * SECTOR / counted * resident;
        let part = (WINDOWS[window] as f64 / instructions).min(1.0);
        brought * part <= cache.max(0.0)
    };
    (0..WINDOWS.len()).rev().find(|&window| fits(window)).unwrap_or(0)
}

/// Whether the L2 cache keeps what was in it before, or what the launch touches.
fn fits(work: &Workload<'_>, device: &DeviceModel, of: impl Fn(u64) -> bool) -> bool {
    let touched = |(address, bytes, all): &(u64, u64, Fetches)| {
        let of_sample = (all.first_loaded + all.first_written) as f64 * SECTOR;
        let touched = of_sample * work.blocks as f64 / work.counters.blocks.max(1) as f64;
        if of(*address) { touched.min(*bytes as f64) } else { 0.0 }
    };
    work.counters.fetches.iter().map(touched).sum::<f64>() <= device.l2 as f64 * KEPT
}

/// Of the sectors that a sample touched first, the part that comes from memory in the whole launch. Neighbours that are
/// resident at the same time share what they read; what fits into the L2 cache is read once. Loads of what is there
/// already are left out.
fn dram_part(work: &Workload<'_>, device: &DeviceModel, resident: u32, kept: bool) -> (f64, f64) {
    let (sample, grid) = (work.counters.blocks.max(1) as f64, work.blocks as f64);
    let wave = (f64::from(resident) * f64::from(device.multiprocessors)).min(grid);
    let fits = fits(work, device, |_| true);
    let of = |first: fn(&Fetches) -> u64, read: bool| {
        let (mut sampled, mut needed) = (0.0, 0.0);
        for (address, bytes, fetches) in &work.counters.fetches {
            if read && kept && (work.cached)(*address) {
                continue;
            }
            let first = first(fetches) as f64 * SECTOR;
            let bytes = *bytes as f64;
            let all = first * grid / sample;
            let again = (first * wave / sample).min(bytes) * (grid / wave);
            sampled += all;
            needed += if fits { all.min(bytes) } else { all.min(again.max(bytes.min(all))) };
        }
        if sampled > 0.0 { needed / sampled } else { 0.0 }
    };
    (of(|fetches| fetches.first_loaded, true), of(|fetches| fetches.first_written, false))
}

/// Bytes of accesses of less than 16 bytes a lane that the first-level cache moves in a cycle: those of cards that are not
/// for data centres are half as wide (measured by `gpu-benches`).
fn narrow_bytes(device: &DeviceModel) -> f64 {
    if matches!(device.arch.sm, 86 | 87 | 89) { 64.0 } else { 128.0 }
}

/// The instructions with what they ask of memory, on average.
pub(crate) fn steps(
    work: &Workload<'_>,
    costs: &[Cost],
    path: &Path,
    lines: &HashMap<u32, Vec<&LineCounters>>,
    caches: &Caches,
) -> Vec<Step> {
    let counted = work.counted();
    // Executions of the copies of each line, of all warps that were counted.
    let mut executed: HashMap<u32, f64> = HashMap::new();
    for block in &path.blocks {
        for at in block.range.clone() {
            if let (Some(line), Some(Memory::Global { .. } | Memory::Shared)) =
                (work.code.instructions()[at].line, costs[at].memory)
            {
                *executed.entry(line).or_default() += block.times * counted;
            }
        }
    }
    let step = |(at, instruction): (usize, &Instruction)| {
        let cost = costs[at];
        let mut request = Request { passes: cost.busy, ..Request::default() };
        let all = instruction.line.and_then(|line| Some((lines.get(&line)?, executed.get(&line).copied()?)));
        if let (Some(memory), Some((all, times))) = (cost.memory, all.filter(|(_, times)| *times > 0.0)) {
            let sum = |of: &dyn Fn(&LineCounters) -> u64| {
                all.iter().map(|line| of(line)).sum::<u64>() as f64 / times
            };
            match memory {
                Memory::Shared => request.passes = sum(&|line| line.shared.transactions).max(cost.busy),
                Memory::Global { load } => {
                    let tags = sum(&|line| line.fetches.lines) / TAGS;
                    let bytes = sum(&|line| line.global.bytes);
                    let narrow = if all.iter().all(|line| line.global.bytes < 16 * line.lanes) {
                        bytes / caches.narrow_bytes
                    } else {
                        0.0
                    };
                    request.passes = sum(&|line| line.fetches.passes).max(tags).max(narrow).max(cost.busy);
                    let there = |line: &LineCounters| {
                        caches.kept && line.fetched.is_some_and(|buffer| (work.cached)(buffer))
                    };
                    let first = sum(&|line| if there(line) { 0 } else { line.fetches.first_loaded })
                        * caches.loaded
                        + sum(&|line| line.fetches.first_written) * caches.written;
                    request.l2 = SECTOR
                        * if load && instruction.base() != "ATOM" && instruction.base() != "ATOMG" {
                            sum(&|line| line.fetches.loaded[caches.window])
                        } else {
                            let sectors = sum(&|line| line.global.transactions);
                            sectors + PARTIAL * (sectors - bytes / SECTOR).max(0.0)
                        };
                    request.dram = (first * SECTOR).min(request.l2);
                }
                _ => {}
            }
        }
        Step {
            cost,
            control: instruction.control,
            reads: instruction.reads,
            kind: kind(instruction),
            request,
        }
    };
    work.code.instructions().iter().enumerate().map(step).collect()
}

/// Whether it writes global memory.
pub(crate) fn is_store(step: &Step) -> bool {
    step.cost.memory == Some(Memory::Global { load: false })
}

/// What an instruction is to the scheduler.
fn kind(instruction: &Instruction) -> Kind {
    match instruction.base() {
        "BRA" | "BRX" | "JMP" | "CALL" | "RET" => Kind::Branch,
        "BAR" if !instruction.has("ARV") => Kind::Barrier,
        "LDGSTS" => Kind::Copy,
        "LDGDEPBAR" => Kind::Group,
        "DEPBAR" => {
            let mut numbers =
                instruction.operands.split(',').map(|word| word.trim().trim_start_matches("SB"));
            let scoreboard = numbers.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            let left =
                numbers.next().and_then(|word| u16::from_str_radix(word.trim_start_matches("0x"), 16).ok());
            Kind::Drain { scoreboard, left: left.unwrap_or(0) }
        }
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_knows_what_instructions_are() {
        for (opcode, operands, expected) in [
            ("BRA", "`(.L_1)", Kind::Branch),
            ("BAR.SYNC.DEFER_BLOCKING", "0x0", Kind::Barrier),
            ("BAR.ARV", "0x0, 0x20", Kind::Plain),
            ("LDGSTS.E.BYPASS.128", "[R4], [R2.64]", Kind::Copy),
            ("LDGDEPBAR", "", Kind::Group),
            ("DEPBAR.LE", "SB0, 0x1", Kind::Drain { scoreboard: 0, left: 1 }),
            ("DEPBAR.LE", "SB2, 0x1f", Kind::Drain { scoreboard: 2, left: 31 }),
            ("DEPBAR.LE", "SB0, 0x0, {1}", Kind::Drain { scoreboard: 0, left: 0 }),
            ("LDG.E", "R4, [R2.64]", Kind::Plain),
            ("EXIT", "", Kind::Plain),
        ] {
            let instruction =
                Instruction { opcode: opcode.into(), operands: operands.into(), ..Instruction::default() };
            assert_eq!(kind(&instruction), expected, "{opcode} {operands}");
        }
    }
}
