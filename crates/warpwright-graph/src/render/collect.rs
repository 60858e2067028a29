//! Conversion of a plan to its report.

use super::report::{
    ArgReport, CopyReport, InPlaceReport, LaunchReport, MemoryReport, NodeReport, PlanReport, SourceReport,
    StepReport, TargetReport, TensorReport, TotalsReport, VERSION,
};
use crate::ComputeGraph;
use crate::graph::{Element, NodeId, Role, Tensor};
use crate::launch::{Action, ArgSource, PlannedLaunch, WeightLayout, bytes};
use crate::options::Fusion;
use crate::plan::{Location, Plan, PlannedWeight};
use crate::program::{Program, Step};

/// Names of what handles stand for.
struct Names<'a> {
    graph: &'a ComputeGraph,
    program: &'a Program,
}

impl Names<'_> {
    fn tensor(&self, tensor: Tensor) -> String {
        self.program.info(tensor).name.clone()
    }

    fn tensors(&self, tensors: impl Iterator<Item = Tensor>) -> Vec<String> {
        distinct(tensors).into_iter().map(|tensor| self.tensor(tensor)).collect()
    }

    /// Tensors of the graph, which need not be known to the program where it is another one than was planned.
    fn of_graph(&self, tensors: &[Tensor]) -> Vec<String> {
        let known =
            distinct(tensors.iter().copied()).into_iter().filter_map(|tensor| self.graph.info(tensor).ok());
        known.map(|info| info.name.clone()).collect()
    }

    fn nodes(&self, nodes: &[NodeId]) -> Vec<String> {
        nodes.iter().filter_map(|&id| Some(self.graph.node_of(id)?.name.clone())).collect()
    }
}

fn distinct(tensors: impl Iterator<Item = Tensor>) -> Vec<Tensor> {
    let mut seen: Vec<Tensor> = Vec::new();
    for tensor in tensors {
        if !seen.contains(&tensor) {
            seen.push(tensor);
        }
    }
    seen
}

pub(super) fn collect(graph: &ComputeGraph, plan: &Plan) -> PlanReport {
    let program = plan.program();
    let names = Names { graph, program };
    let options = plan.options();
    let fusions = Fusion::ALL.into_iter().filter(|&fusion| options.fusions.contains(fusion));
    let target = TargetReport {
        arch: options.arch().to_string(),
        multiprocessors: options.tuning.device.multiprocessors,
        arithmetic: options.arithmetic.name().into(),
        fusions: fusions.map(|fusion| fusion.name().into()).collect(),
    };
    let mut launches: Vec<LaunchReport> = Vec::new();
    let mut steps: Vec<StepReport> = Vec::new();
    for (at, (step, planned)) in program.steps().iter().zip(plan.steps()).enumerate() {
        let first = launches.len();
        let nodes = names.nodes(&step.nodes);
        launches.extend(planned.launches().map(|planned| launch(plan, &names, at, &nodes, planned)));
        let copies = planned.actions.iter().filter_map(|action| match *action {
            Action::Copy { from, to } => Some(CopyReport { from: names.tensor(from), to: names.tensor(to) }),
            Action::Launch(_) => None,
        });
        steps.push(StepReport {
            op: step.op.name().into(),
            family: step.op.family().name().into(),
            nodes,
            fusions: fusions_of(plan, step),
            reads: names.tensors(step.op.reads()),
            writes: names.tensors(step.op.writes()),
            launches: (first..launches.len()).collect(),
            copies: copies.collect(),
            overridden: planned.overridden,
        });
    }
    let totals = TotalsReport { nodes: graph.nodes().len(), ..totals(plan) };
    PlanReport {
        version: VERSION,
        target,
        before: before(&names),
        steps,
        launches,
        tensors: program.handles().map(|tensor| tensor_report(plan, &names, tensor)).collect(),
        memory: memory(plan, &names),
        totals,
        unfused: None,
    }
}

/// The sums of a plan; its nodes are those that its steps do.
pub(super) fn totals(plan: &Plan) -> TotalsReport {
    let steps = plan.program().steps();
    TotalsReport {
        nodes: steps.iter().map(|step| step.nodes.len()).sum(),
        steps: steps.len(),
        launches: plan.launches().count(),
        bytes: plan.bytes(),
        arena_bytes: plan.memory().arena_bytes,
    }
}

/// The nodes in an order in which they can run, each with its step.
fn before(names: &Names<'_>) -> Vec<NodeReport> {
    let mut step_of = vec![0; names.graph.nodes().len()];
    for (at, step) in names.program.steps().iter().enumerate() {
        for node in &step.nodes {
            if let Some(of) = step_of.get_mut(node.index()) {
                *of = at;
            }
        }
    }
    // A graph that was planned has an order.
    let order = names.graph.order().unwrap_or_default();
    let nodes = order.into_iter().filter_map(|id| Some((id, names.graph.node_of(id)?)));
    nodes
        .map(|(id, node)| NodeReport {
            name: node.name.clone(),
            op: node.op.name().into(),
            reads: names.of_graph(&node.inputs),
            writes: names.of_graph(&node.outputs),
            step: step_of[id.index()],
        })
        .collect()
}

/// The fusions that formed a step, or a part of it.
fn fusions_of(plan: &Plan, step: &Step) -> Vec<String> {
    let within = |nodes: &[NodeId]| !nodes.is_empty() && nodes.iter().all(|node| step.nodes.contains(node));
    let mut fusions: Vec<Fusion> =
        (plan.formed().iter()).filter(|formed| within(&formed.nodes)).map(|formed| formed.fusion).collect();
    fusions.sort_unstable();
    fusions.dedup();
    fusions.into_iter().map(|fusion| fusion.name().into()).collect()
}

fn launch(
    plan: &Plan,
    names: &Names<'_>,
    step: usize,
    nodes: &[String],
    launch: &PlannedLaunch,
) -> LaunchReport {
    let source = |source: &ArgSource| match *source {
        ArgSource::Tensor { tensor, plane, at, len } => {
            SourceReport::Tensor { name: names.tensor(tensor), part: plane, at, len }
        }
        ArgSource::Weights { tensor, layout } => {
            SourceReport::Weights { name: names.tensor(tensor), layout: layout_name(layout).into() }
        }
        ArgSource::Scratch(id) => match plan.scratch().get(id.index()) {
            Some(scratch) => {
                SourceReport::Scratch { index: id.index(), bytes: scratch.bytes(), zeroed: scratch.zeroed }
            }
            None => SourceReport::Other(format!("{id:?}")),
        },
        ArgSource::U32(value) => SourceReport::U32(value),
        ArgSource::F32(value) => SourceReport::F32(value),
    };
    let args = launch.args.iter().map(|(name, of)| ArgReport { name: (*name).into(), source: source(of) });
    LaunchReport {
        kernel: launch.kernel.entry().into(),
        step,
        nodes: nodes.to_vec(),
        grid: launch.grid,
        block: launch.block,
        bytes: launch.bytes,
        overlaps: launch.overlaps,
        args: args.collect(),
    }
}

fn tensor_report(plan: &Plan, names: &Names<'_>, tensor: Tensor) -> TensorReport {
    let info = names.program.info(tensor);
    let offset = match plan.location(tensor) {
        Some(Location::Arena(offset)) => Some(offset),
        _ => None,
    };
    TensorReport {
        name: info.name.clone(),
        ty: info.ty.to_string(),
        role: info.role.to_string(),
        bytes: bytes(info.ty),
        version_of: info.state.map(|state| names.tensor(state)),
        offset,
    }
}

fn memory(plan: &Plan, names: &Names<'_>) -> MemoryReport {
    let memory = plan.memory();
    let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, |sum: u64, bytes| sum.saturating_add(bytes));
    let of_weight = |weight: &PlannedWeight| {
        let ty = names.program.ty(weight.tensor);
        let (Element::Weights(format), [n, k]) = (ty.element, ty.shape.dims()) else { return bytes(ty) };
        sum(&mut weight.layouts.iter().map(|layout| layout.bytes(format, *n, *k)))
    };
    let in_place = memory.in_place().iter().map(|&(result, operand)| InPlaceReport {
        result: names.tensor(result),
        operand: names.tensor(operand),
    });
    MemoryReport {
        arena_bytes: memory.arena_bytes,
        bound_bytes: memory.bound,
        zeroed_bytes: memory.zeroed_bytes,
        weight_bytes: sum(&mut plan.weights().iter().map(of_weight)),
        state_bytes: sum(&mut plan.tensors(Role::State).map(|state| bytes(names.program.ty(state)))),
        in_place: in_place.collect(),
    }
}

fn layout_name(layout: WeightLayout) -> &'static str {
    match layout {
        WeightLayout::Rows => "rows",
        WeightLayout::Planes => "planes",
    }
}
