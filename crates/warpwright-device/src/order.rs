//! Which of the streams that can go on goes on.
//!
//! CUDA says what comes before what: the operations of a stream, what events join, what the default stream waits for.
//! Everything else may come in any order, and a program that forgets to say what it needs is right in some of them.
//! Orders other than that of the calls show it: they put off what nobody waits for, and then let overtake what may.
//!
//! What may be done is not known here, only which of it is done.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long an operation is put off if nobody waits for it, nor asks, and how long the oldest that can be done is passed
/// over then: so a client sees what it looks for in memory, whatever else it asks for meanwhile.
pub(crate) const LONGEST: Duration = Duration::from_millis(50);

/// How many operations are put off at most.
pub(crate) const MAX_DEFERRED: usize = 512;

/// An order of operations that different streams are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What was asked for first, as soon as it can be done.
    #[default]
    Issue,
    /// Nothing before somebody waits or asks, and then the stream that was asked last.
    Reverse,
    /// Nothing before somebody waits or asks, and then any, by numbers from this seed.
    Random(u64),
}

/// A text that names no order.
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
    /// Whether what nobody waits for is put off.
    pub(crate) fn puts_off(self) -> bool {
        self != Order::Issue
    }

    /// What chooses so, from the beginning: the same choices of the same candidates.
    pub fn chooser(self) -> Chooser {
        let state = if let Order::Random(seed) = self { seed } else { 0 };
        Chooser { order: self, state }
    }
}

/// Chooses.
#[derive(Debug, Default)]
pub struct Chooser {
    order: Order,
    state: u64,
}

impl Chooser {
    /// By which order.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Whether it is always the one that was asked for first.
    pub(crate) fn takes_first(&self) -> bool {
        self.order == Order::Issue
    }

    /// One of so many candidates, of which there is one at least: those that were asked for first come first, and
    /// `age` says when each was asked last.
    pub fn choose(&mut self, candidates: usize, age: impl Fn(usize) -> u64) -> usize {
        match self.order {
            Order::Issue => 0,
            Order::Reverse => (0..candidates).max_by_key(|candidate| age(*candidate)).unwrap_or(0),
            Order::Random(_) => (self.random() % candidates.max(1) as u64) as usize,
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
