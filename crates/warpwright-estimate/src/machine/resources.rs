//! The resources of a kernel, and its occupancy.

use warpwright_ptx::ir::Arch;

/// The resources that `ptxas -v` reports for a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory, in bytes.
    pub shared: u32,
    /// Local memory of a thread, in bytes, including spilled registers.
    pub local: u32,
}

/// Registers of a multiprocessor of every architecture since `sm_50`.
const REGISTERS: u32 = 65536;
/// The unit in which registers are allocated to warps.
const UNIT: u32 = 256;
/// Shared memory that is reserved for each block beside its own, since `sm_80`.
const RESERVED: u32 = 1024;

impl Resources {
    /// Reads the resources of the last function in a log of `ptxas -v`.
    pub fn read(log: &str) -> Self {
        let number_before = |line: &str, unit: &str| {
            let before = line.split(unit).next().filter(|before| before.len() < line.len())?;
            before.split_whitespace().next_back()?.parse().ok()
        };
        let mut used = Resources::default();
        for line in log.lines() {
            used.registers = number_before(line, " registers").unwrap_or(used.registers);
            used.shared = number_before(line, " bytes smem").unwrap_or(used.shared);
            used.local = number_before(line, " bytes stack frame").unwrap_or(used.local);
        }
        used
    }

    /// Blocks of so many threads, with so many bytes of dynamic shared memory, that are resident on a multiprocessor at
    /// once.
    pub fn resident_blocks(self, arch: Arch, threads: u32, dynamic_shared: u32) -> u32 {
        let warps = threads.max(1).div_ceil(32);
        let limits = arch.limits();
        let reserved = if arch.sm >= 80 { RESERVED } else { 0 };
        let shared = u64::from(self.shared) + u64::from(dynamic_shared) + u64::from(reserved);
        let of_registers = REGISTERS / ((self.registers.max(1) * 32).next_multiple_of(UNIT) * warps);
        let of_shared = limits.shared.checked_div(shared).unwrap_or(u64::MAX);
        let of_shared = u32::try_from(of_shared).unwrap_or(u32::MAX);
        of_registers.min(of_shared).min(limits.blocks).min(limits.threads / (warps * 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read() {
        let log = "ptxas info    : Compiling entry function 'f' for 'sm_80'
ptxas info    : Function properties for f
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 376 bytes cmem[0]";
        assert_eq!(Resources::read(log), Resources { registers: 40, shared: 1024, local: 16 });
        let log = "ptxas info    : Used 16 registers, 380 bytes cmem[0]";
        assert_eq!(Resources::read(log), Resources { registers: 16, ..Resources::default() });
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let blocks = |registers, shared, threads, sm| {
            let resources = Resources { registers, shared, ..Resources::default() };
            resources.resident_blocks(Arch::sm(sm), threads, 0)
        };
        // Threads, registers (in whole units), blocks, shared memory.
        assert_eq!(blocks(32, 0, 256, 80), 8);
        assert_eq!(blocks(33, 0, 256, 80), 6);
        assert_eq!(blocks(128, 0, 256, 80), 2);
        assert_eq!(blocks(16, 0, 32, 86), 16);
        assert_eq!(blocks(16, 40 << 10, 256, 80), 4);
        assert_eq!(blocks(255, 0, 1024, 80), 0);
    }
}
