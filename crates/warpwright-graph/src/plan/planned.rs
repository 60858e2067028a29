//! The plan: the result of the passes.
//!
//! Invariants: there is one planned step for each step of the program; a launch has the arguments that its kernel
//! takes, in its order; every tensor of a step and every piece of scratch has a location.

use super::memory::{self, Location, Memory};
use super::overlap;
use crate::dispatch::KernelDispatch;
use crate::fuse::{Formed, fuse};
use crate::graph::{ComputeGraph, Element, Role, Tensor};
use crate::launch::{PlanError, PlannedLaunch, PlannedStep, Scratch, ScratchId, WeightLayout};
use crate::library;
use crate::options::{Fusion, PlanOptions};
use crate::program::{Family, Program, StepOp};
use warpwright_kernels::tune::Table;

/// How a graph is computed on a kind of device: the steps, the launches and the memory. A plan does not hold a device
/// or memory. To run it, bind it to buffers, as often as you like.
#[derive(Clone, Debug)]
pub struct Plan {
    program: Program,
    options: PlanOptions,
    formed: Vec<Formed>,
    steps: Vec<PlannedStep>,
    scratch: Vec<Scratch>,
    choices: Table,
    memory: Memory,
    weights: Vec<PlannedWeight>,
}

/// A weight that the plan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWeight {
    /// The tensor.
    pub tensor: Tensor,
    /// The layouts that it is needed in, one or both; none for floats that are not a matrix, such as biases, which have
    /// only one layout.
    pub layouts: Vec<WeightLayout>,
}

impl Plan {
    /// Plans a graph for a device and a dispatcher.
    pub fn new(
        graph: &ComputeGraph,
        options: &PlanOptions,
        dispatch: &dyn KernelDispatch,
    ) -> Result<Self, PlanError> {
        let mut program = Program::new(graph)?;
        let overridden = |family| dispatch.overrides(family);
        let accepts = |fusion: Fusion, step: &StepOp, program: &Program| {
            dispatch.accepts(fusion, step, program, options)
        };
        let mut formed = fuse(&mut program, options.fusions, &accepts);
        formed.extend(library::choose(&mut program, options, &overridden, &accepts));
        program.check()?;
        let library::Lowered { mut steps, scratch, choices } =
            library::lower(&program, options, &overridden)?;
        overlap::mark(&program, &mut steps, &options.tuning);
        let memory = memory::plan(&program, &steps, &scratch)?;
        let layout = |family| {
            if overridden(family) { dispatch.weight_layout(family) } else { library::layout(family) }
        };
        let weights = weights(&program, &layout);
        Ok(Plan { program, options: options.clone(), formed, steps, scratch, choices, memory, weights })
    }

    /// The steps, after fusion and choice of kernels, and the tensors.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The options of the plan.
    pub fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// The fused steps that were formed.
    pub fn formed(&self) -> &[Formed] {
        &self.formed
    }

    /// The actions for each step of the program.
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }

    /// All launches in order, each with its step.
    pub fn launches(&self) -> impl Iterator<Item = (usize, &PlannedLaunch)> {
        let steps = self.steps.iter().enumerate();
        steps.flat_map(|(i, step)| step.launches().map(move |launch| (i, launch)))
    }

    /// Bytes that all launches move: see [`PlannedLaunch::bytes`].
    pub fn bytes(&self) -> u64 {
        self.launches().fold(0, |sum, (_, launch)| sum.saturating_add(launch.bytes))
    }

    /// How many launches may overlap with the one in front of them.
    pub fn overlaps(&self) -> usize {
        self.launches().filter(|(_, launch)| launch.overlaps).count()
    }

    /// Memory that kernels need in addition to their operands.
    pub fn scratch(&self) -> &[Scratch] {
        &self.scratch
    }

    /// The choices made for the device: rows of a table that reproduces the same choices and can be edited.
    pub fn choices(&self) -> &Table {
        &self.choices
    }

    /// The memory that it needs.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The location of a tensor of the program; `None` if no step uses it, or if it belongs to another graph.
    pub fn location(&self, tensor: Tensor) -> Option<Location> {
        self.program.has(tensor).then(|| self.memory.tensors[tensor.index()])?
    }

    /// The location of a piece of scratch; `None` if it belongs to another plan.
    pub fn scratch_location(&self, scratch: ScratchId) -> Option<Location> {
        self.memory.scratch.get(scratch.index()).copied()
    }

    /// The weights that the steps read, in the layouts that they are read in.
    pub fn weights(&self) -> &[PlannedWeight] {
        &self.weights
    }

    /// The tensors of a role, in the graph's order; of a state only the first version.
    pub fn tensors(&self, role: Role) -> impl Iterator<Item = Tensor> {
        let is = move |&tensor: &Tensor| {
            let info = self.program.info(tensor);
            info.role == role && info.state.is_none()
        };
        self.program.handles().filter(is)
    }

    /// The tensor of that name, if the graph has one; the first if there are several.
    pub fn tensor(&self, name: &str) -> Option<Tensor> {
        self.program.handles().find(|&tensor| self.program.info(tensor).name == name)
    }
}

/// The weights that steps read.
fn weights(program: &Program, layout: &dyn Fn(Family) -> WeightLayout) -> Vec<PlannedWeight> {
    let mut layouts: Vec<Option<[bool; 2]>> = vec![None; program.tensors().len()];
    for step in program.steps() {
        let layout = layout(step.op.family());
        for tensor in step.op.reads() {
            let info = program.info(tensor);
            if info.role == Role::Weight {
                let needed = layouts[tensor.index()].get_or_insert([false; 2]);
                if let Element::Weights(_) = info.ty.element {
                    needed[usize::from(layout == WeightLayout::Planes)] = true;
                }
            }
        }
    }
    let needed = program.handles().zip(layouts);
    needed
        .filter_map(|(tensor, needed)| {
            let layouts = [WeightLayout::Rows, WeightLayout::Planes].into_iter().zip(needed?);
            let layouts = layouts.filter(|&(_, needed)| needed).map(|(layout, _)| layout).collect();
            Some(PlannedWeight { tensor, layouts })
        })
        .collect()
}
