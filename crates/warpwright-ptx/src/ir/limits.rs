//! Limits of an architecture's devices, from the table of compute capabilities in NVIDIA's CUDA programming guide.

use super::{Arch, ArchVariant};

/// The limits of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of resident threads.
    pub threads: u32,
    /// Maximum number of resident blocks.
    pub blocks: u32,
    /// Shared memory, in bytes. From `sm_80` on, each resident block takes 1 KiB of it in addition to its own.
    pub shared: u64,
    /// Maximum of static and dynamic shared memory of one block, in bytes.
    pub shared_per_block: u64,
}

impl Limits {
    const fn new(threads: u32, blocks: u32, shared_kib: u64, per_block_kib: u64) -> Self {
        Limits { threads, blocks, shared: shared_kib << 10, shared_per_block: per_block_kib << 10 }
    }
}

impl Arch {
    /// The limits of a multiprocessor. An unknown architecture has those of the known one before it.
    pub const fn limits(self) -> Limits {
        match self.sm {
            ..52 => Limits::new(2048, 32, 64, 48),
            52..60 => Limits::new(2048, 32, 96, 48),
            60 | 62 => Limits::new(2048, 32, 64, 48),
            61 => Limits::new(2048, 32, 96, 48),
            63..75 => Limits::new(2048, 32, 96, 96),
            75..80 => Limits::new(1024, 16, 64, 64),
            86 => Limits::new(1536, 16, 100, 99),
            87 => Limits::new(1536, 16, 164, 163),
            88 | 89 => Limits::new(1536, 24, 100, 99),
            80..90 => Limits::new(2048, 32, 164, 163),
            90..110 => Limits::new(2048, 32, 228, 227),
            110..120 => Limits::new(1536, 24, 228, 227),
            120.. => Limits::new(1536, 24, 100, 99),
        }
    }

    /// Whether a device of this architecture runs code for a target. Code for a base target runs on later devices
    /// too, code for a family on later members of the family, and architecture-specific code only on that
    /// architecture.
    pub const fn runs(self, target: Arch) -> bool {
        match target.variant {
            ArchVariant::Base => self.sm >= target.sm,
            ArchVariant::Family => self.sm / 10 == target.sm / 10 && self.sm >= target.sm,
            ArchVariant::Specific => self.sm == target.sm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_run_what_is_for_them() {
        let cases = [
            (Arch::sm(90), Arch::sm(80), true),
            (Arch::sm(80), Arch::sm(90), false),
            (Arch::sm(90), Arch::specific(90), true),
            (Arch::sm(100), Arch::specific(90), false),
            (Arch::sm(103), Arch::family(100), true),
            (Arch::sm(100), Arch::family(103), false),
            (Arch::sm(120), Arch::family(100), false),
            (Arch::specific(121), Arch::family(120), true),
        ];
        for (device, target, runs) in cases {
            assert_eq!(device.runs(target), runs, "{device} and code for {target}");
        }
    }

    #[test]
    fn a_block_fits_into_a_multiprocessor() {
        for arch in Arch::all() {
            let limits = arch.limits();
            assert!(limits.shared_per_block <= limits.shared && limits.threads >= 1024, "{arch}");
        }
    }
}
