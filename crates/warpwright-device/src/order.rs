//! Chooses the stream that goes on, among those that can.
//!
//! CUDA defines a partial order: the operations of a stream, events, and the rules of the default stream. Everything
//! else may happen in any order, and a program with a missing wait is right only in some of them. Orders other than
//! that of the calls expose it: they defer operations that no thread waits for, and then let them overtake one another
//! where that is legal.
//!
//! This module does not know which operations may be executed, only which of them comes next.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use warpwright_vm::Schedule;

/// How long an operation is deferred if no thread waits for it or queries it, and then for how long the oldest that can
/// go on is passed over: so a client that polls memory sees a result, whatever else it issues meanwhile.
pub(crate) const LONGEST: Duration = Duration::from_millis(50);

/// The maximum number of deferred operations.
pub(crate) const MAX_DEFERRED: usize = 512;

/// The order in which operations of different streams are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The operation that was issued first, as soon as it can be executed.
    #[default]
    Issue,
    /// Defers everything until a thread waits or queries, and then takes the stream with the most recent operation
    /// first.
    Reverse,
    /// Defers everything until a thread waits or queries, and then takes a random stream, by numbers from this seed.
    Random(u64),
}

impl Order {
    /// The order of blocks and warps that goes with it: on all host threads; the last block first; by the seed.
    pub fn schedule(self) -> Schedule {
        match self {
            Order::Issue => Schedule::Parallel,
            Order::Reverse => Schedule::Reversed,
            Order::Random(seed) => Schedule::Scattered(seed),
        }
    }
}

/// The error for a text that does not name an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOrder(String);

impl fmt::Display for UnknownOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no order: it must be issue, reverse, or random: with a number behind it", self.0)
    }
}

impl std::error::Error for UnknownOrder {}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, UnknownOrder> {
        match text.split_once(':') {
            None if text == "issue" => Some(Order::Issue),
            None if text == "reverse" => Some(Order::Reverse),
            Some(("random", seed)) => seed.parse().ok().map(Order::Random),
            _ => None,
        }
        .ok_or_else(|| UnknownOrder(text.to_owned()))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Issue => f.write_str("issue"),
            Order::Reverse => f.write_str("reverse"),
            Order::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl Order {
    /// Whether operations that no thread waits for are deferred.
    pub(crate) fn puts_off(self) -> bool {
        self != Order::Issue
    }

    /// A chooser of this order. Choosers of one order make the same choices from the same candidates.
    pub fn chooser(self) -> Chooser {
        let state = if let Order::Random(seed) = self { seed } else { 0 };
        Chooser { order: self, state }
    }
}

/// Makes the choices of an order.
#[derive(Debug, Default)]
pub struct Chooser {
    order: Order,
    state: u64,
}

impl Chooser {
    /// Its order.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Whether it always takes the operation that was issued first.
    pub(crate) fn takes_first(&self) -> bool {
        self.order == Order::Issue
    }

    /// Chooses one of `candidates` candidates, of which there is at least one, sorted by their time of issue; `age`
    /// says when the stream of each was last used.
    pub fn choose(&mut self, candidates: usize, age: impl Fn(usize) -> u64) -> usize {
        match self.order {
            Order::Issue => 0,
            Order::Reverse => (0..candidates).max_by_key(|candidate| age(*candidate)).unwrap_or(0),
            Order::Random(_) => (self.random() % candidates.max(1) as u64) as usize,
        }
    }

    /// How many of the launches that may begin early do so.
    pub(crate) fn early(&mut self, candidates: usize) -> usize {
        match self.order {
            Order::Issue => 0,
            Order::Reverse => candidates,
            Order::Random(_) => (self.random() % (candidates as u64 + 1)) as usize,
        }
    }

    /// The next number of SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_names() {
        for text in ["issue", "reverse", "random:0", "random:17", "random:18446744073709551615"] {
            assert_eq!(text.parse::<Order>().map(|order| order.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("random:17".parse(), Ok(Order::Random(17)));
        for wrong in ["", "random", "random:", "random:-1", "random:x", "reverse:1", "Issue"] {
            assert_eq!(wrong.parse::<Order>(), Err(UnknownOrder(wrong.into())));
        }
    }

    #[test]
    fn they_choose_the_first_the_last_asked_or_any() {
        let ages = [5, 9, 7];
        let choose = |order: Order| order.chooser().choose(3, |candidate| ages[candidate]);
        assert_eq!((choose(Order::Issue), choose(Order::Reverse)), (0, 1));
        let sequence = |seed| {
            let mut chooser = Order::Random(seed).chooser();
            (0..60).map(|_| chooser.choose(3, |_| 0)).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
        assert!((0..3).all(|candidate| sequence(1).contains(&candidate)));
    }
}
