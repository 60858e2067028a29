//! The kernel: its arguments, its launch rule, and its name.

use super::Op;
use super::barrier::GridBarrier;
use super::format::{BARRIER_WORDS, COUNTER_STRIDE, FAULT_WORDS, ITEM_WORDS};
use super::wait::Waits;
use super::walk::{Kept, Walk};
use warpwright_dsl::*;

/// Runs a schedule, token after token, in one cooperative launch: see the [module](super).
///
/// | argument | | elements |
/// | --- | --- | --- |
/// | `operands` | in, `u64` | records of instances |
/// | `items` | in, `u32` | 8 for each item |
/// | `bounds` | in, `u32` | 2 for each list of items: `phases · blocks` of them, or with a queue `phases` |
/// | `barrier` | in and out, `u32` | 96, zero before each launch |
/// | `counters` | in and out, `u32` | 8 for each counter, zero before each launch; with a queue, the first `phases` are its heads |
/// | `fault` | in and out, `u32` | 8, zero before each launch |
/// | `progress` | in and out, `u32` | 3, those of [`Publish`](crate::Publish): when it says that it is finished, so is the launch |
/// | `phases` | `u32` | phases of a token: one or more |
/// | `tokens` | `u32` | maximum number of tokens |
/// | `budget` | `u32` | maximum number of polls of a wait |
///
/// [`format`](super::format) defines the layout of the words. [`Publish`](crate::Publish) may be an op of any phase but
/// the first, so that no block still polls `progress` when it is written; a schedule of one phase needs an additional
/// empty phase. Operands are addresses in device memory, so the arguments do not show what bodies access. The grid is
/// `blocks`: all of them must be resident at once, and a static schedule must have been made for that number.
///
/// One binary serves all schedules over the same ops: shapes are numbers in records.
#[derive(Clone, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the whole of many steps of decoding in one cooperative launch: a schedule in memory over these ops"
)]
pub struct PersistentDecoder {
    /// The ops that items may refer to by index.
    #[field(opaque)]
    pub ops: Vec<Op>,
    /// Warps of a block, which are divided into the warp groups of each op.
    #[field(domain = BLOCK_WARPS, default = 8)]
    pub warps: u32,
    /// How items are assigned to blocks.
    #[field(default = "static")]
    pub assignment: Assignment,
}

/// The arguments of [`PersistentDecoder`].
#[derive(Args)]
#[args(of = PersistentDecoder)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct PersistentDecoderArgs<M: Mode> {
    #[arg(len = Extent::dim("operands"), constant)]
    pub operands: M::In<u64>,
    #[arg(len = Extent::dim("items").times(ITEM_WORDS.into()), constant)]
    pub items: M::In<u32>,
    #[arg(len = of.lists(phases, blocks).times(2), constant)]
    pub bounds: M::In<u32>,
    #[arg(len = BARRIER_WORDS)]
    pub barrier: M::InOut<u32>,
    #[arg(len = Extent::dim("counters").times(COUNTER_STRIDE.into()))]
    pub counters: M::InOut<u32>,
    #[arg(len = FAULT_WORDS)]
    pub fault: M::InOut<u32>,
    #[arg(len = 3)]
    pub progress: M::InOut<u32>,
    pub phases: M::Scalar<u32>,
    pub tokens: M::Scalar<u32>,
    pub budget: M::Scalar<u32>,
    pub blocks: M::Dim,
}

/// How the items of a phase are assigned to blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Choice)]
pub enum Assignment {
    /// Each block has its own list.
    #[default]
    Static,
    /// Blocks take items one by one from a shared queue.
    Queue,
}

impl Assignment {
    /// How many lists of items a schedule has.
    pub fn lists(self, phases: u32, blocks: u32) -> u64 {
        match self {
            Assignment::Static => u64::from(phases) * u64::from(blocks),
            Assignment::Queue => phases.into(),
        }
    }

    /// The first counter that items may use; the heads of queues come before it.
    pub fn first_counter(self, phases: u32) -> u32 {
        match self {
            Assignment::Static => 0,
            Assignment::Queue => phases,
        }
    }
}

/// Warps of a block, unless it is said otherwise.
const WARPS: u32 = 8;

/// Those that a block may have.
pub(super) const BLOCK_WARPS: Domain = Domain::OneOf(&["1", "2", "4", "8"]);

/// A multiprocessor has registers for this many warps of threads with 255 each.
const FEWEST_WARPS: u32 = 8;

impl PersistentDecoder {
    /// A decoder with these ops, blocks of 8 warps, and a static assignment.
    pub fn new(ops: Vec<Op>) -> Self {
        PersistentDecoder { ops, warps: WARPS, assignment: Assignment::Static }
    }

    /// The wanted number of resident blocks per multiprocessor: as many as the launch rules of the ops leave registers
    /// for.
    pub fn resident_blocks(&self) -> u32 {
        let warps = self.ops.iter().filter_map(Op::resident_warps).min().unwrap_or(FEWEST_WARPS);
        (warps / self.warps.max(1)).max(1)
    }

    /// Lists of items.
    fn lists(&self, phases: Extent, blocks: Extent) -> Extent {
        match self.assignment {
            Assignment::Static => phases * blocks,
            Assignment::Queue => phases,
        }
    }
}

impl Kernel for PersistentDecoder {
    type Args<M: Mode> = PersistentDecoderArgs<M>;

    /// The code of ops is that for one target.
    fn cache_key(&self) -> Option<Key> {
        None
    }

    fn launch(&self) -> LaunchRule {
        let min_sm = self.ops.iter().map(|op| op.kernel().launch().min_sm).max();
        let rule = LaunchRule::new(self.warps * 32).grid(Extent::dim("blocks"));
        LaunchRule {
            cooperative: true,
            resident_blocks: Some(self.resident_blocks()),
            min_sm: min_sm.unwrap_or(rule.min_sm),
            ..rule
        }
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.ops.is_empty() {
            return Err(BuildError::field("ops", "none", "one at least"));
        }
        for (i, op) in self.ops.iter().enumerate() {
            if self.warps != op.block_warps() {
                let rule = format!("one that is for blocks of {} warps", self.warps);
                return Err(BuildError::field("ops", op.name(), rule));
            }
            if self.ops[..i].contains(op) {
                return Err(BuildError::field("ops", op.name(), "in the list once"));
            }
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: PersistentDecoderArgs<Body<'k>>) {
        for op in self.ops.iter().filter(|op| !op.suits(k.target())) {
            k.refuse(format!("`{}` has other operands on {} than on {}", op.name(), k.target(), op.target()));
        }
        let PersistentDecoderArgs { operands, items, bounds, counters, progress, phases, tokens, .. } = args;
        let waits = Waits::new(k, args.barrier, args.fault, args.budget);
        let (ops, assignment) = (&self.ops[..], self.assignment);
        let (taken, kept) = (k.shared(1), k.shared(Kept::WORDS));
        let walk = Walk {
            k,
            ops,
            assignment,
            waits,
            operands,
            items,
            bounds,
            counters,
            progress,
            phases,
            tokens,
            taken,
            kept,
        };
        walk.run(&GridBarrier::new(k, waits, args.barrier, phases));
    }
}
