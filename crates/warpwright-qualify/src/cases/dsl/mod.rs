//! Words of the DSL by their numbers: executed on the device of the test.

pub(crate) mod activations;
pub(crate) mod attention;
pub(crate) mod choice;
pub(crate) mod control;
pub(crate) mod division;
pub(crate) mod exchange;
pub(crate) mod fragments;
pub(crate) mod halo;
pub(crate) mod operations;
pub(crate) mod row_wise;
pub(crate) mod spread;
pub(crate) mod states;
pub(crate) mod thin;
pub(crate) mod tiles;

use crate::common::LaunchArg;
use warpwright_dsl::{K, LaunchRule, build};
use warpwright_ptx::ir::Arch;

/// Targets that do things in different ways.
const TARGETS: [u16; 3] = [75, 80, 90];

/// Runs a body in so many blocks of so many threads; yields the outputs, and the report.
fn run_body(
    sm: u16,
    (blocks, threads): (u32, u32),
    given: &[LaunchArg<'_>],
    body: impl for<'k> Fn(K<'k>),
) -> (Vec<Vec<f64>>, crate::common::Reported) {
    let arch = Arch::sm(sm);
    let built = build("body", &LaunchRule::new(threads), arch, body)
        .unwrap_or_else(|errors| panic!("sm_{sm}: {errors}"));
    crate::common::run(arch, "body", &built, (blocks, 1, 1), given)
}

/// The outputs alone.
fn outputs(
    sm: u16,
    shape: (u32, u32),
    given: &[LaunchArg<'_>],
    body: impl for<'k> Fn(K<'k>),
) -> Vec<Vec<f64>> {
    run_body(sm, shape, given, body).0
}
