//! The parts of a block's warps, put together through shared memory.
//!
//! Each warp publishes the reference and the sum of each head, puts its weighted sums of values, relative to the
//! largest reference, where all can read them, and then a warp adds up a head. Vectors of four elements lie in an
//! order in which neither those that write (with several of them, or several heads, side by side) nor
//! those that read meet in a bank.

use super::cache::{Lane, RowLayout};
use crate::CacheDtype;
use warpwright_dsl::*;

/// Softmax over some of the keys, for a head: `Σ 2^(score - reference) · value`, and the sum of the weights.
pub(super) struct Part<'k> {
    pub(super) reference: Reg<'k, f32>,
    pub(super) sum: Reg<'k, f32>,
    pub(super) out: Vec<Reg<'k, f32>>,
}

/// What a warp has of some heads, however it lies over the lanes.
pub(super) trait OfWarp<'k> {
    /// Heads.
    fn heads(&self) -> u32;

    /// Heads that lanes have side by side: as many are put into shared memory at a time, or a multiple.
    fn together(&self) -> u32;

    /// Gives a head's number, its reference and its sum to `each`, once for each head.
    fn publish(&self, each: &dyn Fn(Reg<'k, u32>, [Reg<'k, f32>; 2]));

    /// Gives the vectors of the `count` heads from `first` on to `put`, times what `fix` says for the head's
    /// number and reference: the head's number less `first`, which vector, its elements.
    fn put(&self, first: u32, count: u32, fix: Fix<'_, 'k>, put: Put<'_, 'k>);
}

/// By what a head is multiplied, by its number and reference.
pub(super) type Fix<'a, 'k> = &'a dyn Fn(Reg<'k, u32>, Reg<'k, f32>) -> Reg<'k, f32>;
/// Takes a vector of a head.
pub(super) type Put<'a, 'k> = &'a dyn Fn(Reg<'k, u32>, Reg<'k, u32>, [Reg<'k, f32>; 4]);

/// Bytes of shared memory that is used for it, where that is enough.
const SHARED: u32 = 24 << 10;

/// Where vector `vector` of the head in slot `slot` lies, of slots for `room` elements.
fn place<'k>(slot: Reg<'k, u32>, vector: Reg<'k, u32>, room: u32) -> Reg<'k, u32> {
    let turned = vector ^ ((vector >> 3) & 3) ^ ((slot >> 2) & 1);
    slot * slot_size(room) + turned * 4
}

/// Four vectors are turned among themselves; two heads side by side begin half of the banks apart.
fn slot_size(room: u32) -> u32 {
    room.next_multiple_of(32) + 8
}

/// Gives `each` every head's number, which differs between warps, and the part of the block, whose elements are in
/// the lanes that `lane` says, in every run. All threads of the block call it.
pub(super) fn over_warps<'k>(
    k: K<'k>,
    (head_dim, warps): (u32, u32),
    of_warp: &dyn OfWarp<'k>,
    each: impl Fn(Lane<'k>, Reg<'k, u32>, Part<'k>),
) {
    let lane = Lane::new(k, RowLayout::new(CacheDtype::F32, head_dim));
    let (heads, warp, size) = (of_warp.heads(), k.warp(), slot_size(head_dim));
    let (references, sums) = (k.shared::<f32>(warps * heads), k.shared::<f32>(warps * heads));
    of_warp.publish(&|head, [reference, sum]| {
        references.at(warp * heads).st(head, reference);
        sums.at(warp * heads).st(head, sum);
    });
    k.sync();
    // The references of a head, by warp, and the largest.
    let references_of = |head: Reg<'k, u32>| -> (Vec<Reg<'k, f32>>, Reg<'k, f32>) {
        let all: Vec<_> = (0..warps).map(|warp| references.ld(head + warp * heads)).collect();
        let most = all.iter().copied().reduce(|most, reference| most.max(reference));
        (all, most.unwrap_or_else(|| k.f32(0.0)))
    };
    let fix = |head, reference: Reg<'k, f32>| (reference - references_of(head).1).exp2_ftz();

    let together = of_warp.together();
    let slots = (SHARED / (4 * warps * size)).min(heads) / together * together;
    let slots = slots.max(together);
    let outs = k.shared::<f32>(warps * slots * size);
    for first in (0..heads).step_by(slots as usize) {
        let count = slots.min(heads - first);
        let own = outs.at(warp * (slots * size));
        of_warp.put(first, count, &fix, &|slot, vector, elements| {
            own.st_vec_if(vector.lt(head_dim / 4), place(slot, vector, head_dim), elements);
        });
        k.sync();
        k.each(k.range(warp..k.u32(count)).step(warps), |slot| {
            let head = slot + first;
            let (all, reference) = references_of(head);
            let fixed = (0..).zip(&all).map(|(warp, &of_warp): (u32, _)| {
                sums.ld(head + warp * heads) * (of_warp - reference).exp2_ftz()
            });
            let sum = fixed.reduce(|sum, more| sum + more).unwrap_or_else(|| k.f32(0.0));
            let vector = |piece: u32| {
                let from = place(slot, lane.place + piece * lane.layout.lanes, head_dim);
                let vectors = (0..warps).map(|warp| {
                    let outs = outs.at(warp * (slots * size));
                    match lane.has(piece) {
                        Some(has) => outs.ld_vec_if::<4>(has, from, 0.0),
                        None => outs.ld_vec::<4>(from),
                    }
                });
                vectors.reduce(add).unwrap_or([k.f32(0.0); 4])
            };
            let out = (0..lane.layout.pieces).flat_map(vector).collect();
            each(lane, head, Part { reference, sum, out });
        });
        if first + slots < heads {
            k.sync();
        }
    }
}

fn add<'k>(a: [Reg<'k, f32>; 4], b: [Reg<'k, f32>; 4]) -> [Reg<'k, f32>; 4] {
    [0, 1, 2, 3].map(|i| a[i] + b[i])
}
