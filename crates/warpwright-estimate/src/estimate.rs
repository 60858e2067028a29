//! From machine code and counters to times.

use crate::doubts::{Unmodelled, unmodelled};
use crate::machine::{Code, Resources};
use crate::path::Path;
use crate::pipes::{Cost, PIPES, Pipe, cost};
use crate::simulate::{Rates, SCHEDULERS, Step, Work, simulate};
use crate::steps::{Caches, is_store, steps};
use std::collections::HashMap;
use std::ops::Range;
use warpwright_kernels::tune::DeviceModel;
use warpwright_ptx::ir::Origin;
use warpwright_vm::{Counters, LineCounters};

/// Bytes that a multiprocessor moves to and from the L2 cache in a cycle at most.
const PORT: f64 = 64.0;

/// The part of the time in which the tensor cores are busy from which on they take the power of the clock.
const BUSY: f64 = 0.3;

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
    /// Whether the L2 cache has the buffer at an address already, if what the launch touches fits into it: all of them in
    /// the second of two equal launches, and what the launch in front has written.
    pub cached: &'a dyn Fn(u64) -> bool,
}

impl Workload<'_> {
    /// Warps of a block.
    pub(crate) fn warps(&self) -> usize {
        self.threads.div_ceil(32).max(1) as usize
    }

    /// Shared memory of a block, in bytes.
    pub(crate) fn shared(&self) -> u64 {
        u64::from(self.resources.shared) + u64::from(self.dynamic_shared)
    }

    /// Warps that were counted.
    pub(crate) fn counted(&self) -> f64 {
        self.counters.blocks as f64 * self.warps() as f64
    }

    /// Blocks of the multiprocessor that has the most.
    pub(crate) fn own_blocks(&self, device: &DeviceModel) -> u64 {
        self.blocks.div_ceil(u64::from(device.multiprocessors)).max(1)
    }
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
    /// Instructions of PTX that a warp executed on average, and those of the one that took the longest.
    pub counted: f64,
    /// See [`counted`](Self::counted).
    pub longest: f64,
    /// Blocks that were counted, and those of the grid.
    pub blocks: [u64; 2],
    /// Whether atomics meet in the same sectors, threads sleep, or local memory does not fit into the first-level cache:
    /// none of these has a model.
    pub unmodelled: Vec<Unmodelled>,
}

impl Estimate {
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
    let resident = work.resources.resident_blocks(device.arch, work.threads, work.dynamic_shared);
    if resident == 0 {
        return Err(EstimateError::NotResident {
            registers: work.resources.registers,
            shared: work.shared(),
        });
    }
    let (warps, counted) = (work.warps(), work.counted());
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

    // The multiprocessor with the most blocks ends last, and its part of what all share is as large as its work.
    let own = work.own_blocks(device);
    let share = own as f64 / work.blocks.max(1) as f64;
    let waves = work.blocks as f64 / (f64::from(resident) * f64::from(device.multiprocessors));
    let caches = Caches::new(work, device, resident);
    let steps = steps(work, &costs, &path, &lines, &caches);

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
        longest: work.counters.longest_warp as f64,
        blocks: [work.counters.blocks, work.blocks],
        unmodelled: unmodelled(work, &path, device, resident),
    })
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
            cached: &|_| false,
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
        let of = |cached: &dyn Fn(u64) -> bool| {
            estimate(&Workload { cached, ..copy(&code, &counters, 64) }, &device).expect("an estimate")
        };
        let (cold, warm) = (of(&|_| false), of(&|_| true));
        // Of the buffers it matters where the one is that is read.
        let address = |i: usize| counters.fetches[i].0;
        let read = if counters.fetches[0].2.first_loaded > 0 { 0 } else { 1 };
        let of_one = |i: usize| of(&|buffer| buffer == address(i));
        assert_eq!((of_one(read).kernel, of_one(1 - read).kernel), (warm.kernel, cold.kernel));
        assert_eq!((cold.dram_bytes, warm.dram_bytes), (2.0 * bytes, bytes));
        assert_eq!((cold.l2_bytes, warm.l2_bytes), (2.0 * bytes, 2.0 * bytes));
        // Both wait for little but one load: of memory, or of the cache.
        let speed = device.speed.expect("it is known");
        let less = (cold.kernel - warm.kernel) * speed.clock;
        let latencies = speed.dram_latency - speed.l2_latency;
        assert!((0.9 * latencies..1.2 * latencies).contains(&less), "{less} cycles for {latencies}");
    }

    #[test]
    fn what_does_not_fit_into_the_cache_is_not_there() {
        let device = DeviceModel::named("A100").expect("it is known");
        let (code, blocks) = (copy_code(), 1 << 14);
        let counters = count(blocks, Some(16));
        let work = copy(&code, &counters, blocks.into());
        let bytes = f64::from(blocks) * 256.0 * 16.0;
        assert!(bytes > device.l2 as f64);
        let warm = estimate(&Workload { cached: &|_| true, ..work }, &device).expect("an estimate");
        assert!((warm.dram_bytes / (2.0 * bytes) - 1.0).abs() < 1e-9, "{}", warm.dram_bytes);
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
}
