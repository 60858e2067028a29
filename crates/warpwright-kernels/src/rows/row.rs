//! A row of numbers that a block reads several times: it stays in registers if it fits, and is read again if it does
//! not.
//!
//! Sums are in the order of *columns*: column `c` adds up chunks `c`, `c + columns` and so on; 32 neighbouring columns
//! are added like the lanes of a warp, and the results like the warps of a block. A block with one thread per column
//! does just that; a block of any other size gets the same sums.

use warpwright_dsl::{Carry, Dim, K, Pred, Ptr, Reg, Shared};

/// Maximum number of a row's numbers that a thread keeps.
const KEPT: u32 = 32;

/// Neighbours of a row of `d` numbers that a thread takes at a time, in buffers whose widest elements have `bytes`
/// bytes: accesses of 16 bytes where every row begins at a multiple of that.
pub(crate) fn vector(d: u32, bytes: u32) -> u32 {
    (1 << d.max(1).trailing_zeros()).min(16 / bytes)
}

/// Threads for which a row is about two rounds.
pub(crate) fn threads_for(d: u32, bytes: u32) -> u32 {
    let chunks = d.div_ceil(vector(d, bytes));
    chunks.div_ceil(2).next_multiple_of(32).clamp(32, 1024)
}

/// How a block walks a row of `d` numbers: in rounds, `vector` neighbours to a thread.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'k> {
    pub(crate) k: K<'k>,
    pub(crate) d: Dim<'k>,
    /// Whole warps, up to 1024.
    pub(crate) columns: u32,
    pub(crate) vector: u32,
}

/// The chunk of a row that a thread holds in a round.
#[derive(Clone, Debug)]
pub(crate) struct RowChunk<'k> {
    /// The index of the first number.
    pub(crate) at: Reg<'k, u32>,
    /// Whether the thread has any, where not all have.
    pub(crate) inside: Option<Reg<'k, Pred>>,
    /// The numbers; what the reader makes of them outside.
    pub(crate) values: Vec<Reg<'k, f32>>,
}

impl<'k> Walk<'k> {
    fn chunks(self) -> Dim<'k> {
        self.d / self.vector
    }

    /// Columns of a thread, the last of which some threads may lack.
    fn columns_of_thread(self) -> u32 {
        self.columns.div_ceil(self.k.threads())
    }

    /// The rounds of each column of a row that is kept.
    fn kept(self) -> Option<u32> {
        let max = KEPT / (self.columns_of_thread() * self.vector);
        (1..=max).find(|rounds| self.chunks().is_at_most(rounds * self.columns))
    }

    /// What the thread has of a chunk, where there is such a chunk: all threads have one where rows are a multiple of
    /// `together` chunks.
    fn part(
        self,
        chunk: Reg<'k, u32>,
        together: u32,
        inside: Option<Reg<'k, Pred>>,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
    ) -> RowChunk<'k> {
        let chunks = self.chunks();
        let there = (!chunks.is_multiple_of(together)).then(|| chunk.lt(chunks));
        let inside = match (inside, there) {
            (Some(inside), Some(there)) => Some(inside & there),
            (one, other) => one.or(other),
        };
        let mut part = RowChunk { at: chunk * self.vector, inside, values: Vec::new() };
        part.values = read(&part);
        part
    }

    /// Reads a row for the first time, and folds it: what comes out does not depend on which thread has which part. All
    /// threads read in every round, so that `step` may be a collective.
    #[track_caller]
    pub(crate) fn first<C: Carry<'k>>(
        self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        init: C,
        step: impl Fn(&RowChunk<'k>, C) -> C,
    ) -> (Row<'k>, C) {
        let row = self.keep(&read);
        let folded = row.fold(read, init, step);
        (row, folded)
    }

    /// Reads a row for the first time, and adds it up: `add` adds what it makes of a part to a sum, which begins with zero.
    /// Yields the sum over the block.
    #[track_caller]
    pub(crate) fn first_sum(
        self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&RowChunk<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> (Row<'k>, Reg<'k, f32>) {
        let row = self.keep(&read);
        let sum = row.sum(read, add);
        (row, sum)
    }

    /// The parts of a row that is kept, column by column.
    fn keep(self, read: &impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>) -> Row<'k> {
        let column = |number: u32, rounds: u32| -> Vec<RowChunk<'k>> {
            let (column, inside) = self.column(self.k.u32(number));
            let part = |round| self.part(column + self.columns * round, self.columns, inside, read);
            (0..rounds).map(part).collect()
        };
        let kept = self
            .kept()
            .map(|rounds| (0..self.columns_of_thread()).map(|number| column(number, rounds)).collect());
        Row { walk: self, kept }
    }

    /// A thread's column of that number, and whether there is one, where not all threads have it.
    fn column(self, number: Reg<'k, u32>) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let threads = self.k.threads();
        let column = number * threads + self.k.tid();
        (column, (!self.columns.is_multiple_of(threads)).then(|| column.lt(self.columns)))
    }

    /// The sum of a row by columns, of which a thread has several or none.
    #[track_caller]
    fn sum_of_columns(
        self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&RowChunk<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let k = self.k;
        let chunks = self.chunks().reg();
        let sums = k.shared::<f32>(32);
        // The whole block goes through all of them, for lanes are added up in each.
        k.each(k.upto(self.columns_of_thread()), |number| {
            let (column, inside) = self.column(number);
            let first = inside.map_or(column, |inside| inside.select(column, chunks));
            let own = k.range(first..chunks).step(self.columns).unroll(2);
            let sum = k.fold(own, k.f32(0.0), |chunk, sum| add(&self.part(chunk, 1, None, &read), sum));
            self.leave(sums, number, sum);
        });
        self.total(sums)
    }

    /// The same of a row that is kept.
    #[track_caller]
    fn sum_of_parts(
        self,
        columns: &[Vec<RowChunk<'k>>],
        add: impl Fn(&RowChunk<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let k = self.k;
        let sums = k.shared::<f32>(32);
        for (number, column) in (0..).zip(columns) {
            let sum = column.iter().fold(k.f32(0.0), |sum, part| add(part, sum));
            self.leave(sums, k.u32(number), sum);
        }
        self.total(sums)
    }

    /// Leaves the sum of the warp's columns of that number, one of 32.
    fn leave(self, sums: Ptr<'k, Shared, f32>, number: Reg<'k, u32>, sum: Reg<'k, f32>) {
        let (column, inside) = self.column(number);
        let sum = self.k.warp_sum(sum);
        let first = self.k.lane().eq(0);
        sums.st_if(inside.map_or(first, |inside| inside & first), column / 32, sum);
    }

    /// The sum of what all warps have left.
    fn total(self, sums: Ptr<'k, Shared, f32>) -> Reg<'k, f32> {
        let k = self.k;
        k.sync();
        // Sums that begin with zero are never minus zero: adding zero changes none.
        let sum = k.warp_sum(sums.ld_if(k.lane().lt(self.columns / 32), k.lane(), 0.0));
        // The sums have been read before others take their places.
        k.sync();
        sum
    }
}

/// A row that is kept, column by column, or read again.
pub(crate) struct Row<'k> {
    walk: Walk<'k>,
    kept: Option<Vec<Vec<RowChunk<'k>>>>,
}

impl<'k> Row<'k> {
    /// Folds it; `read` is what reads it where it was not kept.
    #[track_caller]
    pub(crate) fn fold<C: Carry<'k>>(
        &self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        init: C,
        step: impl Fn(&RowChunk<'k>, C) -> C,
    ) -> C {
        if let Some(kept) = &self.kept {
            return kept.iter().flatten().fold(init, |carry, part| step(part, carry));
        }
        let walk @ Walk { k, .. } = self.walk;
        let threads = k.threads();
        let rounds = walk.chunks().div_ceil(threads);
        k.fold(k.upto(rounds).unroll(2), init, |round, carry| {
            step(&walk.part(round * threads + k.tid(), threads, None, &read), carry)
        })
    }

    /// Adds it up: see [`Walk::first_sum`].
    #[track_caller]
    pub(crate) fn sum(
        &self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&RowChunk<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let Walk { k, columns, .. } = self.walk;
        match &self.kept {
            _ if columns == k.threads() => k.block_sum(self.fold(read, k.f32(0.0), add)),
            Some(parts) => self.walk.sum_of_parts(parts, add),
            None => self.walk.sum_of_columns(read, add),
        }
    }

    /// Walks it.
    #[track_caller]
    pub(crate) fn each(
        &self,
        read: impl Fn(&RowChunk<'k>) -> Vec<Reg<'k, f32>>,
        see: impl Fn(&RowChunk<'k>),
    ) {
        self.fold(read, (), |part, ()| see(part));
    }
}
