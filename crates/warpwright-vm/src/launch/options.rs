//! How a kernel is launched, and what is looked for.

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
}

impl LaunchConfig {
    /// A grid of `blocks` blocks of `threads` threads.
    pub fn new(blocks: u32, threads: u32) -> Self {
        LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
            cooperative: false,
        }
    }
}

/// What is looked for while a kernel runs. Accesses are always checked for bounds and alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Accesses that nothing orders.
    pub race: bool,
    /// Reads of what was never written.
    pub init: bool,
    /// Barriers and collectives that threads do not reach together.
    pub sync: bool,
}

impl Checks {
    /// Bounds and alignment alone.
    pub const MEMORY: Checks = Checks { race: false, init: false, sync: false };

    /// Everything.
    pub const ALL: Checks = Checks { race: true, init: true, sync: true };

    /// Everything.
    pub fn all() -> Self {
        Checks::ALL
    }
}

/// What counts as a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Race {
    /// As hardware and compilers have it: a strong read followed by a barrier of the block acquires, and
    /// neither stores of one value to one place nor the plain load that begins a compare-and-swap loop race.
    #[default]
    Normal,
    /// By the letter of the memory model. Stores of one value to one place are warnings.
    Strict,
}

/// In what order warps and blocks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Blocks run on several host threads.
    #[default]
    Parallel,
    /// One host thread, with turns and their lengths by a seed: the same every time.
    Seeded(u64),
    /// The same, and the blocks of a grid begin in an order by the seed, with few resident at once: CUDA promises no order,
    /// so a block that waits for one with a lower index, and not for one that has begun, may wait for ever. That is a
    /// deadlock then. All blocks of a cooperative grid are resident.
    Scattered(u64),
}

/// How a launch runs and what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is looked for.
    pub checks: Checks,
    /// What counts as a race.
    pub race: Race,
    /// The order of things.
    pub schedule: Schedule,
    /// Whether memory traffic is counted. Instructions always are.
    pub counters: bool,
    /// Instructions, of all lanes together, after which the launch ends with a trap.
    pub max_instructions: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            checks: Checks::MEMORY,
            race: Race::Normal,
            schedule: Schedule::Parallel,
            counters: false,
            max_instructions: 1 << 40,
        }
    }
}

impl Options {
    /// Every check, and counters.
    pub fn checked() -> Self {
        Options { checks: Checks::ALL, counters: true, ..Options::default() }
    }
}
