//! The correctness cases of the kernels: what they compute, held to float64.

use super::Item;
use crate::cases::MODULES;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

thread_local! {
    /// What the last panic of this thread said, and where.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Modules that decoding is made of, the most valuable first.
const DECODE_PATH: [&str; 8] = [
    "gemv",
    "incremental_attention::numbers",
    "norm",
    "rope",
    "embedding",
    "quantize",
    "sampling::argmax",
    "advance",
];

/// Which cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Those of the kernels that decoding is made of.
    DecodePath,
    /// All others.
    Others,
    /// All.
    All,
}

/// The place of a module, behind all that decoding is made of unless it is one of them.
fn rank(module: &str) -> usize {
    DECODE_PATH.iter().position(|first| *first == module).unwrap_or(DECODE_PATH.len())
}

/// A case for each module, where there is little time.
const QUICK: usize = 1;

pub(super) fn items(quick: bool, part: Part) -> Vec<Item> {
    set_hook(Box::new(|panic| PANIC.with_borrow_mut(|said| *said = panic.to_string())));
    let mut modules: Vec<_> = MODULES.to_vec();
    modules.sort_by_key(|(module, _)| rank(module));
    modules.retain(|(module, _)| match part {
        Part::All => true,
        Part::DecodePath => rank(module) < DECODE_PATH.len(),
        Part::Others => rank(module) == DECODE_PATH.len(),
    });
    let count = |cases: usize| if quick { cases.min(QUICK) } else { cases };
    let cases = modules
        .into_iter()
        .flat_map(|(module, cases)| cases.iter().take(count(cases.len())).map(move |case| (module, *case)));
    cases
        .map(|(module, case)| Item {
            name: format!("{module}::{}", case.name),
            run: Box::new(move |_, _| {
                catch_unwind(AssertUnwindSafe(case.run)).map_err(|_| PANIC.with_borrow(String::clone).into())
            }),
        })
        .collect()
}
