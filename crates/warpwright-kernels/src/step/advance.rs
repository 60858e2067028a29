//! Counters of a batch that advance by one.

use warpwright_dsl::*;

/// Adds 1 to each of `rows` counters in each of up to four buffers: the positions, lengths and steps of a batch, once
/// at the end of each decode step.
///
/// The buffers, `counters_0` and so on, hold a `u32` for each row. A counter at `u32::MAX` stays there: such positions
/// mark rows that pad a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "adds 1 to the counters of each row: positions, lengths, steps",
    examples("buffers=1", "buffers=3", "buffers=4")
)]
pub struct Advance {
    /// Buffers of counters, of which each has one for each row.
    #[field(range = 1..=4, default = 2)]
    pub buffers: u32,
}

/// The arguments of [`Advance`].
#[derive(Args)]
#[args(of = Advance)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct AdvanceArgs<M: Mode> {
    #[arg(
        len = rows,
        count = of.buffers as usize,
        names("counters_0", "counters_1", "counters_2", "counters_3")
    )]
    pub counters: Vec<M::InOut<u32>>,
    pub rows: M::Scalar<u32>,
}

/// Threads of a block.
const THREADS: u32 = 128;

impl Advance {
    /// So many buffers.
    pub fn new(buffers: u32) -> Self {
        Advance { buffers }
    }
}

impl Kernel for Advance {
    type Args<M: Mode> = AdvanceArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(THREADS).grid(Extent::dim("rows").per(THREADS.into()))
    }

    fn body<'k>(&self, k: K<'k>, AdvanceArgs { counters: buffers, rows }: AdvanceArgs<Body<'k>>) {
        let row = k.global_tid();
        k.when(row.lt(rows), || {
            let counters: Vec<_> = buffers.iter().map(|counters| counters.ld(row)).collect();
            for (buffer, counter) in buffers.iter().zip(counters) {
                buffer.st(row, counter.min(u32::MAX - 1) + 1);
            }
        });
    }
}
