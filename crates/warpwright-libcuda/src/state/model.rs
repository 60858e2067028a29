//! Properties of a typical card of each architecture that the virtual GPU does not define itself.

use warpwright_ptx::ir::Arch;

/// Properties of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// Clock of the multiprocessors, in kHz.
    pub(crate) clock: u32,
    /// Clock of the memory, in kHz.
    pub(crate) memory_clock: u32,
    /// Width of the memory bus, in bits.
    pub(crate) bus_width: u32,
    /// L2 cache, in bytes.
    pub(crate) l2: u32,
    /// Number of copy engines.
    pub(crate) copy_engines: u32,
    /// Ratio of single to double precision throughput.
    pub(crate) double_ratio: u32,
    /// Whether it shares the host's memory.
    pub(crate) is_integrated: bool,
}

impl Model {
    const fn new(clock: u32, (memory_clock, bus_width): (u32, u32), l2_mib: u32, ratio: u32) -> Model {
        Model {
            clock,
            memory_clock,
            bus_width,
            l2: l2_mib << 20,
            copy_engines: 3,
            double_ratio: ratio,
            is_integrated: false,
        }
    }

    const fn integrated(self) -> Model {
        Model { is_integrated: true, ..self }
    }

    /// A graphics card.
    const fn graphics(self) -> Model {
        Model { copy_engines: 2, ..self }
    }

    /// The card of an architecture. An unknown one is like the known one before it.
    pub(crate) const fn of(arch: Arch) -> Model {
        match arch.sm {
            ..53 => Model::new(1_216_000, (3_505_000, 384), 3, 32),
            53 => Model::new(921_600, (1_600_000, 64), 1, 32).integrated(),
            54..61 => Model::new(1_480_500, (715_000, 4096), 4, 2),
            61 => Model::new(1_582_000, (5_505_000, 352), 3, 32),
            62 => Model::new(1_300_500, (1_600_000, 128), 1, 32).integrated(),
            63..72 => Model::new(1_530_000, (877_000, 4096), 6, 2),
            72 => Model::new(1_377_000, (2_133_000, 256), 1, 32).integrated(),
            73..80 => Model::new(1_590_000, (5_001_000, 256), 4, 32),
            80 => Model::new(1_410_000, (1_215_000, 5120), 40, 2),
            81..87 => Model::new(1_695_000, (9_751_000, 384), 6, 64).graphics(),
            87 | 88 => Model::new(1_300_000, (3_200_000, 256), 4, 64).integrated(),
            89 => Model::new(2_520_000, (10_501_000, 384), 72, 64).graphics(),
            90 => Model::new(1_980_000, (2_619_000, 5120), 50, 2),
            // Its cache is half a MiB more.
            91..103 => Model { l2: 129_536 << 10, ..Model::new(1_965_000, (3_996_000, 8192), 126, 2) },
            103 => Model::new(1_965_000, (3_996_000, 8192), 126, 64),
            104..120 => Model::new(1_575_000, (4_266_000, 256), 32, 64).integrated(),
            121 => Model::new(2_418_000, (4_266_000, 256), 24, 64).integrated(),
            120.. => Model::new(2_407_000, (14_001_000, 512), 96, 64).graphics(),
        }
    }
}
