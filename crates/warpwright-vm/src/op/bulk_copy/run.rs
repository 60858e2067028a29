//! Runs of bytes that a bulk copy reads and writes for one lane.

use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::machine::{LANES, Machine};
use crate::memory::{AccessSpec, Group, RegionKind};
use crate::op::atomic::combine_in_memory;
use std::sync::atomic::Ordering::Relaxed;
use warpwright_ptx::ir::Type;
use warpwright_ptx::op::atomic::AtomicOp;
use warpwright_ptx::op::bulk_copy::BulkReduction;

/// Bytes that a lane of a warp moves at once, where traffic is counted.
const VECTOR: u64 = 16;

impl<'a> Machine<'a> {
    /// The memory that a lane's run of bytes is in; none where the access is not allowed, which is reported.
    pub(super) fn run_at(&mut self, lane: usize, address: u64, spec: AccessSpec) -> Option<Group<'a>> {
        self.next_group(spec, &[address; LANES], &mut (1 << lane))
    }

    /// An agent touches a run: for the race check it is one access, and its traffic is that of a warp.
    pub(in crate::op) fn touches_run(&mut self, touch: Touch, run: &Group<'a>) {
        self.touches_run_with(touch, run, false);
    }

    /// The same of a write that may leave what is there `unchanged`.
    pub(super) fn touches_run_with(&mut self, touch: Touch, run: &Group<'a>, unchanged: bool) {
        self.look_for_races_of(touch, run, &[], unchanged);
        if !self.launch.options.counters {
            return;
        }
        let (mut at, bytes) = (0, u64::from(run.bytes));
        while at < bytes {
            let lanes = ((bytes - at) / VECTOR).min(LANES as u64);
            let (width, count) = if lanes == 0 { (bytes - at, 1) } else { (VECTOR, lanes) };
            let offsets = std::array::from_fn(|lane| run.offsets[0] + at + width * lane as u64);
            let mask = u32::MAX >> (LANES as u64 - count);
            self.counted(touch.kind, &Group { bytes: width as u32, mask, offsets, ..*run });
            at += width * count;
        }
    }

    /// Whether the race check wants to know that two runs hold the same, and they do.
    pub(super) fn holds_same(&self, from: &Group<'a>, to: &Group<'a>) -> bool {
        let shared = &self.cluster.shared;
        let is_same =
            |at: u64| byte(shared, from, from.offsets[0] + at) == byte(shared, to, to.offsets[0] + at);
        self.launch.options.checks.race && (0..u64::from(from.bytes)).all(is_same)
    }

    /// Copies one run to another of as many bytes.
    pub(super) fn copy_run(&mut self, read: Touch, from: &Group<'a>, to: &Group<'a>) {
        if self.launch.options.checks.init {
            self.look_for_unwritten_run(read, from, to);
        }
        let (first, last, bytes) = (from.offsets[0], to.offsets[0], u64::from(from.bytes));
        let shared = &mut self.cluster.shared;
        if (first | last | bytes) % 4 != 0 {
            for at in 0..bytes {
                let value = byte(shared, from, first + at);
                set_byte(shared, to, last + at, value);
            }
            return;
        }
        let (source, target, count) = (first as usize / 4, last as usize / 4, bytes as usize / 4);
        match (from.region.kind, to.region.kind) {
            (RegionKind::Global(allocation), RegionKind::Shared) => {
                for (at, word) in shared[target..target + count].iter_mut().enumerate() {
                    *word = allocation.word(first + 4 * at as u64).load(Relaxed);
                }
            }
            (RegionKind::Shared, RegionKind::Global(allocation)) => {
                for (at, word) in shared[source..source + count].iter().enumerate() {
                    allocation.word(last + 4 * at as u64).store(*word, Relaxed);
                }
            }
            (RegionKind::Shared, RegionKind::Shared) => {
                shared.copy_within(source..source + count, target);
            }
            _ => {}
        }
    }

    /// The words of a run of shared memory become those of a pattern.
    pub(super) fn fill_run(&mut self, run: &Group<'a>, pattern: u64) {
        if self.launch.options.checks.init {
            self.define_run(run);
        }
        let (first, count) = (run.offsets[0] as usize / 4, run.bytes as usize / 4);
        if matches!(run.region.kind, RegionKind::Shared) {
            let halves = [pattern as u32, (pattern >> 32) as u32];
            let words = &mut self.cluster.shared[first..first + count];
            words.iter_mut().zip(halves.into_iter().cycle()).for_each(|(word, half)| *word = half);
        }
    }

    /// The words of a run of shared memory are rounded to TF32: to the nearest, ties to even. Infinities and NaNs stay.
    pub(super) fn round_run(&mut self, run: &Group<'a>) {
        let (first, count) = (run.offsets[0] as usize / 4, run.bytes as usize / 4);
        for word in &mut self.cluster.shared[first..first + count] {
            if f32::from_bits(*word).is_finite() {
                *word = (*word + 0xfff + (*word >> 13 & 1)) & !0x1fff;
            }
        }
    }

    /// The lower 6 bits of each of 16 bytes become 12 bytes.
    pub(super) fn pack_run(&mut self, read: Touch, from: &Group<'a>, to: &Group<'a>) {
        if self.launch.options.checks.init {
            self.look_for_unwritten(read, from, 0);
            self.define_run(to);
        }
        let shared = &mut self.cluster.shared;
        let bits = (0..16).fold(0u128, |bits, at| {
            let element = byte(shared, from, from.offsets[0] + at) & 0x3f;
            bits | u128::from(element) << (6 * at)
        });
        for at in 0..u64::from(to.bytes) {
            set_byte(shared, to, to.offsets[0] + at, (bits >> (8 * at)) as u8);
        }
    }

    /// Combines each element of one run with that of another.
    pub(super) fn reduce_run(&mut self, by: Reduction, read: Touch, from: &Group<'a>, to: &Group<'a>) {
        if self.launch.options.checks.init {
            self.look_for_unwritten(read, from, 0);
            self.look_for_unwritten(Touch { kind: AccessKind::Atomic, ..read }, to, 0);
        }
        let bytes = by.ty.bytes();
        let shared = &mut self.cluster.shared;
        for at in (0..u64::from(from.bytes)).step_by(bytes as usize) {
            let (first, last) = (from.offsets[0] + at, to.offsets[0] + at);
            let value = (0..u64::from(bytes))
                .fold(0, |value, at| value | u64::from(byte(shared, from, first + at)) << (8 * at));
            combine_in_memory(shared, to.region.kind, last, (by.op, by.ty, by.noftz), value);
        }
    }
}

/// What a reduction does to each element.
#[derive(Clone, Copy)]
pub(super) struct Reduction {
    pub(super) op: AtomicOp,
    pub(super) ty: Type,
    pub(super) noftz: bool,
}

impl Reduction {
    pub(super) fn new(reduction: BulkReduction, ty: Type, noftz: bool) -> Self {
        let op = match reduction {
            BulkReduction::Add => AtomicOp::Add,
            BulkReduction::Min => AtomicOp::Min,
            BulkReduction::Max => AtomicOp::Max,
            BulkReduction::Inc => AtomicOp::Inc,
            BulkReduction::Dec => AtomicOp::Dec,
            BulkReduction::And => AtomicOp::And,
            BulkReduction::Or => AtomicOp::Or,
            BulkReduction::Xor => AtomicOp::Xor,
        };
        Reduction { op, ty, noftz }
    }
}

/// The part of a run that begins so far behind its beginning.
pub(super) fn part<'a>(run: &Group<'a>, at: u32, bytes: u32) -> Group<'a> {
    Group { bytes, offsets: [run.offsets[0] + u64::from(at); LANES], ..*run }
}

fn byte(shared: &[u32], run: &Group<'_>, at: u64) -> u8 {
    let word = match run.region.kind {
        RegionKind::Global(allocation) => allocation.word(at).load(Relaxed),
        _ => shared[at as usize / 4],
    };
    (word >> (8 * (at % 4))) as u8
}

fn set_byte(shared: &mut [u32], run: &Group<'_>, at: u64, value: u8) {
    let shift = 8 * (at % 4);
    let new = |old: u32| old & !(0xff << shift) | u32::from(value) << shift;
    match run.region.kind {
        RegionKind::Global(allocation) => {
            // Other threads may write the other bytes.
            let word = allocation.word(at);
            let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(new(old)));
        }
        _ => shared[at as usize / 4] = new(shared[at as usize / 4]),
    }
}
