//! Many sums over the same lanes, of which each lane keeps some.
//!
//! A butterfly gives all lanes of a run the sum of one value and takes `log₂ lanes` shuffles per value. With many
//! values, each lane needs to keep only some: at each step it passes half of its values to its partner and takes the
//! partner's other half. So `n` sums over `n` lanes take `n - 1` shuffles, and later steps (such as an exponential)
//! are computed once per sum instead of once per lane.
//!
//! ```text
//! four values a b c d over four lanes, a sum marked by the lanes that are in it:
//!     lanes 0, 1 keep a b, lanes 2, 3 keep c d       two shuffles     a02 b02 | a13 b13 | c02 d02 | c13 d13
//!     even lanes keep the first, odd the second      one shuffle      a | b | c | d
//! ```

use super::collective::{Combine, Reduce};
use super::handle::handle;
use super::reg::Reg;
use super::state::{Loc, POISON};
use super::types::*;
use super::{Carry, K};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;
use warpwright_ptx::op::warp::ShuffleMode;

/// The distribution of `count` values over each run of `lanes` lanes of the warp: see [`K::spread`].
#[derive(Clone, Copy, Debug)]
pub struct Spread<'k> {
    k: K<'k>,
    count: usize,
    lanes: u32,
}

impl<'k> K<'k> {
    /// A distribution of `count` values over each run of `lanes` neighbouring lanes, a power of two up to 32. Every
    /// lane keeps at least `⌈count / lanes⌉` values.
    #[track_caller]
    pub fn spread(self, count: usize, lanes: u32) -> Spread<'k> {
        if !lanes.is_power_of_two() || lanes > 32 || count == 0 {
            let message = format!("{count} values over runs of {lanes} lanes; powers of two up to 32 can");
            self.state().mistake(Code::ModifierCombination, Location::caller(), message);
            return Spread { k: self, count: count.max(1), lanes: 1 };
        }
        Spread { k: self, count, lanes }
    }
}

impl<'k> Spread<'k> {
    pub(super) fn kernel(self) -> K<'k> {
        self.k
    }

    pub(super) fn count(self) -> usize {
        self.count
    }

    /// The number of values that each lane keeps.
    pub fn slots(self) -> usize {
        let mut count = self.count;
        let mut distance = self.lanes / 2;
        while distance > 0 {
            count = count.div_ceil(2);
            distance /= 2;
        }
        count
    }

    /// The slot and the lane of the run that hold value `i`; the first lane if several hold it.
    fn owner(self, i: usize) -> (usize, u32) {
        let (mut slot, mut lane, mut count, mut distance) = (i, 0, self.count, self.lanes / 2);
        while distance > 0 {
            let half = count.div_ceil(2);
            if slot >= half {
                slot -= half;
                lane += distance;
            }
            (count, distance) = (half, distance / 2);
        }
        (slot, lane)
    }

    /// The sums of the values over the run; each lane keeps its share. All lanes of the warp call it.
    #[track_caller]
    pub fn sums(self, values: &[Reg<'k, f32>]) -> Vec<Reg<'k, f32>> {
        self.halve(values, true, Location::caller())
    }

    /// Calls `store` for each value's sum, in the one lane that keeps it, with the number of the value, the sum, and
    /// a predicate for that lane where other lanes also reach the call. All lanes of the warp call it.
    #[track_caller]
    pub fn each_sum(
        self,
        values: &[Reg<'k, f32>],
        store: impl Fn(Reg<'k, u32>, Reg<'k, f32>, Option<Reg<'k, Pred>>),
    ) {
        let (k, loc) = (self.k, Location::caller());
        // Neighbouring lanes keep neighbouring values where that comes out even: stores of them meet in no bank.
        let slots = values.len() / self.lanes as usize;
        let sums = match values.len().is_power_of_two() && slots > 1 {
            true => {
                let of = |i: usize| values[i % slots * self.lanes as usize + i / slots];
                self.sums(&(0..values.len()).map(of).collect::<Vec<_>>())
            }
            false => self.sums(values),
        };
        k.on_line(loc, || {
            for (slot, sum) in (0..).zip(sums) {
                let (number, here) = self.number(slot);
                store(number, sum, here);
            }
        });
    }

    /// The number of the value in a slot of this lane, and whether it has one of its own there.
    fn number(self, slot: u32) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let k = self.k;
        if self.count.is_power_of_two() {
            let (lane, count) = (k.lane() & (self.lanes - 1), self.count as u32);
            return match self.lanes / count {
                0 | 1 => (lane + slot * self.lanes, None),
                shared => (lane / shared, Some((lane & (shared - 1)).eq(0))),
            };
        }
        let steps = std::iter::successors(Some((self.count as u32, self.lanes / 2)), |&(count, distance)| {
            Some((count.div_ceil(2), distance / 2))
        });
        let steps: Vec<_> = steps.take_while(|&(_, distance)| distance > 0).collect();
        let (mut number, mut here) = (k.u32(slot), None);
        for (count, distance) in steps.into_iter().rev() {
            let half = count.div_ceil(2);
            number = (k.lane() & distance).ne(0).select(number + half, number);
            if !count.is_multiple_of(2) {
                let there = number.lt(count);
                here = Some(here.map_or(there, |here: Reg<'k, Pred>| here & there));
            }
        }
        (number, here)
    }

    /// The values that this lane keeps, from values that all lanes of the run have.
    #[track_caller]
    pub fn own(self, values: &[Reg<'k, f32>]) -> Vec<Reg<'k, f32>> {
        self.halve(values, false, Location::caller())
    }

    fn halve(self, values: &[Reg<'k, f32>], add: bool, loc: Loc) -> Vec<Reg<'k, f32>> {
        let k = self.k;
        if values.len() != self.count {
            let message = format!("{} values in a spread of {}", values.len(), self.count);
            k.state().mistake(Code::ModifierCombination, loc, message);
            return vec![Reg::new(k, POISON); self.slots()];
        }
        let exchange = |value, distance| k.shuffle(ShuffleMode::Bfly, value, k.u32(distance), 31, loc);
        let mut kept = values.to_vec();
        let mut distance = self.lanes / 2;
        while distance > 0 {
            let half = kept.len().div_ceil(2);
            let upper = (k.lane() & distance).ne(0);
            kept = (0..half)
                .map(|i| match kept.get(half + i) {
                    Some(&second) => {
                        let mine = upper.select(second, kept[i]);
                        if !add {
                            return mine;
                        }
                        let given = exchange(upper.select(kept[i], second), distance);
                        Combine::Sum.apply(mine, given, loc)
                    }
                    None if add => Combine::Sum.apply(kept[i], exchange(kept[i], distance), loc),
                    None => kept[i],
                })
                .collect();
            distance /= 2;
        }
        kept
    }

    /// The sum over all runs, lane by lane: over the lanes with the same position in their runs. All lanes of the
    /// warp call it.
    #[track_caller]
    pub fn sum_over_runs<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.over_runs(Combine::Sum, value, Location::caller())
    }

    /// The maximum over all runs, lane by lane, like [`sum_over_runs`](Self::sum_over_runs).
    #[track_caller]
    pub fn max_over_runs<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.over_runs(Combine::Max, value, Location::caller())
    }

    pub(super) fn over_runs<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        let mut value = value;
        let mut distance = self.lanes;
        while distance < 32 {
            let other = self.k.shuffle(ShuffleMode::Bfly, value, self.k.u32(distance), 31, loc);
            value = combine.apply(value, other, loc);
            distance *= 2;
        }
        value
    }

    /// Value `i` of a spread, in all lanes of the run. All lanes of the warp call it.
    #[track_caller]
    pub fn get(self, slots: &[Reg<'k, f32>], i: usize) -> Reg<'k, f32> {
        let loc = Location::caller();
        let (slot, lane) = self.owner(i);
        match slots.get(slot) {
            Some(&value) if i < self.count => {
                // The lane is counted from the beginning of each run.
                let within = i64::from(32 - self.lanes) << 8 | 31;
                if self.lanes == 1 {
                    value
                } else {
                    self.k.shuffle(ShuffleMode::Idx, value, self.k.u32(lane), within, loc)
                }
            }
            _ => {
                let message = format!("value {i} of a spread of {}, with {} slots", self.count, slots.len());
                Reg::new(self.k, self.k.state().mistake(Code::ModifierCombination, loc, message))
            }
        }
    }
}

/// Registers whose number is known when the kernel is built, as state of a loop or a branch: a handle, free to copy.
/// See [`K::list`].
pub struct List<'k, T> {
    k: K<'k>,
    /// The first of them among the registers of tiles and lists.
    first: u32,
    count: u32,
    element: std::marker::PhantomData<T>,
}

handle!(List<T>);

impl<T> std::fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "List({})", self.count)
    }
}

impl<'k> K<'k> {
    /// The registers as one value that loops and branches carry.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// use warpwright_ptx::ir::Arch;
    ///
    /// // Columns of x, rows by rows, summed by one thread: as many as the configuration says.
    /// let columns = 5;
    /// let built = build("columns", &LaunchRule::new(32), Arch::sm(80), |k| {
    ///     let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
    ///     let zeros = k.list((0..columns).map(|_| k.f32(0.0)));
    ///     let sums = k.fold(k.upto(100), zeros, |row, sums| {
    ///         k.list((0..columns).zip(sums.to_vec()).map(|(i, sum)| sum + x.ld(row * columns + i)))
    ///     });
    ///     (0..columns).zip(sums.to_vec()).for_each(|(i, sum)| y.st(i, sum));
    /// })?;
    /// # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
    /// ```
    pub fn list<T: Element>(self, registers: impl IntoIterator<Item = Reg<'k, T>>) -> List<'k, T> {
        let ids: Vec<_> = registers.into_iter().map(|reg| reg.id).collect();
        List::from_ids(self, &ids)
    }
}

impl<'k, T: Element> List<'k, T> {
    fn from_ids(k: K<'k>, ids: &[ir::Reg]) -> Self {
        let mut state = k.state();
        let first = state.fragments.len() as u32;
        state.fragments.extend_from_slice(ids);
        drop(state);
        List { k, first, count: ids.len() as u32, element: std::marker::PhantomData }
    }

    /// The registers.
    pub fn to_vec(self) -> Vec<Reg<'k, T>> {
        let (first, count) = (self.first as usize, self.count as usize);
        let ids = self.k.state().fragments[first..first + count].to_vec();
        ids.into_iter().map(|id| Reg::new(self.k, id)).collect()
    }
}

impl<'k, T: Element> Carry<'k> for List<'k, T> {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        self.to_vec().iter().for_each(|reg| see(reg.id));
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        let ids: Vec<_> = (0..self.count).map(|_| next()).collect();
        List::from_ids(k, &ids)
    }

    fn poison(k: K<'k>) -> Self {
        List::from_ids(k, &[])
    }

    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        see(self.count, 1);
    }
}
