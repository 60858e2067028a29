//! Programs of kernels, run launch by launch and by the persistent decoder, on the virtual GPU.

use std::sync::Arc;
use std::time::Duration;
use warpwright_dsl::{Asked, Block, Built, Role, any::AnyKernel};
use warpwright_kernels::persistent::format::{
    BARRIER_WORDS, COUNTER_STRIDE, FAULT_WORDS, Fault, Item, Wait, encode_bounds, encode_items,
};
use warpwright_kernels::{Assignment, Op, PersistentDecoder, Publish};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_vm::{
    Arg, Buffer, Device, DeviceConfig, LaunchConfig, Module, Options, Report, Running, Schedule as Order,
};

pub(crate) const ARCH: Arch = Arch::sm(80);

/// What a step is given for an argument.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// The buffer of the program with that index.
    Buffer(usize),
    /// The bits of a number.
    Number(u64),
}

/// A launch of a kernel.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) args: Vec<Value>,
    pub(crate) grid: [u32; 3],
}

impl Step {
    pub(crate) fn new(
        kernel: impl AnyKernel + Send + Sync + 'static,
        args: Vec<Value>,
        grid: [u32; 3],
    ) -> Self {
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(kernel);
        let [op] = &Op::of(&kernel, 8, ARCH).expect("a kernel that can be called")[..] else {
            panic!("{} has several pieces", kernel.entry());
        };
        Step { op: op.clone(), args, grid }
    }

    pub(crate) fn tiles(&self) -> u32 {
        self.grid.iter().product()
    }

    fn warps(&self) -> u32 {
        let Block::Exactly([threads, ..]) = self.op.kernel().launch().block else { return 0 };
        threads / 32
    }
}

/// What is computed for each token: phases of stages of steps. Steps of a stage do not depend on one another.
#[derive(Clone)]
pub(crate) struct Program {
    /// What the buffers hold at first.
    pub(crate) buffers: Vec<Vec<u32>>,
    pub(crate) phases: Vec<Vec<Vec<Step>>>,
    /// Buffers that the host and the device share.
    pub(crate) mapped: Vec<usize>,
    /// The buffer with what `Publish` says of the progress, if there is one.
    pub(crate) progress: Option<usize>,
}

pub(crate) fn device() -> Device {
    let mut config = DeviceConfig::default();
    config.arch = ARCH;
    Device::new(config).expect("a device")
}

pub(crate) fn load(device: &Device, built: &Built) -> Module {
    let info = warpwright_ptx::verify(&built.module).expect("a module that verifies");
    device.load(&built.module, &info).expect("a module that loads")
}

impl Program {
    fn memory(&self, device: &Device) -> Vec<Buffer<u32>> {
        let buffers = self.buffers.iter().enumerate().map(|(i, words)| {
            let buffer = if self.mapped.contains(&i) {
                device.alloc_mapped(words.len())
            } else {
                device.alloc(words.len())
            };
            let buffer = buffer.expect("memory");
            buffer.write(words).expect("as many words");
            buffer
        });
        buffers.collect()
    }

    /// What the buffers hold after so many tokens, launch by launch.
    pub(crate) fn launched(&self, tokens: u32) -> Vec<Vec<u32>> {
        let device = device();
        let memory = self.memory(&device);
        let steps: Vec<_> = self.phases.iter().flatten().flatten().collect();
        let modules: Vec<_> = steps
            .iter()
            .map(|step| load(&device, &step.op.kernel().build(ARCH).expect("a kernel")))
            .collect();
        for _ in 0..tokens {
            for (step, module) in steps.iter().zip(&modules) {
                let args: Vec<_> = (step.args.iter().zip(step.op.kernel().args()))
                    .map(|(value, arg)| match (*value, arg.dtype) {
                        (Value::Buffer(buffer), _) => Arg::buffer(&memory[buffer]),
                        (Value::Number(bits), Type::F32) => Arg::F32(f32::from_bits(bits as u32)),
                        (Value::Number(bits), Type::U64) => Arg::U64(bits),
                        (Value::Number(bits), _) => Arg::U32(bits as u32),
                    })
                    .collect();
                let [x, y, z] = step.grid;
                let config = LaunchConfig { grid_dim: (x, y, z), ..LaunchConfig::new(1, step.warps() * 32) };
                let entry = step.op.kernel().entry();
                let report = device.launch(module, &entry, &config, &args, &Options::default());
                let report = report.expect("a launch").wait();
                assert!(report.is_clean(), "{report}");
            }
            if self.progress.is_some_and(|progress| memory[progress].read()[Publish::FINISHED as usize] != 0)
            {
                break;
            }
        }
        memory.iter().map(Buffer::read).collect()
    }

    /// The ops, each once.
    pub(crate) fn ops(&self) -> Vec<Op> {
        let mut ops: Vec<Op> = Vec::new();
        for step in self.phases.iter().flatten().flatten() {
            if !ops.contains(&step.op) {
                ops.push(step.op.clone());
            }
        }
        ops
    }
}

/// A program as the decoder has it.
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) operands: Vec<u64>,
    /// The lists, in the order of `bounds`.
    pub(crate) lists: Vec<Vec<Item>>,
    pub(crate) counters: u32,
}

impl Schedule {
    /// Each step in pieces of `grain` tiles, which go to the blocks in turn.
    fn new(
        program: &Program,
        addresses: &[u64],
        (assignment, blocks, grain): (Assignment, u32, u32),
    ) -> Self {
        let ops = program.ops();
        let phases = program.phases.len() as u32;
        let mut counters = assignment.first_counter(phases);
        let mut operands = Vec::new();
        let mut lists = vec![Vec::new(); assignment.lists(phases, blocks) as usize];
        let mut turn = 0;
        for (phase, stages) in program.phases.iter().enumerate() {
            let mut wait = None;
            let stages: Vec<_> = stages.iter().filter(|steps| !steps.is_empty()).collect();
            for (stage, steps) in stages.iter().enumerate() {
                let signal = (stage + 1 < stages.len()).then_some(counters);
                counters += u32::from(signal.is_some());
                let mut items = 0;
                for step in steps.iter() {
                    let mut tables = Vec::new();
                    for asked in step.op.operands() {
                        let Asked::Table(words) = asked else { continue };
                        tables.push(operands.len() as u64);
                        operands.extend(words);
                        operands.resize(operands.len().next_multiple_of(2), 0);
                    }
                    let (args, mut tables) = (step.op.kernel().args(), tables.into_iter());
                    let word = |asked: &Asked| -> Result<u64, ()> {
                        let Asked::Arg(name) = asked else { return tables.next().ok_or(()) };
                        let at = args.iter().position(|arg| arg.name == *name).ok_or(())?;
                        Ok(match step.args[at] {
                            Value::Buffer(buffer) => addresses[buffer],
                            Value::Number(bits) => bits,
                        })
                    };
                    let record = operands.len() as u32;
                    operands.extend(step.op.record(step.grid, word).expect("a record"));
                    let op = ops.iter().position(|op| *op == step.op).expect("an op") as u32;
                    for first in (0..step.tiles()).step_by(grain as usize) {
                        let end = (first + grain).min(step.tiles());
                        let item = Item { op, operands: record, first, end, wait, signal };
                        let list = match assignment {
                            Assignment::Static => phase * blocks as usize + turn,
                            Assignment::Queue => phase,
                        };
                        lists[list].push(item);
                        turn = (turn + 1) % blocks as usize;
                        items += 1;
                    }
                }
                wait = signal.map(|counter| Wait { counter, value: items });
            }
        }
        Schedule { operands, lists, counters }
    }

    /// The words of `items` and of `bounds`.
    fn encode(&self) -> (Vec<u32>, Vec<u32>) {
        let mut at = 0;
        let bounds = self.lists.iter().map(|list| {
            let first = at;
            at += list.len() as u32;
            first..at
        });
        (encode_bounds(bounds), encode_items(self.lists.iter().flatten().copied()))
    }
}

/// How a program is run by the decoder.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) blocks: u32,
    pub(crate) assignment: Assignment,
    pub(crate) grain: u32,
    pub(crate) tokens: u32,
    pub(crate) budget: u32,
    pub(crate) options: Options,
}

impl Run {
    /// With all checks, and more looks than anything here takes.
    pub(crate) fn new(blocks: u32, assignment: Assignment, tokens: u32) -> Self {
        Run { blocks, assignment, grain: 2, tokens, budget: 1 << 20, options: Options::checked() }
    }

    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.options.schedule = Order::Seeded(seed);
        self
    }

    pub(crate) fn decoder(&self, program: &Program) -> PersistentDecoder {
        PersistentDecoder { assignment: self.assignment, ..PersistentDecoder::new(program.ops()) }
    }

    /// Runs the program, and yields what came of it.
    pub(crate) fn run(&self, program: &Program) -> Outcome {
        self.edited(program, |_| (), |_| ())
    }

    /// The same with a kernel or a schedule that is not as it should be.
    pub(crate) fn edited(
        &self,
        program: &Program,
        edit: impl Fn(&mut Schedule),
        spoil: impl Fn(&mut Built),
    ) -> Outcome {
        self.begun(program, edit, spoil).end()
    }

    /// The program, while it runs.
    pub(crate) fn begun(
        &self,
        program: &Program,
        edit: impl Fn(&mut Schedule),
        spoil: impl Fn(&mut Built),
    ) -> Begun {
        let device = device();
        let decoder = self.decoder(program);
        let mut built = decoder.build(ARCH).expect("a decoder");
        spoil(&mut built);
        let module = load(&device, &built);
        let memory = program.memory(&device);
        let addresses: Vec<_> = memory.iter().map(Buffer::address).collect();
        let mut schedule = Schedule::new(program, &addresses, (self.assignment, self.blocks, self.grain));
        edit(&mut schedule);
        let (bounds, items) = schedule.encode();
        let operands = device.clone_htod(&schedule.operands).expect("memory");
        let words = |words: &[u32]| device.clone_htod(words).expect("memory");
        let zeros = |count: u32| device.alloc_zeros::<u32>(count as usize).expect("memory");
        let given =
            [words(&items), words(&bounds), zeros(BARRIER_WORDS), zeros(schedule.counters * COUNTER_STRIDE)];
        let (fault, never) = (zeros(FAULT_WORDS), zeros(3));
        let progress = program.progress.map_or(&never, |progress| &memory[progress]);
        let numbers = [program.phases.len() as u32, self.tokens, self.budget];
        let mut args = vec![Arg::buffer(&operands)];
        args.extend(given.iter().chain([&fault, progress]).map(Arg::buffer));
        args.extend(numbers.map(Arg::U32));
        assert_eq!(args.len(), decoder.args().len());
        let config = LaunchConfig { cooperative: true, ..LaunchConfig::new(self.blocks, decoder.warps * 32) };
        let running =
            device.launch(&module, &decoder.entry(), &config, &args, &self.options).expect("a launch");
        Begun { running, memory, fault, kept: (operands, given, never) }
    }

    /// The buffers are what they are launch by launch, and nothing was found.
    #[track_caller]
    pub(crate) fn agrees(&self, program: &Program) -> Outcome {
        let outcome = self.run(program);
        assert!(outcome.report.is_clean(), "{}", outcome.report);
        assert_eq!(outcome.fault, None);
        let launched = program.launched(self.tokens);
        for (i, (own, other)) in outcome.buffers.iter().zip(&launched).enumerate() {
            assert_eq!(own, other, "buffer {i}, {} blocks, {}", self.blocks, self.assignment);
        }
        outcome
    }
}

/// A program that the decoder runs.
pub(crate) struct Begun {
    pub(crate) running: Running,
    pub(crate) memory: Vec<Buffer<u32>>,
    pub(crate) fault: Buffer<u32>,
    #[allow(dead_code, reason = "memory lives as long as what uses it")]
    kept: (Buffer<u64>, [Buffer<u32>; 4], Buffer<u32>),
}

impl Begun {
    /// Waits until a word of a mapped buffer is at least that.
    pub(crate) fn await_word(&self, buffer: usize, index: usize, least: u32) {
        while self.memory[buffer].peek(index).expect("a word") < least && !self.running.is_complete() {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    pub(crate) fn end(self) -> Outcome {
        let report = self.running.wait();
        let words: Vec<u32> = self.fault.read();
        let fault = Fault::decode(std::array::from_fn(|i| words[i]));
        Outcome { buffers: self.memory.iter().map(Buffer::read).collect(), report, fault }
    }
}

/// What became of a program.
pub(crate) struct Outcome {
    pub(crate) buffers: Vec<Vec<u32>>,
    pub(crate) report: Report,
    pub(crate) fault: Option<Fault>,
}

/// Numbers between -3 and 3, as bits.
pub(crate) fn floats(count: usize, seed: u32) -> Vec<u32> {
    let mix = |i: u32| i.wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b) >> 8;
    (0..count as u32).map(|i| (mix(i ^ seed << 20) as f32 / (1 << 24) as f32 * 6.0 - 3.0).to_bits()).collect()
}

/// Whether all arguments of the step are there.
pub(crate) fn is_complete(step: &Step) -> bool {
    let fits = |(value, role): (&Value, Role)| matches!(value, Value::Number(_)) == (role == Role::Scalar);
    let args = step.op.kernel().args();
    step.args.len() == args.len() && step.args.iter().zip(args.iter().map(|arg| arg.role)).all(fits)
}
