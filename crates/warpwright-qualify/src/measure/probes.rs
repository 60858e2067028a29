//! Kernels that measure the device itself.
#![allow(unsafe_code, reason = "each promises to stay within its arguments")]

use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// Stores a word: the least that a launch can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
pub(crate) struct StoreWord;

#[derive(Args)]
#[args(of = StoreWord)]
pub(crate) struct StoreWordArgs<M: Mode> {
    #[arg(len = Extent::new(1))]
    pub(crate) word: M::Out<u32>,
}

// SAFETY: one thread stores the one word.
unsafe impl Bounded for StoreWord {}

impl Kernel for StoreWord {
    type Args<M: Mode> = StoreWordArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body<'k>(&self, k: K<'k>, StoreWordArgs { word }: StoreWordArgs<Body<'k>>) {
        k.when(k.tid().eq(0), || word.st(0, 1));
    }
}

/// All blocks meet at a barrier so many times. `words` are an arrival count, which the last block of each round resets,
/// and a generation, which it counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
pub(crate) struct GridBarriers {
    /// How many times.
    #[field(range = 0..=1 << 20, default = 100)]
    pub(crate) rounds: u32,
    /// Blocks, all of them resident.
    #[field(range = 1..=65535, default = 132)]
    pub(crate) blocks: u32,
}

#[derive(Args)]
#[args(of = GridBarriers)]
pub(crate) struct GridBarriersArgs<M: Mode> {
    #[arg(len = Extent::new(2))]
    pub(crate) words: M::InOut<u32>,
}

// SAFETY: it accesses the two words only.
unsafe impl Bounded for GridBarriers {}

const ARRIVED: u32 = 0;
const GENERATION: u32 = 1;

impl Kernel for GridBarriers {
    type Args<M: Mode> = GridBarriersArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule { cooperative: true, ..LaunchRule::new(256).grid(self.blocks) }
    }

    fn body<'k>(&self, k: K<'k>, GridBarriersArgs { words }: GridBarriersArgs<Body<'k>>) {
        k.each(k.range(0..self.rounds).no_unroll(), |_| {
            k.sync();
            k.when(k.tid().eq(0), || {
                // It cannot change before this block has arrived.
                let generation = words.relaxed(Scope::Gpu).ld(GENERATION);
                let before = words.acq_rel(Scope::Gpu).atomic_add(ARRIVED, 1);
                k.when(before.eq(self.blocks - 1), || {
                    words.relaxed(Scope::Gpu).st(ARRIVED, 0);
                    words.release(Scope::Gpu).st(GENERATION, generation + 1);
                });
                k.while_(|| words.acquire(Scope::Gpu).ld(GENERATION).eq(generation), || {});
            });
            k.sync();
        });
    }
}

/// Counts the cycles of a multiprocessor for at least so many nanoseconds: `ticks` are the cycles, and the nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
pub(crate) struct Ticks {
    /// How long.
    #[field(range = 1..=1_000_000_000, default = 1_000_000)]
    pub(crate) nanoseconds: u32,
}

#[derive(Args)]
#[args(of = Ticks)]
pub(crate) struct TicksArgs<M: Mode> {
    #[arg(len = Extent::new(2))]
    pub(crate) ticks: M::Out<u64>,
}

// SAFETY: one thread stores the two numbers.
unsafe impl Bounded for Ticks {}

impl Kernel for Ticks {
    type Args<M: Mode> = TicksArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body<'k>(&self, k: K<'k>, TicksArgs { ticks }: TicksArgs<Body<'k>>) {
        k.when(k.tid().eq(0), || {
            let (start, cycles) = (k.global_timer(), k.clock64());
            k.while_(|| (k.global_timer() - start).lt(u64::from(self.nanoseconds)), || {});
            ticks.st(0, k.clock64() - cycles);
            ticks.st(1, k.global_timer() - start);
        });
    }
}
