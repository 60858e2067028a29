//! Reports of plans: the graph, the steps after fusion, and the launches.
//!
//! A [`PlanReport`] holds a plan's content by names. It can be printed as a table for a terminal, as JSON for programs
//! (its fields, as `serde` writes them), or as a Graphviz graph with the nodes in one half and the steps in the other.
//! Boxes have the colour of their step's family, and the number of their step.
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
    /// The report of a plan. Pass the graph that was planned, unchanged; with another graph, nodes may have no step in
    /// the report.
    pub fn new(graph: &ComputeGraph, plan: &Plan) -> Self {
        collect::collect(graph, plan)
    }

    /// Adds the totals of another plan of the same graph, one without fusion.
    pub fn with_unfused(mut self, plan: &Plan) -> Self {
        self.unfused = Some(collect::totals(plan));
        self
    }

    /// The report as a JSON text; [`serde_json::from_str`] reads it.
    ///
    /// # Errors
    ///
    /// If an argument of a launch is a number that JSON cannot represent.
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
