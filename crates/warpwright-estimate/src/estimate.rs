//! From machine code and counters to times.

use crate::machine::{Code, Instruction, Resources};
use crate::path::Path;
use crate::pipes::{Cost, Memory, PIPES, Pipe, cost};
use crate::simulate::{Kind, Rates, Request, SCHEDULERS, Step, Work, simulate};
use std::collections::HashMap;
use std::ops::Range;
use warpwright_kernels::tune::DeviceModel;
use warpwright_ptx::ir::Origin;
use warpwright_vm::{Counters, Fetches, LineCounters, WINDOWS};

/// Bytes of a sector.
pub(crate) const SECTOR: f64 = 32.0;

/// Bytes of the first-level cache beyond the shared memory that a multiprocessor gives at most.
const CACHE_BESIDE_SHARED: f64 = 28.0 * 1024.0;

/// Bytes that a multiprocessor moves to and from the L2 cache in a cycle at most.
const PORT: f64 = 64.0;

/// Lines that the first-level cache looks up in a cycle.
const TAGS: f64 = 4.0;

/// What a sector costs the L2 cache beyond its bytes if only a part of it is written.
const PARTIAL: f64 = 4.0;

/// The part of the time in which the tensor cores are busy from which on they take the power of the clock.
const BUSY: f64 = 0.3;

/// The part of the L2 cache that keeps what a launch uses again.
const KEPT: f64 = 0.8;

/// Instructions that are simulated at most, of all warps together.
const SIMULATED: f64 = 3e6;

/// A launch that was counted.
pub struct Workload<'a> {
    /// The machine code, with lines of the PTX.
    pub code: &'a Code,
    /// What `ptxas` says of the kernel.
    pub resources: Resources,
    /// Blocks of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// What the virtual GPU counted, fetches included, of the whole grid or of a sample.
    pub counters: &'a Counters,
    /// Which line of the PTX an instruction stands in, from 1.
    pub line: &'a dyn Fn(Origin) -> Option<u32>,
    /// Whether what fits into the L2 cache is there already, as in the second of two equal launches.
    pub warm: bool,
}

/// Something that takes time by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Slots of the schedulers.
    Issue,
    /// A unit that executes instructions.
    Pipe(Pipe),
    /// The L2 cache.
    L2,
    /// Global memory.
    Memory,
    /// A warp by itself, as often as places are taken one after the other.
    Latency,
}

impl Resource {
    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Issue => "issue slots",
            Resource::Pipe(pipe) => pipe.name(),
            Resource::L2 => "L2 cache",
            Resource::Memory => "memory",
            Resource::Latency => "latency of a warp",
        }
    }
}

/// How long a launch takes, in seconds, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Estimate {
    /// From the first instruction to the last byte.
    pub kernel: f64,
    /// What the launch adds, between kernels of a stream or graph.
    pub launch: f64,
    /// What each resource takes by itself, the longest first.
    pub resources: Vec<(Resource, f64)>,
    /// What cannot be avoided: the bytes of memory and the products of matrices at full rate.
    pub floor: f64,
    /// Blocks that are resident on a multiprocessor at once.
    pub resident: u32,
    /// How often the places of all multiprocessors are taken.
    pub waves: f64,
    /// Machine instructions that a warp executes on average.
    pub instructions: f64,
    /// Bytes that come from memory or go to it.
    pub dram_bytes: f64,
    /// Bytes that go through the L2 cache.
    pub l2_bytes: f64,
    /// Executions of accesses and products in the PTX that the machine code accounts for: near 1 if the two fit together.
    pub accounted: f64,
    /// Instructions of PTX that a warp executed on average.
    pub counted: f64,
}

/// A reason not to believe an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The machine code would execute this part of the accesses and products that were counted, which is far from 1.
    Accounted(f64),
    /// The machine code would execute far fewer instructions than the PTX did: of functions that are called, or recursion,
    /// nothing is known.
    Missing {
        /// Instructions of PTX of a warp.
        counted: f64,
        /// Machine instructions of a warp.
        known: f64,
    },
    /// The kernel cannot be faster than a resource by itself: its warps or blocks do different work, and the average does
    /// not stand for them.
    Uneven(Resource),
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Doubt::Accounted(part) => write!(
                f,
                "the machine code would execute {:.0} % of the accesses and products that were counted",
                part * 100.0
            ),
            Doubt::Missing { counted, known } => write!(
                f,
                "a warp executed {counted:.0} instructions of PTX, and {known:.0} machine instructions of it are known: \
                 functions that are not inlined are left out"
            ),
            Doubt::Uneven(resource) => write!(
                f,
                "the time is less than that of a resource by itself ({}): warps or blocks do different work, and an \
                 average does not stand for them",
                resource.name()
            ),
        }
    }
}

/// How far the machine code and the PTX may differ in the accesses that are executed.
const ACCOUNTED: Range<f64> = 0.9..1.1;

/// Instructions of PTX for each machine instruction, at most.
const FUSED: f64 = 3.0;

/// The part of a resource's time by itself that a kernel takes at least.
const FASTEST: f64 = 0.75;

impl Estimate {
    /// Why it is not to be believed: empty if nothing speaks against it.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if !ACCOUNTED.contains(&self.accounted) {
            doubts.push(Doubt::Accounted(self.accounted));
        }
        if self.counted > FUSED * self.instructions {
            doubts.push(Doubt::Missing { counted: self.counted, known: self.instructions });
        }
        let bounds = self.resources.iter().filter(|(resource, _)| *resource != Resource::Latency);
        let uneven = bounds.clone().find(|(_, seconds)| self.kernel < FASTEST * seconds);
        doubts.extend(uneven.map(|&(resource, _)| Doubt::Uneven(resource)));
        doubts
    }

    /// The whole time.
    pub fn seconds(&self) -> f64 {
        self.kernel + self.launch
    }
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The device has no figures.
    #[error("there are no speeds of {0}: estimates know {1}")]
    UnknownSpeed(String, String),
    /// The machine code has no instructions.
    #[error("the machine code of the kernel is empty")]
    NoCode,
    /// A block does not fit on a multiprocessor.
    #[error(
        "a block takes {registers} registers a thread and {shared} bytes of shared memory: none fits on a multiprocessor"
    )]
    NotResident {
        /// Registers of a thread.
        registers: u32,
        /// Shared memory, in bytes.
        shared: u64,
    },
    /// Nothing was executed.
    #[error("no block was executed: there is nothing to estimate from")]
    NothingCounted,
}

/// The time of a launch on a device. The code must be for its architecture.
pub fn estimate(work: &Workload<'_>, device: &DeviceModel) -> Result<Estimate, EstimateError> {
    let Some(speed) = &device.speed else {
        return Err(EstimateError::UnknownSpeed(device.name.clone(), DeviceModel::names().join(", ")));
    };
    if work.code.is_empty() {
        return Err(EstimateError::NoCode);
    }
    let shared = u64::from(work.resources.shared) + u64::from(work.dynamic_shared);
    let resident = work.resources.resident_blocks(device.arch, work.threads, work.dynamic_shared);
    if resident == 0 {
        return Err(EstimateError::NotResident { registers: work.resources.registers, shared });
    }
    let warps = work.threads.div_ceil(32).max(1) as usize;
    let counted = work.counters.blocks as f64 * warps as f64;
    let mut lines: HashMap<u32, Vec<&LineCounters>> = HashMap::new();
    for line in &work.counters.lines {
        if let Some(number) = (work.line)(line.origin) {
            lines.entry(number).or_default().push(line);
        }
    }
    if lines.is_empty() || counted == 0.0 {
        return Err(EstimateError::NothingCounted);
    }
    let executed =
        |lines: &Vec<&LineCounters>| lines.iter().map(|line| line.warps as f64).sum::<f64>() / counted;
    let costs: Vec<Cost> =
        work.code.instructions().iter().map(|instruction| cost(instruction, device)).collect();
    let path =
        Path::new(work.code, &costs, &lines.iter().map(|(&line, all)| (line, executed(all))).collect());

    let multiprocessors = u64::from(device.multiprocessors);
    // The multiprocessor with the most blocks ends last, and its part of what all share is as large as its work.
    let own = work.blocks.div_ceil(multiprocessors).max(1);
    let share = own as f64 / work.blocks.max(1) as f64;
    let places = u64::from(resident) * multiprocessors;
    let waves = work.blocks as f64 / places as f64;

    let cache = device.shared as f64 + CACHE_BESIDE_SHARED - f64::from(resident) * (shared as f64 + 1024.0);
    let resident_warps = (f64::from(resident) * warps as f64).min(own as f64 * warps as f64);
    let (loaded, written) = dram_part(work, device, places);
    let caches = Caches {
        window: window(work.counters, counted, resident_warps, cache),
        loaded,
        written,
        narrow_bytes: narrow_bytes(device),
    };
    let steps: Vec<Step> = steps(work, &costs, &path, &lines, counted, &caches);

    // What each resource takes: sums over the warps of this multiprocessor.
    let sum = |of: &dyn Fn(&Step) -> f64| -> f64 {
        let block =
            |block: &crate::path::Block| block.times * steps[block.range.clone()].iter().map(of).sum::<f64>();
        path.blocks.iter().map(block).sum::<f64>() * warps as f64 * own as f64
    };
    let busy = |pipe: Pipe| {
        let of = |step: &Step| match step.cost.pipe {
            Pipe::Memory if pipe == Pipe::Memory => {
                step.cost.busy.max(step.request.passes) * SCHEDULERS as f64
            }
            other if other == pipe => step.cost.busy,
            _ => 0.0,
        };
        sum(&of) / SCHEDULERS as f64
    };
    let l2_bytes = sum(&|step| step.request.l2) / share;
    let dram_bytes = sum(&|step| step.request.dram) / share;
    let written = sum(&|step| if is_store(step) { step.request.dram } else { 0.0 }) / share;
    // A copy is half written.
    let bandwidth = match dram_bytes > 0.0 {
        true => speed.read + (speed.copy - speed.read) * (2.0 * written / dram_bytes).min(1.0),
        false => speed.read,
    };
    let memory = dram_bytes / bandwidth;

    let simulated = |clock: f64| {
        let per_cycle = |bytes: f64| (bytes / clock * share).min(PORT);
        let rates = Rates {
            l2_bytes: per_cycle(speed.l2 * clock / speed.clock),
            dram_bytes: per_cycle(bandwidth),
            l1_latency: speed.l1_latency,
            l2_latency: speed.l2_latency - speed.l1_latency,
            dram_latency: speed.dram_latency - speed.l1_latency,
            shared_latency: speed.shared_latency,
        };
        (rates, cycles(&path, &steps, &rates, warps, own, u64::from(resident).min(own)))
    };
    let mut clock = speed.clock;
    let (mut rates, mut all) = simulated(clock);
    if busy(Pipe::Tensor) > BUSY * all && speed.tensor_clock < clock {
        clock = speed.tensor_clock;
        (rates, all) = simulated(clock);
    }
    let seconds = |cycles: f64| cycles / clock;
    let mut resources = vec![(Resource::Issue, seconds(sum(&|_| 1.0) / SCHEDULERS as f64))];
    resources.extend(PIPES.map(|pipe| (Resource::Pipe(pipe), seconds(busy(pipe)))));
    resources.push((Resource::L2, l2_bytes / speed.l2 * speed.clock / clock));
    resources.push((Resource::Memory, memory));
    let alone = Rates { l2_bytes: PORT, dram_bytes: PORT, ..rates };
    let chain = cycles_of(&path, &steps, &alone, 1, 1, 1);
    resources.push((Resource::Latency, seconds(chain) * own.div_ceil(u64::from(resident).min(own)) as f64));
    resources.retain(|(_, seconds)| *seconds > 0.0);
    resources.sort_by(|a, b| b.1.total_cmp(&a.1));
    let tensor = resources.iter().find(|(resource, _)| *resource == Resource::Pipe(Pipe::Tensor));
    Ok(Estimate {
        kernel: seconds(all).max(memory),
        launch: f64::from(device.launch) * 1e-9,
        floor: memory.max(tensor.map_or(0.0, |tensor| tensor.1)),
        resources,
        resident,
        waves,
        instructions: path.instructions(),
        dram_bytes,
        l2_bytes,
        accounted: path.accounted,
        counted: work.counters.warp_instructions as f64 / counted,
    })
}

/// The window of time in which the first-level cache keeps a sector: the longest in which the resident warps bring in no
/// more than it holds.
fn window(counters: &Counters, counted: f64, resident: f64, cache: f64) -> usize {
    let instructions = counters.warp_instructions as f64 / counted;
    let fits = |window: usize| {
        let sectors: u64 = counters.lines.iter().map(|line| line.fetches.loaded[window]).sum();
        let brought = sectors as f64 * SECTOR / counted * resident;
        let part = (WINDOWS[window] as f64 / instructions).min(1.0);
        brought * part <= cache.max(0.0)
    };
    (0..WINDOWS.len()).rev().find(|&window| fits(window)).unwrap_or(0)
}

/// Of the sectors that a sample touched first, the part that comes from memory in the whole launch. Neighbours that are
/// resident at the same time share what they read; what fits into the L2 cache is read once, and not at all if it is there.
fn dram_part(work: &Workload<'_>, device: &DeviceModel, places: u64) -> (f64, f64) {
    let (sample, grid) = (work.counters.blocks.max(1) as f64, work.blocks as f64);
    let wave = (places as f64).min(grid);
    let of = |first: fn(&Fetches) -> u64, read: bool| {
        let (mut sampled, mut needed) = (0.0, 0.0);
        let used: f64 = work
            .counters
            .fetches
            .iter()
            .map(|(_, bytes, all)| {
                let touched = (all.first_loaded + all.first_written) as f64 * SECTOR * grid / sample;
                touched.min(*bytes as f64)
            })
            .sum();
        let fits = used <= device.l2 as f64 * KEPT;
        for (_, bytes, fetches) in &work.counters.fetches {
            let first = first(fetches) as f64 * SECTOR;
            let bytes = *bytes as f64;
            let all = first * grid / sample;
            let again = (first * wave / sample).min(bytes) * (grid / wave);
            sampled += all;
            needed += if fits {
                if read && work.warm { 0.0 } else { all.min(bytes) }
            } else {
                all.min(again.max(bytes.min(all)))
            };
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

/// What becomes of the sectors that are asked for.
struct Caches {
    /// The window in which the first-level cache keeps one.
    window: usize,
    /// Of those that the launch has not loaded before, and not written, the part that memory has to do with.
    loaded: f64,
    written: f64,
    /// See [`narrow_bytes`].
    narrow_bytes: f64,
}

/// The instructions with what they ask of memory, on average.
fn steps(
    work: &Workload<'_>,
    costs: &[Cost],
    path: &Path,
    lines: &HashMap<u32, Vec<&LineCounters>>,
    counted: f64,
    caches: &Caches,
) -> Vec<Step> {
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
                    let first = sum(&|line| line.fetches.first_loaded) * caches.loaded
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
fn is_store(step: &Step) -> bool {
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

/// Cycles of a multiprocessor for its blocks. Long ones are simulated in part, and continued in proportion.
fn cycles(path: &Path, steps: &[Step], rates: &Rates, warps: usize, blocks: u64, resident: u64) -> f64 {
    // Places are taken a third time at most.
    let few = blocks.min(3 * resident);
    let all = cycles_of(path, steps, rates, warps, few as usize, resident as usize);
    if few == blocks {
        return all;
    }
    let fewer = cycles_of(path, steps, rates, warps, (few - resident) as usize, resident as usize);
    all + (all - fewer) / resident as f64 * (blocks - few) as f64
}

/// The same for few blocks.
fn cycles_of(
    path: &Path,
    steps: &[Step],
    rates: &Rates,
    warps: usize,
    blocks: usize,
    resident: usize,
) -> f64 {
    let of = |share: f64| {
        let order: Vec<Range<usize>> = path
            .order(share)
            .into_iter()
            .map(|block| path.blocks[block].range.clone())
            .filter(|range| !range.is_empty())
            .collect();
        let length: usize = order.iter().map(Range::len).sum();
        let cycles = simulate(&Work { steps, order: &order, warps, blocks, resident }, rates);
        (length as f64, cycles as f64)
    };
    let all = path.instructions() * (warps * blocks) as f64;
    if all <= SIMULATED {
        return of(1.0).1;
    }
    let (long, short) = (of(SIMULATED / all), of(SIMULATED / all / 2.0));
    if long.0 <= short.0 {
        return long.1 * path.instructions() / long.0.max(1.0);
    }
    long.1 + (long.1 - short.1) / (long.0 - short.0) * (path.instructions() - long.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Control;
    use warpwright_ptx::diag::LineIndex;
    use warpwright_ptx::ir::Arch;
    use warpwright_vm as vm;

    /// Each thread copies sixteen bytes.
    const COPY: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [to];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 256, %r0;
    mul.wide.u32 %rd2, %r2, 16;
    add.u64 %rd3, %rd0, %rd2;
    add.u64 %rd4, %rd1, %rd2;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd3];
    st.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};
    ret;
}
";

    /// The line of the text that an instruction stands in.
    fn line_of(opcode: &str) -> u32 {
        let found = COPY.lines().position(|line| line.trim_start().starts_with(opcode));
        found.expect("it stands there") as u32 + 1
    }

    /// An instruction with its line of the PTX, as `nvdisasm` prints them.
    fn printed(ptx: &str, instruction: &str, control: Control) -> String {
        let scoreboard = |number: Option<u8>| u64::from(number.unwrap_or(7));
        let upper = u64::from(control.stall) << 41
            | scoreboard(control.write) << 46
            | scoreboard(control.read) << 49
            | u64::from(control.wait) << 52;
        let line = line_of(ptx);
        format!(
            "//## File \".nv_debug_ptx_txt\", line {line}\n/*0000*/ {instruction} ;\n/* {upper:#018x} */\n"
        )
    }

    /// What a compiler makes of the copy.
    fn copy_code() -> Code {
        let none = Control { stall: 4, ..Control::default() };
        let writes = |scoreboard| Control { stall: 1, write: Some(scoreboard), ..none };
        let waits = |wait| Control { wait, ..none };
        let text = [
            printed("mov.u32 %r0", "S2R R0, SR_TID.X", writes(0)),
            printed("mov.u32 %r1", "S2R R3, SR_CTAID.X", writes(0)),
            printed("mad.lo", "IMAD R0, R3, 0x100, R0", waits(1)),
            printed("add.u64 %rd3", "IMAD.WIDE.U32 R2, R0, 0x10, c[0x0][0x160]", none),
            printed("ld.global", "LDG.E.128 R4, [R2.64]", writes(2)),
            printed("add.u64 %rd4", "IMAD.WIDE.U32 R8, R0, 0x10, c[0x0][0x168]", none),
            printed("st.global", "STG.E.128 [R8.64], R4", waits(1 << 2)),
            printed("ret", "EXIT", none),
        ];
        Code::read(&text.concat(), None)
    }

    /// What the virtual GPU counts of a copy by that many blocks, all of them or a sample.
    fn count(blocks: u32, sample: Option<u64>) -> Counters {
        let device = vm::Device::new(vm::DeviceConfig::default()).expect("there is a device");
        let module = device.load_ptx(COPY).expect("it can be loaded");
        let words = blocks as usize * 256 * 4;
        let buffers = [(); 2].map(|()| device.alloc_zeros::<u32>(words).expect("there is room"));
        let arguments: Vec<vm::Arg> = buffers.iter().map(vm::Arg::buffer).collect();
        let options = vm::Options { counters: true, fetches: true, sample, ..vm::Options::default() };
        let config = vm::LaunchConfig::new(blocks, 256);
        let report = device.launch(&module, "copy", &config, &arguments, &options).expect("it starts").wait();
        assert!(report.is_clean(), "{report}");
        report.counters
    }

    fn line(origin: Origin) -> Option<u32> {
        let Origin::Text(span) = origin else { return None };
        Some(LineIndex::new(COPY).position(span.start).line)
    }

    /// A copy by blocks of 256 threads.
    fn copy<'a>(code: &'a Code, counters: &'a Counters, blocks: u64) -> Workload<'a> {
        Workload {
            code,
            resources: Resources { registers: 16, ..Resources::default() },
            blocks,
            threads: 256,
            dynamic_shared: 0,
            counters,
            line: &line,
            warm: false,
        }
    }

    #[test]
    fn a_large_copy_takes_its_bytes_by_the_bandwidth_of_copies() {
        let blocks = 1 << 14;
        let bytes = f64::from(blocks) * 256.0 * 16.0;
        let (code, counters) = (copy_code(), count(blocks, Some(16)));
        for card in DeviceModel::names() {
            let device = DeviceModel::named(card).expect("it is known");
            let found = estimate(&copy(&code, &counters, u64::from(blocks)), &device).expect("it has speeds");
            let speed = device.speed.expect("they are known");
            // However large the L2 cache is, what a launch uses once comes from memory.
            let ideal = 2.0 * bytes / speed.copy;
            let kernel = found.kernel;
            assert!((ideal..1.1 * ideal).contains(&kernel), "{card}: {kernel} for {ideal} seconds");
            assert_eq!(found.seconds(), kernel + f64::from(device.launch) * 1e-9, "{card}");
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
            assert!(near(found.dram_bytes, 2.0 * bytes), "{card}: {} bytes", found.dram_bytes);
            assert!(near(found.l2_bytes, 2.0 * bytes), "{card}: {} bytes", found.l2_bytes);
            assert!(near(found.floor, ideal), "{card}: nothing but memory is unavoidable");
            assert_eq!(found.resources[0].0, Resource::Memory, "{card}: the longest comes first");
            assert!(found.resources.is_sorted_by(|a, b| a.1 >= b.1), "{card}");
            assert_eq!((found.accounted, found.instructions), (1.0, 8.0), "{card}");
            let places = f64::from(found.resident) * f64::from(device.multiprocessors);
            assert_eq!(found.waves, f64::from(blocks) / places, "{card}");
        }
    }

    #[test]
    fn threads_of_a_multiprocessor_bound_the_blocks_on_it() {
        let (code, counters) = (copy_code(), count(8, None));
        for (card, resident) in [("A100", 8), ("RTX 3090", 6), ("H100", 8), ("RTX 5090", 6)] {
            let device = DeviceModel::named(card).expect("it is known");
            let found = estimate(&copy(&code, &counters, 8), &device).expect("there is an estimate");
            assert_eq!(found.resident, resident, "{card}");
        }
    }

    #[test]
    fn a_small_copy_reads_nothing_from_memory_if_its_data_are_in_the_cache() {
        let device = DeviceModel::named("A100").expect("it is known");
        let (code, counters) = (copy_code(), count(64, None));
        let bytes = 64.0 * 256.0 * 16.0;
        let of =
            |warm| estimate(&Workload { warm, ..copy(&code, &counters, 64) }, &device).expect("an estimate");
        let (cold, warm) = (of(false), of(true));
        assert_eq!((cold.dram_bytes, warm.dram_bytes), (2.0 * bytes, bytes));
        assert_eq!((cold.l2_bytes, warm.l2_bytes), (2.0 * bytes, 2.0 * bytes));
        // Both wait for little but one load: of memory, or of the cache.
        let speed = device.speed.expect("it is known");
        let less = (cold.kernel - warm.kernel) * speed.clock;
        let latencies = speed.dram_latency - speed.l2_latency;
        assert!((0.9 * latencies..1.2 * latencies).contains(&less), "{less} cycles for {latencies}");
    }

    #[test]
    fn a_sample_says_what_the_whole_grid_would() {
        let device = DeviceModel::named("H100").expect("it is known");
        let code = copy_code();
        let [whole, part] = [None, Some(8)].map(|sample| count(1024, sample));
        assert_eq!((whole.blocks, part.blocks), (1024, 8));
        let [whole, part] = [&whole, &part]
            .map(|counters| estimate(&copy(&code, counters, 1024), &device).expect("there is an estimate"));
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(near(whole.dram_bytes, part.dram_bytes) && near(whole.l2_bytes, part.l2_bytes));
        assert!(near(whole.kernel, part.kernel), "{} and {}", whole.kernel, part.kernel);
    }

    #[test]
    fn what_cannot_be_estimated_is_an_error_that_says_why() {
        let a100 = DeviceModel::named("A100").expect("it is known");
        let (code, counters) = (copy_code(), count(2, None));
        let (no_code, nothing) = (Code::default(), Counters::default());
        let work = || copy(&code, &counters, 2);
        let registers = Resources { registers: 255, ..Resources::default() };
        let shared = Resources { registers: 16, shared: 1 << 10, ..Resources::default() };
        let unknown = DeviceModel::typical(Arch::sm(90));
        let names = "A100-40GB, A100, H100, H200, B200, RTX 3090, RTX A6000, RTX 4090, RTX 5090";
        for (work, device, error, message) in [
            (
                work(),
                &unknown,
                EstimateError::UnknownSpeed(unknown.name.clone(), names.into()),
                format!("there are no speeds of {}: estimates know {names}", unknown.name),
            ),
            (
                Workload { code: &no_code, ..work() },
                &a100,
                EstimateError::NoCode,
                "the machine code of the kernel is empty".into(),
            ),
            (
                Workload { resources: registers, threads: 1024, ..work() },
                &a100,
                EstimateError::NotResident { registers: 255, shared: 0 },
                "a block takes 255 registers a thread and 0 bytes of shared memory: none fits on a multiprocessor"
                    .into(),
            ),
            (
                Workload { resources: shared, dynamic_shared: 163 << 10, ..work() },
                &a100,
                EstimateError::NotResident { registers: 16, shared: 164 << 10 },
                "a block takes 16 registers a thread and 167936 bytes of shared memory: none fits on a \
                 multiprocessor"
                    .into(),
            ),
            (
                Workload { counters: &nothing, ..work() },
                &a100,
                EstimateError::NothingCounted,
                "no block was executed: there is nothing to estimate from".into(),
            ),
            (
                // Counters of another text.
                Workload { line: &|_| None, ..work() },
                &a100,
                EstimateError::NothingCounted,
                "no block was executed: there is nothing to estimate from".into(),
            ),
        ] {
            let found = estimate(&work, device).expect_err(&message);
            assert_eq!((found.to_string(), found), (message, error));
        }
    }

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

    #[test]
    fn what_speaks_against_an_estimate_is_said() {
        let good = Estimate {
            kernel: 1e-6,
            launch: 1e-6,
            resources: vec![(Resource::Latency, 5e-6), (Resource::Issue, 1.1e-6)],
            floor: 0.0,
            resident: 1,
            waves: 1.0,
            instructions: 100.0,
            dram_bytes: 0.0,
            l2_bytes: 0.0,
            accounted: 1.0,
            counted: 250.0,
        };
        assert_eq!(good.doubts(), []);
        let merged = Estimate { accounted: 0.5, ..good.clone() };
        assert_eq!(merged.doubts(), [Doubt::Accounted(0.5)]);
        let called = Estimate { counted: 400.0, ..good.clone() };
        assert_eq!(called.doubts(), [Doubt::Missing { counted: 400.0, known: 100.0 }]);
        let early = Estimate { kernel: 0.5e-6, ..good };
        assert_eq!(early.doubts(), [Doubt::Uneven(Resource::Issue)]);
    }
}
