//! Launch options: dimensions, checks, schedule.

use std::fmt;
use std::str::FromStr;

/// The dimensions of a launch. Names and shapes are those of cudarc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks, along x, y and z.
    pub grid_dim: (u32, u32, u32),
    /// Threads of a block, along x, y and z.
    pub block_dim: (u32, u32, u32),
    /// Dynamic shared memory of a block, in bytes.
    pub shared_mem_bytes: u32,
    /// All blocks are resident at once, and may wait for one another.
    pub cooperative: bool,
    /// Blocks of a cluster, along x, y and z; `None` for what the kernel requires, or else none.
    pub cluster_dim: Option<(u32, u32, u32)>,
}

impl LaunchConfig {
    /// A grid of `blocks` blocks of `threads` threads.
    pub fn new(blocks: u32, threads: u32) -> Self {
        LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
            cooperative: false,
            cluster_dim: None,
        }
    }
}

/// The checks that run with a kernel. Bounds and alignment of accesses are always checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Concurrent accesses without ordering.
    pub race: bool,
    /// Reads of uninitialised data.
    pub init: bool,
    /// Barriers and collectives that threads do not reach together.
    pub sync: bool,
    /// A warp some of whose lanes have exited is an error at a barrier for whole warps, not a warning: the letter of PTX,
    /// and what devices before Volta demand.
    pub strict_sync: bool,
}

impl Checks {
    /// Bounds and alignment only.
    pub const MEMORY: Checks = Checks { race: false, init: false, sync: false, strict_sync: false };

    /// All checks.
    pub const ALL: Checks = Checks { race: true, init: true, sync: true, strict_sync: false };

    /// All checks.
    pub fn all() -> Self {
        Checks::ALL
    }
}

/// The error for a text that does not name checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCheck(String);

impl fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no check: there are all, none, memcheck, racecheck, initcheck, synccheck and synccheck=strict",
            self.0
        )
    }
}

impl std::error::Error for UnknownCheck {}

/// Names between commas: `all`, `none`, or some of `memcheck`, `racecheck`, `initcheck`, `synccheck`,
/// `synccheck=strict`. Bounds are always checked, whether `memcheck` is among them or not.
impl FromStr for Checks {
    type Err = UnknownCheck;

    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        let mut checks = Checks::MEMORY;
        for name in text.split(',').map(str::trim) {
            match name {
                "all" => checks = Checks { strict_sync: checks.strict_sync, ..Checks::ALL },
                "none" | "memcheck" | "" => {}
                "racecheck" => checks.race = true,
                "initcheck" => checks.init = true,
                "synccheck" => checks.sync = true,
                "synccheck=strict" => (checks.sync, checks.strict_sync) = (true, true),
                _ => return Err(UnknownCheck(name.to_owned())),
            }
        }
        Ok(checks)
    }
}

/// The definition of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Race {
    /// As hardware and compilers behave: a strong read followed by a barrier of the block acquires. Stores of the
    /// same value to one location do not race, nor does the plain load that begins a compare-and-swap loop.
    #[default]
    Normal,
    /// By the letter of the memory model. Stores of the same value to one location are warnings.
    Strict,
}

/// The order in which warps and blocks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Blocks run on several host threads.
    #[default]
    Parallel,
    /// One host thread, with time slices and their lengths from a seed: every run is the same.
    Seeded(u64),
    /// As `Seeded`, and the blocks of a grid begin in an order given by the seed, with few resident at once. CUDA
    /// promises no order, so a block that waits for one with a lower index that need not have begun may wait for
    /// ever; here that is a deadlock. All blocks of a cooperative grid are resident.
    Scattered(u64),
    /// As `Scattered(0)`, and the blocks of a grid begin in reverse order, the last one first.
    Reversed,
}

/// How a launch runs, and its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The checks.
    pub checks: Checks,
    /// The definition of a race.
    pub race: Race,
    /// The order in which warps and blocks run.
    pub schedule: Schedule,
    /// Whether memory traffic is counted. Instructions always are.
    pub counters: bool,
    /// Whether it is also counted what caches would be asked for ([`Fetches`](crate::Fetches)): memory traffic is counted
    /// then, too.
    pub fetches: bool,
    /// Executes no more than this number of blocks, in a few runs of neighbours spread over the grid. A cooperative grid
    /// is executed whole.
    pub sample: Option<u64>,
    /// The launch ends with a trap after this number of instructions, summed over all lanes.
    pub max_instructions: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            checks: Checks::MEMORY,
            race: Race::Normal,
            schedule: Schedule::Parallel,
            counters: false,
            fetches: false,
            sample: None,
            max_instructions: 1 << 40,
        }
    }
}

impl Options {
    /// All checks, and counters.
    pub fn checked() -> Self {
        Options { checks: Checks::ALL, counters: true, ..Options::default() }
    }
}
