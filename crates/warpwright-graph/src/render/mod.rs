//! Plans to look at: what the graph was, what became of it, which launches that takes.
//!
//! A [`PlanReport`] has a plan's content by names. It is a table for a terminal, JSON for programs (its fields,
//! as `serde` writes them), or a graph for Graphviz, which makes a picture of it: one half is the graph and the other the
//! steps; boxes have the colour of their family of steps, and the number of their step.

mod collect;
pub(crate) mod dot;
mod edges;
mod report;
pub(crate) mod table;

pub use report::{
    ArgReport, CopyReport, InPlaceReport, LaunchReport, MemoryReport, NodeReport, PlanReport, SourceReport,
    StepReport, TargetReport, TensorReport, TotalsReport, VERSION,
};

use crate::graph::ComputeGraph;
use crate::plan::Plan;

impl PlanReport {
    /// The report of a plan of that graph: the one that was planned, with nothing added to it. Of another graph it is
    /// the report with nodes that have no steps.
    pub fn new(graph: &ComputeGraph, plan: &Plan) -> Self {
        collect::collect(graph, plan)
    }

    /// With the sums of another plan of the same graph beside it: one with nothing fused.
    pub fn with_unfused(mut self, plan: &Plan) -> Self {
        self.unfused = Some(collect::totals(plan));
        self
    }

    /// The report as a JSON text; [`serde_json::from_str`] reads it.
    ///
    /// # Errors
    ///
    /// Where an argument of a launch is no number that JSON has.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// The report as tables of text, up to 110 columns where names are short.
    pub fn to_table(&self) -> String {
        table::render(self)
    }

    /// The report in Graphviz's language: a cluster for the nodes, another for the steps.
    pub fn to_dot(&self) -> String {
        dot::render(self)
    }
}
