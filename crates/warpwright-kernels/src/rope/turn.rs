//! The distribution of a head over lanes, and its rotation.

use super::{Rope, RopePairs, Split};
use crate::data::floats::Floats;
use warpwright_dsl::*;

/// Cosine and signed sine: element `x` with its partner `y` becomes `x · cosine + y · sine`.
type Angle<'k> = [Reg<'k, f32>; 2];

/// How far the pairs turn at a position.
#[derive(Clone, Copy)]
pub(super) struct Angles<'a, 'k> {
    rope: &'a Rope,
    k: K<'k>,
    position: Reg<'k, u32>,
    turns: Turns<'k>,
    /// What cosines and sines are multiplied by, where that is not 1.
    magnitude: Option<Reg<'k, f32>>,
}

/// What a pair turns from one position to the next.
#[derive(Clone, Copy)]
enum Turns<'k> {
    /// In units of 2⁻⁶⁴.
    Fixed(Ptr<'k, Global, u64>),
    /// In units of 2⁻⁶⁰, to be divided by the pair's factor.
    Divided(Ptr<'k, Global, f64>, Ptr<'k, Global, f32>),
}

/// What each pair turns from one position to the next, in units of `2^-bits`.
fn turns(rope: &Rope, bits: i32) -> impl Iterator<Item = f64> + '_ {
    (0..rope.rotary_dim / 2)
        .map(move |pair| rope.scaling.turns(pair, rope.rotary_dim, rope.base) * 2f64.powi(bits))
}

impl<'a, 'k> Angles<'a, 'k> {
    pub(super) fn new(
        rope: &'a Rope,
        k: K<'k>,
        position: Reg<'k, u32>,
        factors: Option<Ptr<'k, Global, f32>>,
    ) -> Self {
        let turns = if let Some(factors) = factors {
            let divided: Vec<_> = turns(rope, 60).collect();
            Turns::Divided(k.configured_table::<f64>(&divided), factors)
        } else {
            let fixed: Vec<_> = turns(rope, 64).map(|turns| turns as u64).collect();
            Turns::Fixed(k.configured_table::<u64>(&fixed))
        };
        let magnitude = rope.scaling.magnitude();
        let magnitude = (magnitude != 1.0).then(|| k.factor(magnitude));
        Angles { rope, k, position, turns, magnitude }
    }

    /// Cosine and sine of the angle of a pair.
    fn cos_sin(self, pair: Reg<'k, u32>) -> [Reg<'k, f32>; 2] {
        let fraction = match self.turns {
            Turns::Fixed(table) => table.ld(pair),
            Turns::Divided(table, factors) => {
                (table.ld(pair) / factors.ld(pair).to::<f64>()).to::<u64>() << 4
            }
        };
        // Modulo 2⁶⁴: whole turns vanish.
        let turned = fraction * self.position.to::<u64>();
        let turned = (turned >> 32).to::<u32>();
        turned.cos_sin_turns().map(|x| self.magnitude.map_or(x, |magnitude| x * magnitude))
    }

    /// The angles of the elements of each slot.
    pub(super) fn of(self, lanes: Lanes<'a, 'k>) -> Vec<Vec<Angle<'k>>> {
        let (k, half) = (self.k, self.rope.rotary_dim / 2);
        let vector = lanes.split.vector;
        let slots = (0..lanes.split.slots).map(|slot| {
            let at = lanes.element(slot);
            match self.rope.pairs {
                RopePairs::Interleaved => (0..vector / 2)
                    .flat_map(|i| {
                        // Elements that do not turn have the angle of some pair, and do not use it.
                        let [cosine, sine] = self.cos_sin((at / 2 + i).min(half - 1));
                        [[cosine, -sine], [cosine, sine]]
                    })
                    .collect(),
                RopePairs::Neox => {
                    let upper = at.ge(half);
                    let first = upper.select(at - half, at).min(half - vector);
                    let sign = upper.select(k.f32(1.0), -1.0);
                    (0..vector)
                        .map(|i| {
                            let [cosine, sine] = self.cos_sin(first + i);
                            [cosine, sine * sign]
                        })
                        .collect()
                }
            }
        });
        slots.collect()
    }
}

/// Where a lane is in its head.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a, 'k> {
    rope: &'a Rope,
    k: K<'k>,
    split: Split,
    lane: Reg<'k, u32>,
    run: Reg<'k, u32>,
}

/// A head that lanes work on.
#[derive(Clone, Copy)]
pub(super) struct Head<'k> {
    pub(super) number: Reg<'k, u32>,
    /// Whether there is such a head, where that is not sure.
    pub(super) inside: Option<Reg<'k, Pred>>,
}

/// A lane's elements of a head.
pub(super) struct Slot<'k> {
    pub(super) values: Vec<Reg<'k, f32>>,
    /// What each turns with.
    partners: Vec<Reg<'k, f32>>,
}

impl<'a, 'k> Lanes<'a, 'k> {
    pub(super) fn new(rope: &'a Rope, k: K<'k>) -> Self {
        let split = rope.split();
        let (lane, run) = (k.lane() & (split.lanes - 1), k.lane() >> split.lanes.trailing_zeros());
        Lanes { rope, k, split, lane, run }
    }

    /// The first element of a slot.
    fn element(self, slot: u32) -> Reg<'k, u32> {
        (self.lane + slot * self.split.lanes) * self.split.vector
    }

    /// Whether the slot is in the head, where not all lanes' are.
    fn has(self, slot: u32, head: Option<Reg<'k, Pred>>) -> Option<Reg<'k, Pred>> {
        let whole = (slot + 1) * self.split.lanes * self.split.vector <= self.rope.head_dim;
        let has = (!whole).then(|| self.element(slot).lt(self.rope.head_dim));
        both(has, head)
    }

    /// Whether the slot turns, where not all lanes' do.
    fn turns(self, slot: u32) -> Option<Reg<'k, Pred>> {
        let turning = self.rope.rotary_dim;
        let all = (slot + 1) * self.split.lanes * self.split.vector <= turning;
        (!all).then(|| self.element(slot).lt(turning))
    }

    /// The first element of the slot's partners, for NEOX pairs.
    fn partner(self, slot: u32) -> Reg<'k, u32> {
        let (at, half) = (self.element(slot), self.rope.rotary_dim / 2);
        at.ge(half).select(at - half, at + half)
    }

    /// Loads the heads of a warp, all before any is worked on.
    pub(super) fn load(
        self,
        from: Floats<'k>,
        heads: Dim<'k>,
        warp: Reg<'k, u32>,
        turning: bool,
    ) -> Vec<(Head<'k>, Vec<Slot<'k>>)> {
        let (together, vector) = (32 / self.split.lanes, self.split.vector);
        let of_warp = together * self.rope.rounds;
        let load = |round: u32| {
            let number = warp * of_warp + (self.run + round * together);
            let inside = (!heads.is_multiple_of(of_warp)).then(|| number.lt(heads));
            let row = from.at(number * self.rope.head_dim);
            let slot = |slot| {
                let has = self.has(slot, inside);
                let values = row.load(has, self.element(slot), vector);
                let partners = match self.rope.pairs {
                    _ if !turning => Vec::new(),
                    RopePairs::Interleaved => {
                        values.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect()
                    }
                    RopePairs::Neox => row.load(both(self.turns(slot), has), self.partner(slot), vector),
                };
                Slot { values, partners }
            };
            (Head { number, inside }, (0..self.split.slots).map(slot).collect())
        };
        (0..self.rope.rounds).map(load).collect()
    }

    /// A head's elements, normalised if there is a norm, and turned if there are angles.
    pub(super) fn rotate(
        self,
        head: &[Slot<'k>],
        norm: Option<(Reg<'k, f32>, Ptr<'k, Global, f32>)>,
        angles: Option<&[Vec<Angle<'k>>]>,
    ) -> Vec<Vec<Reg<'k, f32>>> {
        let scale = norm.map(|(epsilon, _)| {
            let squares = head.iter().flat_map(|slot| &slot.values);
            let squares = squares.fold(self.k.f32(0.0), |sum, &x| x.mul_add(x, sum));
            let mean = self.k.group_sum(squares, self.split.lanes) / self.rope.head_dim as f32;
            (mean + epsilon).max(f32::MIN_POSITIVE).rsqrt()
        });
        let normal = |values: &[Reg<'k, f32>], inside, at| match (norm, scale) {
            (Some((_, weights)), Some(scale)) => {
                let weights = Floats::F32(weights).load(inside, at, self.split.vector);
                values.iter().zip(weights).map(|(&x, weight)| x * scale * weight).collect()
            }
            _ => values.to_vec(),
        };
        let turn = |(slot, head): (u32, &Slot<'k>)| {
            let has = self.has(slot, None);
            let x = normal(&head.values, has, self.element(slot));
            let Some(angles) = angles.and_then(|angles| angles.get(slot as usize)) else { return x };
            let turns = self.turns(slot);
            let y = match self.rope.pairs {
                RopePairs::Interleaved => x.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect(),
                RopePairs::Neox => normal(&head.partners, both(turns, has), self.partner(slot)),
            };
            let turned = x.iter().zip(y).zip(angles).map(|((&x, y), &[cosine, sine])| {
                let turned = x.mul_add(cosine, y * sine);
                turns.map_or(turned, |turns| turns.select(turned, x))
            });
            turned.collect()
        };
        (0..).zip(head).map(turn).collect()
    }

    /// Stores a head's elements, slot by slot.
    pub(super) fn store(
        self,
        slots: &[Vec<Reg<'k, f32>>],
        inside: Option<Reg<'k, Pred>>,
        store: impl Fn(Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    ) {
        for (slot, values) in (0..).zip(slots) {
            store(self.element(slot), self.has(slot, inside), values);
        }
    }
}

/// Both, where both are there.
fn both<'k>(a: Option<Reg<'k, Pred>>, b: Option<Reg<'k, Pred>>) -> Option<Reg<'k, Pred>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}
