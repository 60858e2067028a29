//! A row of numbers that a block walks several times: kept in registers from the first time on where it
//! fits there, read again where it does not.

use warpwright_ptx::dsl::{Carry, K, Pred, Reg};

/// The most numbers of a row that a thread keeps.
const KEPT: u32 = 32;

/// How a block of `threads` threads walks a row of `d` numbers: in rounds, `vector` neighbours to a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    d: u32,
    vector: u32,
    threads: u32,
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

impl Walk {
    /// Rows of `d` numbers in buffers whose widest elements have `bytes` bytes: accesses of 16 bytes where
    /// every row begins at a multiple of that.
    pub(crate) fn new(d: u32, bytes: u32, threads: u32) -> Self {
        let vector = (1 << d.max(1).trailing_zeros()).min(16 / bytes);
        Walk { d, vector, threads }
    }

    /// Threads for which a row is about two rounds.
    pub(crate) fn threads_for(d: u32, bytes: u32) -> u32 {
        let chunks = d.div_ceil(Walk::new(d, bytes, 32).vector);
        chunks.div_ceil(2).next_multiple_of(32).clamp(32, 1024)
    }

    /// Numbers that a thread takes at a time.
    pub(crate) fn vector(self) -> u32 {
        self.vector
    }

    fn chunks(self) -> u32 {
        self.d / self.vector
    }

    fn rounds(self) -> u32 {
        self.chunks().div_ceil(self.threads)
    }

    fn is_kept(self) -> bool {
        self.rounds() * self.vector <= KEPT
    }

    fn part<'k>(
        self,
        k: K<'k>,
        round: Reg<'k, u32>,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
    ) -> Part<'k> {
        let chunk = round * self.threads + k.tid();
        let inside = (!self.chunks().is_multiple_of(self.threads)).then(|| chunk.lt(self.chunks()));
        let mut part = Part { at: chunk * self.vector, inside, values: Vec::new() };
        part.values = read(&part);
        part
    }

    /// Reads a row for the first time, and folds it. All threads read in every round, so that `step` may be
    /// a collective.
    #[track_caller]
    pub(crate) fn first<'k, C: Carry<'k>>(
        self,
        k: K<'k>,
        read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>,
        init: C,
        step: impl Fn(&Part<'k>, C) -> C,
    ) -> (Row<'k>, C) {
        if !self.is_kept() {
            let row = Row { k, walk: self, kept: None };
            let folded = row.fold(read, init, step);
            return (row, folded);
        }
        let kept: Vec<_> = (0..self.rounds()).map(|round| self.part(k, k.u32(round), &read)).collect();
        let folded = kept.iter().fold(init, |carry, part| step(part, carry));
        (Row { k, walk: self, kept: Some(kept) }, folded)
    }
}

/// A row that was read.
pub(crate) struct Row<'k> {
    k: K<'k>,
    walk: Walk,
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
        match &self.kept {
            Some(kept) => kept.iter().fold(init, |carry, part| step(part, carry)),
            None => {
                let rounds = self.k.range(0..self.walk.rounds()).unroll(2);
                self.k.fold(rounds, init, |round, carry| step(&self.walk.part(self.k, round, &read), carry))
            }
        }
    }

    /// Walks it.
    #[track_caller]
    pub(crate) fn each(&self, read: impl Fn(&Part<'k>) -> Vec<Reg<'k, f32>>, see: impl Fn(&Part<'k>)) {
        self.fold(read, (), |part, ()| see(part));
    }
}
