//! Sums from the head of each segment on, over the whole grid in one launch.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, wholes};

const THREADS: u32 = 96;

/// A run of elements: whether a segment begins in it, and the sum from its last head on.
#[derive(Clone, Copy, Carry)]
struct Run<'k> {
    head: Reg<'k, Pred>,
    sum: Reg<'k, f32>,
}

impl<'k> Run<'k> {
    /// One run after another.
    fn then(self, next: Self) -> Self {
        Run { head: self.head | next.head, sum: next.head.select(next.sum, self.sum + next.sum) }
    }

    /// The word of a tile, which is written and read whole: 1 for its own run, 2 for all up to it, and the run.
    fn word(self, known: u32) -> Reg<'k, u64> {
        let flags = self.head.select(4 | known, known);
        (flags.to::<u64>() << 32) | self.sum.bits::<u32>().to::<u64>()
    }

    fn of(word: Reg<'k, u64>) -> (Reg<'k, u32>, Self) {
        let flags = (word >> 32).to::<u32>();
        (flags & 3, Run { head: (flags & 4).ne(0), sum: word.to::<u32>().bits() })
    }
}

/// Sums of segments, each from a head on, with decoupled look-back (Merrill and Garland, 2016): blocks take tiles in
/// the order in which they start, and each adds up what those before it have published, until it meets one that knows
/// all up to itself, or a head. `tiles` and `started` are 0 before.
fn segmented_scan(k: K<'_>) {
    let (heads, x, y) = (k.ptr::<u32>("heads"), k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
    let (tiles, started) = (k.ptr_mut::<u64>("tiles").relaxed(Scope::Gpu), k.ptr_mut::<u32>("started"));
    let n = k.scalar::<u32>("n");
    let first = k.tid().eq(0);

    let tile = k.block_broadcast(started.atomic_add_if(first, 0, 1, 0), 0);
    let i = tile * THREADS + k.tid();
    let inside = i.lt(n);
    let own = Run { head: heads.ld_if(inside, i, 0).ne(0), sum: x.ld_if(inside, i, 0.0) };
    let (up_to, total) = k.block_scan_by(own, Run::then);

    let none = Run { head: k.pred(false), sum: k.f32(0.0) };
    let look_back = || {
        tiles.st(tile, total.word(1));
        let before = k.loop_((tile, none), |out, (tile, run)| {
            out.break_if(tile.eq(0) | run.head, run);
            let (known, earlier) = k.loop_((), |out, ()| {
                let (known, run) = Run::of(tiles.ld(tile - 1));
                out.break_if(known.ne(0), (known, run));
            });
            let run = earlier.then(run);
            out.break_if(known.eq(2), run);
            (tile - 1, run)
        });
        tiles.st(tile, before.then(total).word(2));
        before
    };
    let before = k.block_broadcast(k.if_else(first, look_back, || none), 0);
    y.st_if(inside, i, before.then(up_to).sum);
}

pub(crate) fn day(n: usize) -> Day<'static> {
    let tiles = n.div_ceil(THREADS as usize);
    // Segments of all lengths, among them one that is longer than a tile.
    let heads: Vec<f64> =
        (0..n).map(|i| if i % 211 < 2 || i % 61 == 7 && i > 400 { 1.0 } else { 0.0 }).collect();
    let x = wholes(n, 5);
    let mut sum = 0.0;
    let exact = heads.iter().zip(&x).map(|(&head, x)| {
        sum = x + if head == 0.0 { sum } else { 0.0 };
        sum
    });
    Day {
        body: segmented_scan,
        shape: (tiles as u32, THREADS),
        exact: vec![(exact.collect(), 0.0)],
        given: vec![
            LaunchArg::Input(Type::U32, heads.leak()),
            LaunchArg::Input(Type::F32, x.leak()),
            LaunchArg::Output(Type::F32, n),
            LaunchArg::Input(Type::U32, vec![0.0; 2 * tiles].leak()),
            LaunchArg::Input(Type::U32, &[0.0]),
            LaunchArg::Scalar(n as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn segments_are_summed() {
    for n in [1, 95, 97, 1000, 5001] {
        day(n).assert_right();
    }
}
