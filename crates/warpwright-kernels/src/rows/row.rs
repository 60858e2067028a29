//! A row of numbers that a block walks several times: kept in registers from the first time on where it
//! fits there, read again where it does not.
//!
//! Sums are in the order of *columns*: column `c` adds up chunks `c`, `c + columns` and so on, 32 neighbouring columns
//! are added as the lanes of a warp are, and then these sums as those of a block's warps are. A block with a thread to
//! each column does just that, and keeps what fits; a block of any other size has the same sums.

use warpwright_dsl::{Carry, K, Pred, Ptr, Reg, Shared, Size};

/// The most numbers of a row that a thread keeps.
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

/// The most columns of a thread whose row is short.
const COLUMNS: u32 = 4;

/// The most chunks of a column of a short row.
fn rounds(vector: u32) -> u32 {
    (KEPT / COLUMNS / vector.max(1)).clamp(1, 2)
}

/// Whether a thread that has several columns can keep its part of a row.
pub(crate) fn is_short(d: u32, vector: u32, columns: u32, threads: u32) -> bool {
    d / vector <= rounds(vector).saturating_mul(columns) && columns <= COLUMNS.saturating_mul(threads)
}

/// How a block of `threads` threads walks a row of `d` numbers: in rounds, `vector` neighbours to a thread.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'k> {
    pub(crate) k: K<'k>,
    pub(crate) d: Size<'k>,
    /// Whole warps, up to 1024.
    pub(crate) columns: Size<'k>,
    pub(crate) vector: u32,
    pub(crate) threads: u32,
    /// Whether rows are such as [`is_short`] says.
    pub(crate) short: bool,
}

/// What a thread holds of a row in a round.
#[derive(Clone, Debug)]
pub(crate) struct Part<'k> {
    /// The index of the first number.
    pub(crate) at: Reg<'k, u32>,
    /// Whether the thread has any, where not all have.
    pub(crate) inside: Option<Reg<'k, Pred>>,
    /// The numbers; what the reader makes of them outside.
    pub(crate) values: Vec<Reg<'k, f32>>,
}

impl<'k> Walk<'k> {
    fn chunks(self) -> Reg<'k, u32> {
        self.d.reg() / self.vector
    }

    /// The number of chunks, where that is known and a thread has one column.
    fn known(self) -> Option<u32> {
        let d = self.d.known().filter(|_| self.columns.known() == Some(self.threads))?;
        Some(d / self.vector)
    }

    /// The rounds of a row that is kept.
    fn kept(self) -> Option<u32> {
        let rounds = self.known()?.div_ceil(self.threads);
        (rounds * self.vector <= KEPT).then_some(rounds)
    }

    fn part(
        self,
        chunk: Reg<'k, u32>,
        inside: Option<Reg<'k, Pred>>,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
    ) -> Part<'k> {
        let mut part = Part { at: chunk * self.vector, inside, values: Vec::new() };
        part.values = read(&part);
        part
    }

    fn round(self, round: Reg<'k, u32>, read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>) -> Part<'k> {
        let chunk = round * self.threads + self.k.tid();
        let whole = self.known().is_some_and(|chunks| chunks.is_multiple_of(self.threads));
        let inside = (!whole).then(|| chunk.lt(self.chunks()));
        self.part(chunk, inside, read)
    }

    /// Reads a row for the first time, and folds it: what comes out does not depend on which thread has which part. All
    /// threads read in every round, so that `step` may be a collective.
    #[track_caller]
    pub(crate) fn first<C: Carry<'k>>(
        self,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        init: C,
        step: impl Fn(&Part<'k>, C) -> C,
    ) -> (Row<'k>, C) {
        let row = self.keep(&read);
        let folded = row.fold(read, init, step);
        (row, folded)
    }

    /// Reads a row for the first time, and adds it up: `add` adds what it makes of a part to a sum that is not negative.
    /// Yields the sum over the block.
    #[track_caller]
    pub(crate) fn first_sum(
        self,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&Part<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> (Row<'k>, Reg<'k, f32>) {
        let row = self.keep(&read);
        let sum = row.sum(read, add);
        (row, sum)
    }

    fn keep(self, read: &impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>) -> Row<'k> {
        let round = |round| self.round(self.k.u32(round), read);
        let kept = match self.kept() {
            Some(rounds) => Some((0..rounds).map(round).collect()),
            None if self.known().is_none() && self.short => Some(self.short_row(read)),
            None => None,
        };
        Row { walk: self, kept }
    }

    /// A thread's column of that number, and whether there is one.
    fn column(self, number: Reg<'k, u32>) -> (Reg<'k, u32>, Reg<'k, Pred>) {
        let column = number * self.threads + self.k.tid();
        (column, column.lt(self.columns.reg()))
    }

    /// The parts of a short row, column by column.
    fn short_row(self, read: &impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>) -> Vec<Part<'k>> {
        let parts = (0..COLUMNS).flat_map(|number| {
            let (column, inside) = self.column(self.k.u32(number));
            (0..rounds(self.vector)).map(move |round| {
                let chunk = column + self.columns.reg() * round;
                self.part(chunk, Some(inside & chunk.lt(self.chunks())), read)
            })
        });
        parts.collect()
    }

    /// The sum of a row by columns, of which a thread has several or none.
    #[track_caller]
    fn sum_of_columns(
        self,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&Part<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let k = self.k;
        let (chunks, columns) = (self.chunks(), self.columns.reg());
        let sums = k.shared::<f32>(32);
        // The whole block goes through all of them, for lanes are added up in each.
        let numbers = (columns + (self.threads - 1)) / self.threads;
        k.each(k.upto(numbers), |number| {
            let (column, inside) = self.column(number);
            let own = k.range(inside.select(column, chunks)..chunks).step(columns).unroll(2);
            let sum = k.fold(own, k.f32(0.0), |chunk, sum| add(&self.part(chunk, None, &read), sum));
            self.leave(sums, number, sum);
        });
        self.total(sums)
    }

    /// The same of a short row.
    #[track_caller]
    fn sum_of_parts(
        self,
        parts: &[Part<'k>],
        add: impl Fn(&Part<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let k = self.k;
        let sums = k.shared::<f32>(32);
        for (number, column) in (0..).zip(parts.chunks(rounds(self.vector) as usize)) {
            let sum = column.iter().fold(k.f32(0.0), |sum, part| add(part, sum));
            self.leave(sums, k.u32(number), sum);
        }
        self.total(sums)
    }

    /// Leaves the sum of the warp's columns of that number, one of 32.
    fn leave(self, sums: Ptr<'k, Shared, f32>, number: Reg<'k, u32>, sum: Reg<'k, f32>) {
        let (column, inside) = self.column(number);
        let sum = self.k.warp_sum(sum);
        sums.st_if(inside & self.k.lane().eq(0), column / 32, sum);
    }

    /// The sum of what all warps have left.
    fn total(self, sums: Ptr<'k, Shared, f32>) -> Reg<'k, f32> {
        let (k, columns) = (self.k, self.columns.reg());
        k.sync();
        // Adding zero to a sum that is not negative changes nothing.
        let sum = k.warp_sum(sums.ld_if(k.lane().lt(columns / 32), k.lane(), 0.0));
        // The sums have been read before others take their places.
        k.sync();
        sum
    }
}

/// A row that is kept, or read again.
pub(crate) struct Row<'k> {
    walk: Walk<'k>,
    kept: Option<Vec<Part<'k>>>,
}

impl<'k> Row<'k> {
    /// Folds it; `read` is what reads it where it was not kept.
    #[track_caller]
    pub(crate) fn fold<C: Carry<'k>>(
        &self,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        init: C,
        step: impl Fn(&Part<'k>, C) -> C,
    ) -> C {
        if let Some(kept) = &self.kept {
            return kept.iter().fold(init, |carry, part| step(part, carry));
        }
        let Walk { k, threads, .. } = self.walk;
        let rounds = match self.walk.known() {
            Some(chunks) => k.u32(chunks.div_ceil(threads)),
            None => (self.walk.chunks() + (threads - 1)) / threads,
        };
        k.fold(k.upto(rounds).unroll(2), init, |round, carry| step(&self.walk.round(round, &read), carry))
    }

    /// Adds it up: see [`Walk::first_sum`].
    #[track_caller]
    pub(crate) fn sum(
        &self,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        add: impl Fn(&Part<'k>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Reg<'k, f32> {
        let k = self.walk.k;
        match (self.walk.known(), &self.kept) {
            (Some(_), _) => k.block_sum(self.fold(read, k.f32(0.0), add)),
            (None, Some(parts)) => self.walk.sum_of_parts(parts, add),
            (None, None) => self.walk.sum_of_columns(read, add),
        }
    }

    /// Walks it.
    #[track_caller]
    pub(crate) fn each(&self, read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>, see: impl Fn(&Part<'k>)) {
        self.fold(read, (), |part, ()| see(part));
    }
}
