//! Words of the DSL by their numbers: executed on the device of the test.

mod activations;
mod attention;
mod choice;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod division;
mod exchange;
mod fragments;
mod halo;
mod operations;
mod row_wise;
mod spread;
mod states;
mod thin;
mod tiles;

use common::LaunchArg;
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
) -> (Vec<Vec<f64>>, common::Reported) {
    let arch = Arch::sm(sm);
    let built = build("body", &LaunchRule::new(threads), arch, body)
        .unwrap_or_else(|errors| panic!("sm_{sm}: {errors}"));
    common::run(arch, "body", &built, (blocks, 1, 1), given)
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
