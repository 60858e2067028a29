//! Plans: which launches, with which arguments, in which memory.

mod arguments;
mod choice;
#[path = "../common/mod.rs"]
mod common;
mod holds;
mod launches;
mod memory;
mod placement;
mod refused;

use warpwright_graph::{
    Arithmetic, ComputeGraph, Fusions, KernelLibrary, Plan, PlanError, PlanOptions, StepOp,
};
use warpwright_ptx::ir::Arch;

/// An A100, with all fusions.
fn options(arithmetic: Arithmetic) -> PlanOptions {
    let mut options = PlanOptions::new(Arch::sm(80), 108);
    options.arithmetic = arithmetic;
    options
}

fn exact() -> PlanOptions {
    options(Arithmetic::Exact)
}

fn int8() -> PlanOptions {
    options(Arithmetic::Int8)
}

fn without(fusions: Fusions, options: PlanOptions) -> PlanOptions {
    let mut options = options;
    options.fusions = fusions;
    options
}

fn try_plan(graph: &ComputeGraph, options: &PlanOptions) -> Result<Plan, PlanError> {
    Plan::new(graph, options, &KernelLibrary)
}

/// A plan by the library, in which all holds that must.
fn plan(graph: &ComputeGraph, options: &PlanOptions) -> Plan {
    let plan = try_plan(graph, options).unwrap_or_else(|error| panic!("{error}"));
    holds::check(&plan);
    plan
}

/// Names of the steps, in order.
fn steps(plan: &Plan) -> Vec<&'static str> {
    plan.program().steps().iter().map(|step| step.op.name()).collect()
}

/// The steps' ops.
fn ops(plan: &Plan) -> impl Iterator<Item = &StepOp> {
    plan.program().steps().iter().map(|step| &step.op)
}
