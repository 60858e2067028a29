//! Device properties that choices depend on.

use warpwright_dsl::LaunchRule;
use warpwright_ptx::ir::Arch;

/// The properties of a device that choices depend on. No choice reads `registers`, `l2` and `launch` yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceModel {
    /// Its name, which selects the rows of a [`Table`](super::Table).
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Registers of a multiprocessor, of 32 bits.
    pub registers: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared: u64,
    /// Maximum number of resident warps on a multiprocessor.
    pub warps: u32,
    /// Maximum number of resident blocks on a multiprocessor.
    pub blocks: u32,
    /// Bandwidth of global memory, in bytes per second.
    pub bandwidth: u64,
    /// The L2 cache, in bytes.
    pub l2: u64,
    /// Cycles that a quarter of a multiprocessor takes for an `mma` of 16 × 8 × 16 halves with `f32` accumulators.
    pub mma_cycles: u32,
    /// Overhead of a launch in a graph beyond the time of its kernel, in nanoseconds.
    pub launch: u32,
    /// Time of a grid barrier, in nanoseconds.
    pub barrier: u32,
    /// Time that the beginning and the end of a block's tile take besides its loads, in nanoseconds.
    pub wave: u32,
    /// How fast its parts are, if that is known.
    pub speed: Option<Speed>,
}

/// How fast the parts of a device are, as measured: what estimates of times need.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Cycles of a multiprocessor per second, under load.
    pub clock: f64,
    /// The same while its tensor cores are busy, which take more power.
    pub tensor_clock: f64,
    /// Bytes per second that memory gives where nothing is written.
    pub read: f64,
    /// Bytes per second that memory moves for a copy, reads and writes counted.
    pub copy: f64,
    /// Bytes per second that the L2 cache moves.
    pub l2: f64,
    /// Cycles from a load to its data, if the first-level cache has them.
    pub l1_latency: f64,
    /// The same from the L2 cache.
    pub l2_latency: f64,
    /// The same from memory.
    pub dram_latency: f64,
    /// Cycles from a load to its data in shared memory.
    pub shared_latency: f64,
    /// Cycles that a quarter of a multiprocessor takes for an `mma` of 16 × 8 × 16 halves with `f32` accumulators.
    pub mma_cycles: f64,
}

/// Cards that are typical of their architectures: the first `sm`, name, multiprocessors, GB/s and MiB of L2, by NVIDIA's
/// data sheets and architecture white papers.
const TYPICAL: [(u16, &str, u32, u64, u64); 11] = [
    (75, "T4", 40, 320, 4),
    (80, "A100 SXM 80GB", 108, 2039, 40),
    (86, "RTX 3090", 82, 936, 6),
    (87, "Jetson AGX Orin", 16, 205, 4),
    (89, "RTX 4090", 128, 1008, 72),
    (90, "H100 SXM", 132, 3350, 50),
    (100, "B200", 148, 8000, 126),
    (103, "B300", 152, 8000, 126),
    (104, "Jetson AGX Thor", 20, 273, 32),
    (120, "RTX 5090", 170, 1792, 96),
    (121, "GB10", 48, 273, 24),
];

impl DeviceModel {
    /// A typical card of an architecture. The costs of launches, barriers and waves are assumptions, not measurements.
    pub fn typical(arch: Arch) -> Self {
        let known = TYPICAL.iter().rev().find(|&&(sm, ..)| sm <= arch.sm).unwrap_or(&TYPICAL[0]);
        let &(_, name, multiprocessors, gigabytes, l2) = known;
        let limits = arch.limits();
        DeviceModel {
            name: name.into(),
            arch,
            multiprocessors,
            registers: 64 << 10,
            shared: limits.shared,
            warps: limits.threads / 32,
            blocks: limits.blocks,
            bandwidth: gigabytes * 1_000_000_000,
            l2: l2 << 20,
            // Parts for games add in `f32` at half of the rate of their architecture, a quarter of data centres'.
            mma_cycles: match arch.sm {
                80 | 90..104 => 8,
                86 | 89 | 120 => 32,
                _ => 16,
            },
            launch: 2000,
            barrier: 1250,
            wave: 80,
            speed: None,
        }
    }

    /// The same device with this number of multiprocessors.
    pub fn with_multiprocessors(self, multiprocessors: u32) -> Self {
        DeviceModel { multiprocessors: multiprocessors.max(1), ..self }
    }

    /// Blocks of a launch that are resident on a multiprocessor at once: as many as the rule asks for, limited by
    /// warps, blocks and dynamic shared memory, and at least one.
    pub fn resident(&self, rule: &LaunchRule) -> u32 {
        let warps = rule.block.threads().div_ceil(32).max(1);
        let of_shared = match rule.dynamic_shared {
            0 => self.blocks,
            // A block has a KiB that the system takes.
            bytes => u32::try_from(self.shared / (u64::from(bytes) + 1024)).unwrap_or(self.blocks),
        };
        let max = (self.warps / warps).min(self.blocks).min(of_shared);
        rule.resident_blocks.unwrap_or(max).min(max).max(1)
    }

    /// Bytes that global memory moves in this many nanoseconds.
    pub fn bytes_in(&self, nanoseconds: u32) -> u64 {
        self.bandwidth / 1000 * u64::from(nanoseconds) / 1_000_000
    }
}
