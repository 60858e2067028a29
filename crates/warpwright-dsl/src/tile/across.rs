//! Tiles of several warps: one that all of them read, and one to which each adds its share.

use super::super::exchange::Kept;
use super::super::reg::Reg;
use super::{A, Acc, Direct, Half, K, SharedTile, Tile};
use std::marker::PhantomData;

/// A left factor that is kept in registers or in shared memory: see [`K::keep_a`] and [`SharedTile::keep_a`].
#[derive(Clone, Copy, Debug)]
pub struct KeptTile<'k, T> {
    k: K<'k>,
    kept: Kept<'k>,
    rows: u32,
    kind: PhantomData<T>,
}

impl<'k> K<'k> {
    /// [Keeps](K::keep) a left factor of the given shape, which `tile` computes: in registers if `held` is true,
    /// otherwise in shared memory, in the order of its registers. All threads of the block call it.
    #[track_caller]
    pub fn keep_a<T: Half>(
        self,
        held: bool,
        [rows, columns]: [u32; 2],
        tile: impl Fn() -> Tile<'k, A, T>,
    ) -> KeptTile<'k, T> {
        let kept = self.keep(held, rows * columns * T::TYPE.bytes() / 128, || tile().steps());
        KeptTile { k: self, kept, rows, kind: PhantomData }
    }
}

impl<'k, T: Half> SharedTile<'k, T> {
    /// Rearranges rows of the tile, whole ones, in the order in which a left factor has them in registers, and in their own
    /// memory. So they are loaded at one address and constants, without the registers of others. The rows belong to the
    /// warp, all lanes of which call it after the tile was filled; from then on the tile has no rows there.
    ///
    /// They are a multiple of 16, and the columns too (`E0016` otherwise).
    #[track_caller]
    pub fn keep_a(self) -> KeptTile<'k, T> {
        let words = self.load_a().steps();
        let memory = self.base.cast::<u32>().at(self.row * (self.columns * T::TYPE.bytes() / 4));
        KeptTile { k: self.k, kept: self.k.park(memory, &words), rows: self.rows, kind: PhantomData }
    }
}

impl<'k, T: Half> KeptTile<'k, T> {
    /// `count` columns from `start` on, both multiples of 16.
    #[track_caller]
    pub fn k_steps(self, start: u32, count: u32) -> Tile<'k, A, T> {
        let of = |columns: u32| self.rows * columns / 64;
        let words = self.kept.get(of(start), of(count));
        // Back to rows of steps.
        let (step, blocks) = (of(16) as usize, self.rows as usize / 16);
        let rows =
            (0..blocks).flat_map(|i| words.chunks_exact(step).flat_map(move |step| &step[4 * i..][..4]));
        self.k.factor_of(self.rows, count, &rows.copied().collect::<Vec<_>>())
    }
}

impl<'k, T: Half> Tile<'k, A, T> {
    /// Its registers by steps of the inner dimension, so that one has all rows.
    #[track_caller]
    fn steps(self) -> Vec<Reg<'k, u32>> {
        (0..self.columns()).step_by(16).flat_map(|column| self.k_step(column).words()).collect()
    }

    fn words(self) -> Vec<Reg<'k, u32>> {
        let regs = self.registers().unwrap_or_default();
        regs.into_iter().map(|id| Reg::new(self.k, id)).collect()
    }
}

impl<'k> Tile<'k, Acc, f32> {
    /// Adds up the warps' tiles and distributes the sums among the warps. The tiles must be products of [`Fragments`]
    /// of `T` as A, whose rows are permuted. `each` receives a column of the matrix that the fragments were loaded
    /// from, a column of the tile, and the sums for two neighbours from that column of the matrix on. It is called
    /// once for every element of the tile, in one of the lanes of one of the warps. The given number of 16×8 blocks
    /// is in shared memory at a time, each of them 512 bytes per warp. All threads of the block call it.
    ///
    /// Rows are a multiple of 16. The sums are added in the order of the warps.
    ///
    /// [`Fragments`]: super::Fragments
    #[track_caller]
    pub fn reduce_scatter<T: Direct>(
        self,
        at_once: u32,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, [Reg<'k, f32>; 2]),
    ) {
        let (k, across) = (self.k, self.columns / 8);
        let sums = self.to_vec();
        // Two blocks of 8×8 over one another.
        let pairs = sums.chunks_exact(4 * across as usize).flat_map(|rows| {
            let (upper, lower) = rows.split_at(2 * across as usize);
            let both = upper.chunks_exact(2).zip(lower.chunks_exact(2));
            both.map(|(upper, lower)| [upper[0], upper[1], lower[0], lower[1]])
        });
        let blocks: Vec<_> = pairs.collect();
        let of_run = T::RUN_OF_A / 16;
        k.reduce_scatter(&blocks, at_once, |block, [upper, next, lower, beside]| {
            // Here, and not before the loops, which want all registers.
            let (g, t) = (k.lane() >> 2, k.lane() & 3);
            let (row, column) = (block / across, block % across * 8 + t * 2);
            let element = row / of_run * T::RUN_OF_A + row % of_run * 2 + g * (T::RUN_OF_A / 8);
            each(element, column, [upper, lower]);
            each(element, column + 1, [next, beside]);
        });
    }
}
