//! The kernel: its arguments, how it is launched, and what it is called.

use super::Op;
use super::barrier::GridBarrier;
use super::format::{BARRIER_WORDS, COUNTER_STRIDE, FAULT_WORDS, ITEM_WORDS};
use super::wait::Waits;
use super::walk::{Kept, Walk};
use std::fmt;
use warpwright_dsl::any::AnyKernel;
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
/// | `tokens` | `u32` | tokens at most |
/// | `budget` | `u32` | polls of a wait at most |
///
/// Words are laid out by [`format`](super::format). [`Publish`](crate::Publish) is an op of any phase but the first, so
/// that no block is still looking at `progress` when it is written; a schedule of one phase needs an empty one more. Operands are addresses of device memory: what bodies access through
/// them no argument shows. The grid is `blocks`, which all must be resident at once, and for which a static schedule has
/// been made.
///
/// One binary does for all schedules over the same ops: shapes are sizes in records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentDecoder {
    /// What items may be of, by their index.
    pub ops: Vec<Op>,
    /// Warps of a block: 1, 2, 4 or 8, and as many as the largest op wants.
    pub warps: u32,
    /// How items come to blocks.
    pub assignment: Assignment,
}

/// How the items of a phase come to blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// Each block has a list of its own.
    #[default]
    Static,
    /// Blocks take items one by one, in the order of one list.
    Queue,
}

impl Assignment {
    /// Both.
    pub const ALL: [Assignment; 2] = [Assignment::Static, Assignment::Queue];
    pub(super) const NAMES: &'static [&'static str] = &["static", "queue"];

    /// Lists of items that a schedule has.
    pub fn lists(self, phases: u32, blocks: u32) -> u64 {
        match self {
            Assignment::Static => u64::from(phases) * u64::from(blocks),
            Assignment::Queue => phases.into(),
        }
    }

    /// The first counter that items may use.
    pub fn first_counter(self, phases: u32) -> u32 {
        match self {
            Assignment::Static => 0,
            Assignment::Queue => phases,
        }
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// Warps of a block, unless it is said otherwise.
const WARPS: u32 = 8;

/// Registers of a multiprocessor are enough for so many warps with 255 each.
const FEWEST_WARPS: u32 = 8;

impl PersistentDecoder {
    /// A decoder with those ops, blocks of 8 warps, and a static assignment.
    pub fn new(ops: Vec<Op>) -> Self {
        PersistentDecoder { ops, warps: WARPS, assignment: Assignment::Static }
    }

    /// Blocks that should be resident on each multiprocessor: as many as the ops have registers for by their own launch
    /// rules.
    pub fn resident_blocks(&self) -> u32 {
        let warps = self.ops.iter().filter_map(Op::resident_warps).min().unwrap_or(FEWEST_WARPS);
        (warps / self.warps.max(1)).max(1)
    }

    /// The walk through the schedule that the arguments hold, and the words of the barrier.
    pub(super) fn walk<'k>(&self, k: K<'k>) -> (Walk<'k, '_>, Ptr<'k, Global, u32>) {
        let operands = k.ptr("operands");
        let (items, bounds) = (k.ptr("items"), k.ptr("bounds"));
        let (words, counters) = (k.ptr_mut("barrier"), k.ptr_mut("counters"));
        let (fault, progress) = (k.ptr_mut("fault"), k.ptr_mut("progress"));
        let (phases, tokens) = (k.scalar("phases"), k.scalar("tokens"));
        let waits = Waits::new(k, words, fault, k.scalar("budget"));
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
        (walk, words)
    }
}

impl AnyKernel for PersistentDecoder {
    fn entry(&self) -> String {
        let PersistentDecoder { ops, warps, assignment } = self;
        let codes = ops.iter().map(Op::code);
        format!("persistent_decoder_{}_ops_w{warps}_{assignment}_{:016x}", ops.len(), fnv(codes))
    }

    fn args(&self) -> Vec<ArgDesc> {
        let lists = match self.assignment {
            Assignment::Static => Extent::dims("phases", "blocks"),
            Assignment::Queue => Extent::dim("phases"),
        };
        let counters = Extent::dim("counters").times(COUNTER_STRIDE.into());
        vec![
            ArgDesc::input::<u64>("operands", Extent::dim("operands")).constant(),
            ArgDesc::input::<u32>("items", Extent::dim("items").times(ITEM_WORDS.into())).constant(),
            ArgDesc::input::<u32>("bounds", lists.times(2)).constant(),
            ArgDesc::in_out::<u32>("barrier", BARRIER_WORDS),
            ArgDesc::in_out::<u32>("counters", counters),
            ArgDesc::in_out::<u32>("fault", FAULT_WORDS),
            ArgDesc::in_out::<u32>("progress", 3),
            ArgDesc::scalar::<u32>("phases"),
            ArgDesc::scalar::<u32>("tokens"),
            ArgDesc::scalar::<u32>("budget"),
        ]
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
        if !matches!(self.warps, 1 | 2 | 4 | 8) {
            return Err(BuildError::field("warps", self.warps, "1, 2, 4 or 8"));
        }
        if self.ops.is_empty() {
            return Err(BuildError::field("ops", "none", "one at least"));
        }
        for (i, op) in self.ops.iter().enumerate() {
            if op.warps().is_some_and(|warps| !self.warps.is_multiple_of(warps)) {
                let rule = format!("a kernel whose warps divide the {} of the decoder's blocks", self.warps);
                return Err(BuildError::field("ops", op.name(), rule));
            }
            if self.ops[..i].contains(op) {
                return Err(BuildError::field("ops", op.name(), "in the list once"));
            }
        }
        Ok(())
    }

    fn body(&self, k: K<'_>) {
        let (walk, words) = self.walk(k);
        walk.run(&GridBarrier::new(k, walk.waits, words, walk.phases));
    }
}

/// A hash of texts that is the same everywhere (FNV-1a).
fn fnv<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    let bytes = texts.flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
