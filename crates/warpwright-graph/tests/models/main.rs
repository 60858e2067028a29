//! Whole models on the virtual GPU, as they are planned and fused, against the reference in `f64`: prompts at once and
//! in chunks, then tokens.
//!
//! What a result may differ by is measured, see [`noise`]. A token is compared where no such difference could have
//! chosen another one, which must be so for 95% of them; then the next step goes on from the reference's token.
//! `WARPWRIGHT_FULL=1` runs more models.

#[path = "../common/mod.rs"]
mod common;

mod case;
mod device;
mod noise;
mod planted;
#[path = "../common/reference/mod.rs"]
mod reference;
mod trace;

use case::Case;
use common::Random;
use device::{Mode, follow};
use trace::Trace;
use warpwright_graph::{Arithmetic, Fusion, Fusions};
use warpwright_runtime::Order;

/// How many of a random kind are run.
fn count(usual: u64) -> u64 {
    if std::env::var_os("WARPWRIGHT_FULL").is_some() { 12 * usual } else { usual }
}

/// Tokens that were chosen, and those of them that could be compared.
#[derive(Default)]
struct Choices {
    all: usize,
    compared: usize,
}

impl Choices {
    #[track_caller]
    fn follow(&mut self, case: &Case, trace: &Trace, mode: Mode) {
        if let Err(error) = follow(case, trace, mode, |graph| graph.clone()) {
            panic!("{mode:?}: {error}\n{case:#?}");
        }
        let comparable = trace.steps.iter().flat_map(|step| &step.comparable);
        self.all += comparable.clone().count();
        self.compared += comparable.filter(|&&comparable| comparable).count();
    }

    #[track_caller]
    fn assert_enough(&self) {
        let Choices { all, compared } = *self;
        println!("{compared} of {all} tokens compared");
        assert!(compared * 100 >= all * 95, "{compared} of {all} tokens could be compared");
    }
}

fn random_models(arithmetic: Arithmetic, seeds: std::ops::Range<u64>) {
    let mut choices = Choices::default();
    for seed in seeds {
        let case = Case::random(&mut Random::new(seed));
        let mode = Mode { arithmetic, captured: seed % 2 == 0, ..Mode::default() };
        choices.follow(&case, &Trace::new(&case, arithmetic), mode);
    }
    choices.assert_enough();
}

#[test]
fn random_models_are_what_the_reference_makes_of_them() {
    random_models(Arithmetic::Exact, 0..count(16));
}

#[test]
fn with_integer_arithmetic_they_are_within_what_it_rounds() {
    random_models(Arithmetic::Int8, 1000..1000 + count(12));
}

#[test]
fn every_fusion_by_itself_and_left_out_makes_the_same() {
    let mut choices = Choices::default();
    for batch in [1, 10] {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let case = Case::with_everything(batch);
            let trace = Trace::new(&case, arithmetic);
            let all = Fusions::all();
            let each = Fusion::ALL.into_iter().flat_map(|f| [all.without(f), Fusions::none().with(f)]);
            for fusions in [Fusions::none(), all].into_iter().chain(each) {
                choices.follow(&case, &trace, Mode { arithmetic, fusions, ..Mode::default() });
            }
        }
    }
    choices.assert_enough();
}

#[test]
fn replays_are_executions_bit_by_bit() {
    for (seed, arithmetic) in [(1, Arithmetic::Exact), (2, Arithmetic::Int8), (3, Arithmetic::Exact)] {
        let case = Case::random(&mut Random::new(seed));
        let trace = Trace::new(&case, arithmetic);
        let run = |captured| {
            let mode = Mode { arithmetic, captured, ..Mode::default() };
            follow(&case, &trace, mode, |graph| graph.clone())
                .unwrap_or_else(|error| panic!("{error}\n{case:#?}"))
        };
        assert_eq!(run(true), run(false), "{case:#?}");
    }
}

/// With all checks: whatever runs before the launch in front of it is complete changes nothing, and is no finding.
#[test]
fn launches_that_overlap_make_the_same() {
    for (seed, arithmetic) in [(4, Arithmetic::Exact), (5, Arithmetic::Int8)] {
        let case = Case::random(&mut Random::new(seed));
        let trace = Trace::new(&case, arithmetic);
        let run = |mode: Mode| {
            follow(&case, &trace, mode, |graph| graph.clone())
                .unwrap_or_else(|error| panic!("{mode:?}: {error}\n{case:#?}"))
        };
        let mode = Mode { arithmetic, ..Mode::default() };
        let apart = run(Mode { overlap: false, ..mode });
        for order in [Order::Issue, Order::Reverse, Order::Random(1)] {
            for captured in [false, true] {
                let mode = Mode { captured, order: Some(order), ..mode };
                assert!(run(mode) == apart, "{mode:?}\n{case:#?}");
            }
        }
    }
}
