//! What holds of fusing, whatever the graph, the fusions and what is accepted.

use super::random::{Rng, graph};
use super::terms::Terms;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use warpwright_graph::{
    Arithmetic, ComputeGraph, Fusion, Fusions, KernelLibrary, Plan, PlanOptions, Program, StepOp, fuse,
};
use warpwright_ptx::ir::Arch;

const SEEDS: u64 = 400;

/// Random graphs that can run, with their programs.
fn graphs() -> impl Iterator<Item = (u64, ComputeGraph, Program)> {
    let all = (0..SEEDS).filter_map(|seed| {
        let graph = graph(seed, 6 + seed as usize % 40);
        let program = Program::new(&graph).ok()?;
        Some((seed, graph, program))
    });
    all.inspect(|(seed, _, program)| {
        program.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    })
}

/// A dispatcher that accepts some steps and not others, always the same ones.
fn moody(seed: u64, one_in: u64) -> impl Fn(Fusion, &StepOp, &Program) -> bool {
    move |fusion, op, _| {
        let mut hasher = DefaultHasher::new();
        (seed, fusion, format!("{op:?}")).hash(&mut hasher);
        hasher.finish().is_multiple_of(one_in)
    }
}

fn some_fusions(rng: &mut Rng) -> Fusions {
    Fusion::ALL.into_iter().filter(|_| rng.one_in(2)).fold(Fusions::none(), Fusions::with)
}

#[test]
fn most_random_graphs_can_run() {
    assert!(graphs().count() as u64 > SEEDS * 3 / 4);
}

/// A fused program can be run, does each node's work once, and computes the same terms.
#[test]
fn fused_programs_compute_the_same() {
    let mut formed = [0; Fusion::ALL.len()];
    for (seed, graph, program) in graphs() {
        let mut terms = Terms::default();
        let expected = terms.of_graph(&graph);
        assert_eq!(terms.of_program(&program), expected, "seed {seed}: one step for each node");
        let mut rng = Rng(seed);
        for trial in 0..4 {
            let fusions = if trial == 0 { Fusions::all() } else { some_fusions(&mut rng) };
            let mut fused = program.clone();
            let report = fuse(&mut fused, fusions, &moody(rng.next(), trial + 1));
            fused.check().unwrap_or_else(|error| panic!("seed {seed}, trial {trial}: {error}"));
            assert_eq!(terms.of_program(&fused), expected, "seed {seed}, trial {trial}: {report:?}");
            assert!(fused.steps().len() <= program.steps().len() - report.len());
            for formation in report {
                assert!(fusions.contains(formation.fusion), "seed {seed}: {formation:?} was not asked for");
                formed[formation.fusion as usize] += 1;
            }
        }
    }
    // The graphs have what each pass looks for.
    for (fusion, count) in Fusion::ALL.into_iter().zip(formed) {
        assert!(count > 20 || fusion == Fusion::Quantize, "{fusion} was formed {count} times");
    }
}

/// What was fused is not fused any further.
#[test]
fn fusing_is_idempotent() {
    for (seed, _, program) in graphs() {
        for trial in 0..3 {
            let accepts = moody(seed, trial + 1);
            let mut once = program.clone();
            fuse(&mut once, Fusions::all(), &accepts);
            let mut twice = once.clone();
            assert_eq!(fuse(&mut twice, Fusions::all(), &accepts), [], "seed {seed}");
            assert_eq!(once.steps(), twice.steps(), "seed {seed}");
        }
    }
}

/// A dispatcher that accepts nothing gets the steps of the nodes.
#[test]
fn nothing_accepted_is_nothing_fused() {
    for (seed, _, program) in graphs() {
        for (fusions, accepted) in [(Fusions::all(), false), (Fusions::none(), true)] {
            let mut fused = program.clone();
            assert_eq!(fuse(&mut fused, fusions, &|_, _, _| accepted), [], "seed {seed}");
            assert_eq!(fused.steps(), program.steps(), "seed {seed}");
        }
    }
}

/// Fusions that are accepted are formed, others are not; and each is asked for as what it is.
#[test]
fn only_accepted_fusions_are_formed() {
    for (seed, _, program) in graphs() {
        let mut rng = Rng(seed);
        let accepted = some_fusions(&mut rng);
        let mut fused = program.clone();
        let formed = fuse(&mut fused, Fusions::all(), &|fusion, _, _| accepted.contains(fusion));
        assert!(formed.iter().all(|formed| accepted.contains(formed.fusion)), "seed {seed}: {formed:?}");
        // A set that may be formed is as good as a set that is accepted.
        let mut other = program.clone();
        assert_eq!(fuse(&mut other, accepted, &|_, _, _| true), formed, "seed {seed}");
        assert_eq!(other.steps(), fused.steps(), "seed {seed}");
    }
}

/// What the library can do node by node it can do fused: it accepts only what it has kernels for, and fewer
/// launches are what it is for.
#[test]
fn what_is_planned_is_planned_fused() {
    let mut planned = 0;
    for (seed, graph, _) in graphs() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let mut options = PlanOptions::new(Arch::sm(80), 108);
            options.arithmetic = arithmetic;
            let fused = Plan::new(&graph, &options, &KernelLibrary);
            options.fusions = Fusions::none();
            let Ok(unfused) = Plan::new(&graph, &options, &KernelLibrary) else { continue };
            let fused = fused.unwrap_or_else(|error| panic!("seed {seed}, {arithmetic:?}: {error}"));
            fused.program().check().unwrap_or_else(|error| panic!("seed {seed}, {arithmetic:?}: {error}"));
            let launches = [fused.launches().count(), unfused.launches().count()];
            assert!(launches[0] <= launches[1], "seed {seed}, {arithmetic:?}: {launches:?}");
            planned += 1;
        }
    }
    assert!(planned > SEEDS, "{planned} plans");
}
