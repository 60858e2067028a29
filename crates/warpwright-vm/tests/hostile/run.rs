//! Whatever text: if the verifier accepts it, its kernels are launched with wild arguments, interpreted and compiled, which
//! must do the same.

use std::time::{Duration, Instant};
use warpwright_ptx::{parse, verify};
use warpwright_vm::{
    Arg, Buffer, Checks, Device, DeviceConfig, KernelInfo, LaunchConfig, Module, Native, Options, Schedule,
    TrapKind,
};

/// Instructions of active lanes that a launch may take.
const BUDGET: u64 = 50_000;

/// A launch with that budget that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the kernels of a module; how many were launched.
pub(crate) fn run(text: &str) -> usize {
    let Ok(module) = parse(text) else { return 0 };
    let Ok(info) = verify(&module) else { return 0 };
    let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let [interpreted, compiled] = [Native::Off, Native::Always].map(|native| {
        let mut config = DeviceConfig::default();
        (config.arch, config.workers, config.memory) = (module.target.arch, 1, 64 << 20);
        config.native = native;
        let device = Device::new(config).expect("a device with one worker");
        let Ok(loaded) = device.load(&module, &info) else { return Vec::new() };
        let buffer = device.clone_htod(&[0x3cu8; 4096]).expect("a page of memory");
        let mut kernels: Vec<KernelInfo> = loaded.kernels().cloned().collect();
        kernels.sort_by(|a, b| a.name.cmp(&b.name));
        let picks = (0..).map(|at: u32| seed.rotate_left(7 * (at % 64)));
        let launches = kernels.iter().zip(picks);
        launches.filter_map(|(kernel, pick)| launch(&device, &loaded, kernel, &buffer, pick)).collect()
    });
    // It tells the time of the host.
    if !text.contains("%globaltimer") {
        assert_eq!(interpreted, compiled);
    }
    interpreted.len()
}

/// What a kernel did: its report, and the buffer.
type Done = (String, Vec<u8>);

/// Launches a kernel in one of many ways, unless it is refused.
fn launch(
    device: &Device,
    module: &Module,
    kernel: &KernelInfo,
    buffer: &Buffer<u8>,
    pick: u64,
) -> Option<Done> {
    let (x, y, z) = kernel.required_block.map_or_else(
        || [(32, 1, 1), (1, 1, 1), (47, 1, 1), (16, 3, 2), (128, 1, 1)][pick as usize % 5],
        |[x, y, z]| (x, y, z),
    );
    let config = LaunchConfig {
        grid_dim: (1 + (pick >> 8) as u32 % 3, 1, 1),
        block_dim: (x, y, z),
        shared_mem_bytes: [0, 256, 40_000][(pick >> 16) as usize % 3],
        cooperative: pick >> 20 & 3 == 0,
        cluster_dim: [None, None, Some((1, 1, 1)), Some((2, 1, 1))][(pick >> 22) as usize % 4],
    };
    let options = Options {
        checks: if pick >> 24 & 1 == 0 { Checks::all() } else { Checks::MEMORY },
        schedule: if pick >> 25 & 1 == 0 { Schedule::Parallel } else { Schedule::Seeded(pick) },
        counters: pick >> 26 & 1 == 0,
        max_instructions: BUDGET,
        ..Options::default()
    };
    let args: Vec<Arg> = (kernel.params.iter().enumerate())
        .map(|(at, param)| argument(param.bytes, pick.rotate_right(at as u32 * 5), buffer.address()))
        .collect();
    let running = device.launch(module, &kernel.name, &config, &args, &options).ok()?;
    let start = Instant::now();
    while !running.is_complete() {
        assert!(start.elapsed() < PATIENCE, "kernel `{}` hangs", kernel.name);
        std::thread::sleep(Duration::from_micros(20));
    }
    let report = running.wait();
    if let Some(trap) = report.trap.as_ref().filter(|trap| trap.kind == TrapKind::Internal) {
        panic!("kernel `{}`: {}", kernel.name, trap.message);
    }
    Some((format!("{report:?}"), buffer.read()))
}

/// An argument of that many bytes: where it can be an address, often that of the buffer.
fn argument(bytes: u32, pick: u64, buffer: u64) -> Arg {
    let wild = [0, 1, u64::MAX, pick, pick >> 32, buffer + 4095, buffer.wrapping_sub(4), 0x7fff_ffff]
        [pick as usize % 8];
    match bytes {
        8 if pick >> 8 & 3 != 0 => Arg::Pointer(buffer + (pick >> 16 & 0x70)),
        8 => Arg::U64(wild),
        4 => Arg::U32(if pick >> 9 & 1 == 0 { (pick >> 32) as u32 % 64 } else { wild as u32 }),
        2 => Arg::U16(wild as u16),
        1 => Arg::U8(wild as u8),
        n => Arg::Bytes((0..n).map(|i| pick.rotate_left(i) as u8).collect()),
    }
}
