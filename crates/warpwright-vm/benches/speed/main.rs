//! How fast the virtual GPU is. `cargo bench -p warpwright-vm`; a word after `--` picks parts, or kernels by
//! their entries.
//!
//! The eight kernels are interpreted and compiled (`DeviceConfig::native`) by turns; the rest is as `WARPWRIGHT_NATIVE` says.
//!
//! Goals: for the eight kernels, instructions of active lanes per second on one core, 1.0e9 with memory
//! checks and 2.5e8 with all of them, as geometric means, and 1.8 times that on two cores; 6e8
//! multiply-adds per second in `mma.sync`, and 1.1 times those of one `mma.sync` in `wgmma`; a tile by a tensor map in
//! no more than 3 times the time of loads and stores; a launch of an empty kernel in 20 us, a million empty blocks in
//! 2 s; memory that does not grow with the grid.

#![allow(missing_docs, reason = "a program")]

mod kernels;
mod plain;

use kernels::{Kernel, Size};
use std::time::{Duration, Instant};
use warpwright_ptx::{parse, verify};
use warpwright_vm::{
    Arg, Checks, Device, DeviceConfig, LaunchConfig, Module, Native, Options, TensorElement, TensorMap,
    TensorSwizzle,
};

fn main() {
    let picked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |part: &str| picked.is_empty() || picked.iter().any(|word| part.contains(word.as_str()));
    let picks =
        |kernel: &&Kernel| wants("kernels") || picked.iter().any(|word| kernel.entry.contains(word.as_str()));
    let some: Vec<&Kernel> = kernels::ALL.iter().filter(picks).collect();
    if !some.is_empty() {
        kernels(&some);
    }
    if wants("compile") {
        kernels::ALL.iter().for_each(compile);
    }
    if wants("plain") {
        plain::compare();
    }
    if wants("products") {
        products();
    }
    if wants("loops") {
        loops();
    }
    if wants("tiles") {
        tiles();
    }
    if wants("launches") {
        launches();
    }
    if wants("memory") {
        memory();
    }
}

/// A device with so many host threads.
fn device(workers: u32) -> Device {
    let mut config = DeviceConfig::default();
    config.workers = workers;
    Device::new(config).expect("a device")
}

fn load(device: &Device, text: &str) -> Module {
    let module = parse(text).expect("the kernel is PTX");
    let info = verify(&module).expect("the verifier accepts the kernel");
    device.load(&module, &info).expect("the VM loads the kernel")
}

/// A kernel that is launched again and again in one way.
struct Runner<'a> {
    kernel: &'a Kernel,
    device: Device,
    module: Module,
    set_up: kernels::SetUp,
    options: Options,
    /// Instructions of active lanes per second, and the seconds of a launch: the best so far.
    best: f64,
    time: f64,
}

impl<'a> Runner<'a> {
    fn new(kernel: &'a Kernel, (workers, native): (u32, Native), options: Options, size: Size) -> Self {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (workers, native);
        let device = Device::new(config).expect("a device");
        let module = load(&device, &kernel.text());
        let set_up = kernel.set_up(&device, size);
        Runner { kernel, device, module, set_up, options, best: 0.0, time: f64::INFINITY }
    }

    fn run(&mut self) {
        let (_, args, config) = &self.set_up;
        let begin = Instant::now();
        let launch = self.device.launch(&self.module, self.kernel.entry, config, args, &self.options);
        let report = launch.expect("the kernel is launched").wait();
        let time = begin.elapsed();
        assert!(report.is_clean(), "{}: {report:?}", self.kernel.entry);
        self.time = self.time.min(time.as_secs_f64());
        self.best = self.best.max(report.counters.instructions as f64 / time.as_secs_f64());
    }
}

/// What is compared runs by turns, so that what else the machine does hits all alike.
fn kernels(some: &[&Kernel]) {
    let plain = Options::default();
    let checked = Options { checks: Checks::all(), ..Options::default() };
    println!(
        "instructions of active lanes per second, 1e9, interpreted; how much faster native code is; counted: all checks, \
         and memory traffic"
    );
    println!("{:46} memory checks  native   all checks  of it  native   counted  native   two cores", "");
    let mut logarithms = [0.0; 7];
    for kernel in some {
        let mut runners = [
            Runner::new(kernel, (1, Native::Off), plain, Size::Whole),
            Runner::new(kernel, (1, Native::Always), plain, Size::Whole),
            Runner::new(kernel, (1, Native::Off), checked, Size::Partial),
            Runner::new(kernel, (1, Native::Always), checked, Size::Partial),
            Runner::new(kernel, (1, Native::Off), Options::checked(), Size::Partial),
            Runner::new(kernel, (1, Native::Always), Options::checked(), Size::Partial),
            Runner::new(kernel, (2, Native::Off), plain, Size::Whole),
        ];
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(2000) {
            runners.iter_mut().for_each(Runner::run);
        }
        let rates = runners.map(|runner| runner.best);
        line(kernel.name, rates);
        for (sum, rate) in logarithms.iter_mut().zip(rates) {
            *sum += rate.ln();
        }
    }
    line("geometric mean", logarithms.map(|sum| (sum / some.len() as f64).exp()));
}

fn line(name: &str, [plain, native, checked, native_checked, counted, native_counted, two]: [f64; 7]) {
    println!(
        "{name:46} {:13.2} {:6.2}x {:12.2} {:5.0}% {:6.2}x {:9.2} {:6.2}x {:10.2}x",
        plain / 1e9,
        native / plain,
        checked / 1e9,
        checked / plain * 100.0,
        native_checked / checked,
        counted / 1e9,
        native_counted / counted,
        two / plain
    );
}

/// What native code of a kernel takes to be made: the first launch takes longer than the second by that, if neither
/// executes more than an instruction.
fn compile(kernel: &Kernel) {
    let text = kernel.text();
    let module = parse(&text).expect("the kernel is PTX");
    let function = module.functions().find(|function| &*function.name == kernel.entry).expect("it is there");
    let count = function.instructions().count();
    let options = Options { max_instructions: 1, ..Options::default() };
    let mut config = DeviceConfig::default();
    (config.workers, config.native) = (1, Native::Always);
    let device = Device::new(config).expect("a device");
    let (_buffers, args, config) = kernel.set_up(&device, Size::Partial);
    let config = LaunchConfig { grid_dim: (1, 1, 1), ..config };
    let mut best = [Duration::MAX; 2];
    for _ in 0..20 {
        let module = load(&device, &text);
        for best in &mut best {
            let begin = Instant::now();
            let launch = device.launch(&module, kernel.entry, &config, &args, &options);
            launch.expect("the kernel is launched").wait();
            *best = begin.elapsed().min(*best);
        }
    }
    let time = best[0].saturating_sub(best[1]).as_secs_f64() * 1e3;
    println!(
        "{:46} {count:4} instructions, compiled in {time:.2} ms: {:.2} ms for 100",
        kernel.name,
        time * 100.0 / count as f64
    );
}

/// Products with half-precision factors and single-precision sums: four `mma.sync` at a time, and `wgmma`.
fn products() {
    const ROUNDS: u32 = 200;
    let device = device(1);
    let forms = [
        ("mma.sync m16n8k16", kernels::products(), 32, 4 * 16 * 8 * 16),
        ("wgmma m64n128k16", kernels::warpgroup_products(), 128, 64 * 128 * 16),
    ];
    for (name, text, threads, size) in forms {
        let module = load(&device, &text);
        let out = device.alloc::<f32>(threads as usize * 8).expect("memory");
        let config = LaunchConfig::new(8, threads);
        let mut best: f64 = 0.0;
        for _ in 0..10 {
            let begin = Instant::now();
            let args = [Arg::buffer(&out), Arg::U32(ROUNDS)];
            let launch = device.launch(&module, "products", &config, &args, &Options::default());
            let report = launch.expect("the kernel is launched").wait();
            assert!(report.is_clean(), "{report:?}");
            let products = 8.0 * f64::from(ROUNDS) * f64::from(size);
            best = best.max(products / begin.elapsed().as_secs_f64());
        }
        println!("{name}, f16 to f32: {:.2}e9 multiply-adds per second", best / 1e9);
    }
}

/// Loops of little else than one thing, interpreted and compiled.
fn loops() {
    const ROUNDS: u32 = 20_000;
    let device_of = |native| {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        Device::new(config).expect("a device")
    };
    for (name, text) in
        [("a barrier", kernels::rounds(kernels::BARRIER)), ("f64", kernels::rounds(kernels::DOUBLES))]
    {
        let nanoseconds = [Native::Off, Native::Always].map(|native| {
            let device = device_of(native);
            let module = load(&device, &text);
            let out = device.alloc::<f64>(256).expect("memory");
            let run = |_| {
                let begin = Instant::now();
                let args = [Arg::buffer(&out), Arg::U32(ROUNDS)];
                let config = LaunchConfig::new(8, 256);
                let launch = device.launch(&module, "rounds", &config, &args, &Options::default());
                assert!(launch.expect("the kernel is launched").wait().is_clean());
                begin.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS * 8 * 8)
            };
            (0..5).map(run).fold(f64::INFINITY, f64::min)
        });
        let [interpreted, native] = nanoseconds;
        println!("a round of {name}, a warp: {interpreted:.0} ns interpreted, {native:.0} ns native");
    }
}

/// A tile of 128 by 64 halves by a tensor map, unswizzled and swizzled, and by threads.
fn tiles() {
    const ROUNDS: u32 = 1000;
    let device = device(1);
    let module = load(&device, &kernels::tiles());
    let from = device.alloc_zeros::<u8>(128 * 128).expect("memory");
    let map = |swizzle| {
        let map = TensorMap::dense(from.address(), TensorElement::F16, &[64, 128], &[64, 128]);
        let bytes = TensorMap { swizzle, ..map }.to_bytes().expect("there is such a map");
        Arg::Bytes(bytes.to_vec())
    };
    for (name, kernel, threads, arg) in [
        ("a tensor map", "by_map", 1, map(TensorSwizzle::None)),
        ("a tensor map, swizzled", "by_map", 1, map(TensorSwizzle::B128)),
        ("loads and stores", "by_threads", 128, Arg::buffer(&from)),
    ] {
        let mut best: f64 = 0.0;
        for _ in 0..10 {
            let begin = Instant::now();
            let args = [arg.clone(), Arg::U32(ROUNDS)];
            let config = LaunchConfig::new(1, threads);
            let launch = device.launch(&module, kernel, &config, &args, &Options::default());
            let report = launch.expect("the kernel is launched").wait();
            assert!(report.is_clean(), "{report:?}");
            best = best.max(f64::from(ROUNDS) * 16384.0 / begin.elapsed().as_secs_f64());
        }
        println!("a tile by {name}: {:.2}e9 bytes per second", best / 1e9);
    }
}

fn launches() {
    const EMPTY: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
    let device = device(0);
    let module = load(&device, EMPTY);
    let launch = |blocks, threads| {
        let begin = Instant::now();
        let launch =
            device.launch(&module, "empty", &LaunchConfig::new(blocks, threads), &[], &Options::default());
        launch.expect("the kernel is launched").wait();
        begin.elapsed()
    };
    let mut times: Vec<Duration> = (0..5000).map(|_| launch(1, 32)).collect();
    times.sort();
    println!("a launch of an empty kernel, one block: {:.1} us (median)", times[2500].as_secs_f64() * 1e6);
    println!("a million empty blocks: {:.2} s", launch(1_000_000, 32).as_secs_f64());
}

/// Most memory that the process has had, in MiB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// Peak memory of launches that differ in the number of blocks alone.
fn memory() {
    let device = device(0);
    let module = load(&device, &kernels::resident());
    let options = Options { checks: Checks::all(), ..Options::default() };
    for blocks in [16, 1_000, 100_000] {
        let launch = device.launch(&module, "resident", &LaunchConfig::new(blocks, 256), &[], &options);
        let report = launch.expect("the kernel is launched").wait();
        assert!(report.is_clean(), "{report:?}");
        match peak() {
            Some(peak) => println!("{blocks:7} blocks with 32 KiB of shared memory: {peak:.0} MiB at most"),
            None => println!("{blocks:7} blocks: the system does not tell how much memory they took"),
        }
    }
}
