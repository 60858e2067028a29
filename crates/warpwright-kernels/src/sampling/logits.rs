//! Iteration of a block over the logits of a row.

use crate::data::floats::Floats;
use warpwright_dsl::{Carry, K, Range, Reg};

/// A row of `n` logits.
#[derive(Clone, Copy)]
pub(super) struct Logits<'k> {
    pub(super) k: K<'k>,
    pub(super) row: Floats<'k>,
    pub(super) n: Reg<'k, u32>,
    /// Neighbours that a thread takes at a time: they divide `n`.
    pub(super) vector: u32,
}

impl<'k> Logits<'k> {
    /// Goes through all of them, with state: `see` takes an index, its logit and the state. Each thread sees its part
    /// of them; which, is open.
    #[track_caller]
    pub(super) fn fold<C: Carry<'k>>(
        self,
        unroll: u32,
        init: C,
        see: impl Fn(Reg<'k, u32>, Reg<'k, f32>, C) -> C,
    ) -> C {
        self.k.fold(self.chunks(unroll), init, |chunk, carry| {
            self.chunk(chunk).into_iter().fold(carry, |carry, (i, x)| see(i, x, carry))
        })
    }

    /// Goes through all of them.
    #[track_caller]
    pub(super) fn each(self, unroll: u32, see: impl Fn(Reg<'k, u32>, Reg<'k, f32>)) {
        self.k.each(self.chunks(unroll), |chunk| {
            self.chunk(chunk).into_iter().for_each(|(i, x)| see(i, x));
        });
    }

    fn chunks(self, unroll: u32) -> Range<'k> {
        self.k.strided(self.n / self.vector).unroll(unroll)
    }

    /// Neighbouring logits with their indices.
    #[track_caller]
    fn chunk(self, chunk: Reg<'k, u32>) -> Vec<(Reg<'k, u32>, Reg<'k, f32>)> {
        if self.vector == 1 {
            return vec![(chunk, self.row.ld(chunk))];
        }
        let first = chunk * self.vector;
        (0..).zip(self.row.ld_vec(first, self.vector)).map(|(i, x)| (first + i, x)).collect()
    }
}
