//! Schedules of persistent kernels: their form, their equivalence to plans, and that the check finds faults.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod forms;
mod models;
mod refused;
mod report;
mod words;

use warpwright_graph::persistent::{Assigned, Schedule, ScheduleOptions, check};
use warpwright_graph::{Arithmetic, ComputeGraph, KernelLibrary, Plan, PlanOptions};
use warpwright_kernels::persistent::Assignment;
use warpwright_ptx::ir::Arch;

/// A plan by the library, for an H100.
fn plan_of(graph: &ComputeGraph, arithmetic: Arithmetic) -> Plan {
    let mut options = PlanOptions::new(Arch::sm(90), 132);
    options.arithmetic = arithmetic;
    Plan::new(graph, &options, &KernelLibrary).unwrap_or_else(|error| panic!("{error}"))
}

/// Its schedule.
fn schedule_of(plan: &Plan) -> Schedule {
    Schedule::new(plan, &ScheduleOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The schedule for so many blocks, which the check takes.
fn assigned(plan: &Plan, schedule: &Schedule, blocks: u32, assignment: Assignment) -> Assigned {
    let assigned = schedule.assign(blocks, assignment).unwrap_or_else(|error| panic!("{error}"));
    check(schedule, plan, &assigned).unwrap_or_else(|fault| panic!("{blocks} blocks, {assignment}: {fault}"));
    assigned
}
