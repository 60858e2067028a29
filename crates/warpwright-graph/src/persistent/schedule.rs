//! Schedules: ops, their instances, and the phases and stages of these.

use super::error::ScheduleError;
use super::form;
use super::parts::Parts;
use crate::graph::Tensor;
use crate::launch::ArgSource;
use crate::plan::Plan;
use crate::program::StepOp;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, any::AnyKernel};
use warpwright_kernels::Publish;
use warpwright_kernels::persistent::Op;
use warpwright_kernels::tune::{ScheduleChoice, ScheduleShape};

/// The work of a plan's step as phases and stages, for a persistent kernel. It is data: [`assign`](Schedule::assign)
/// distributes it to blocks, and [`check`](super::check) compares the result with the plan.
///
/// ```
/// use warpwright_graph::persistent::{Schedule, ScheduleOptions, check};
/// use warpwright_graph::{ComputeGraph, Element, KernelLibrary, Plan, PlanOptions, TensorType};
/// use warpwright_kernels::WeightFormat;
/// use warpwright_kernels::persistent::Assignment;
/// use warpwright_ptx::ir::Arch;
/// ///
/// let mut graph = ComputeGraph::new();
/// let x = graph.input("x", TensorType::f32([1, 256]));
/// let matrix = TensorType::new(Element::Weights(WeightFormat::Q8_0), [512, 256]);
/// let (up, down) = (graph.weight("up", matrix), graph.weight("down", TensorType::new(matrix.element, [256, 512])));
/// let h = graph.mat_mul("h", x, up, None)?;
/// let y = graph.mat_mul("y", h, down, None)?;
/// graph.output(y)?;
///
/// let plan = Plan::new(&graph, &PlanOptions::new(Arch::sm(90), 132), &KernelLibrary)?;
/// let schedule = Schedule::new(&plan, &ScheduleOptions::default())?;
/// // The second product needs all of the first.
/// assert_eq!(schedule.phases.len(), 2);
/// let assigned = schedule.assign(16, Assignment::Static)?;
/// check(&schedule, &plan, &assigned)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Schedule {
    /// The ops that the decoder needs, each once, in the order of their first use.
    pub ops: Vec<Op>,
    /// The instances of a token, in the order of the plan.
    pub instances: Vec<Instance>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Warps of a block of the decoder.
    pub warps: u32,
    /// The costs of work on the plan's device.
    pub costs: ScheduleChoice,
}

/// How a schedule is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScheduleOptions {
    /// Warps of a block of the decoder: a power of two up to 8.
    pub warps: u32,
    /// Launches after the plan's work, such as publishing the token to the host.
    pub appended: Vec<Appended>,
}

impl Default for ScheduleOptions {
    /// Eight warps, and nothing after the plan's work.
    fn default() -> Self {
        ScheduleOptions { warps: 8, appended: Vec::new() }
    }
}

/// A launch that is not part of the plan and runs after it.
#[derive(Clone)]
pub struct Appended {
    /// The kernel.
    pub kernel: Arc<dyn AnyKernel + Send + Sync>,
    /// Its arguments by name, in its order.
    pub args: Vec<(&'static str, Operand)>,
    /// Numbers that lengths and the grid depend on, in addition to scalar arguments.
    pub dims: Vec<(&'static str, u64)>,
}

impl fmt::Debug for Appended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appended").field("kernel", &self.kernel.entry()).field("args", &self.args).finish()
    }
}

/// The operand of an instance's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operand {
    /// An argument of the plan, in the plan's memory, or a number.
    Plan(ArgSource),
    /// A buffer of this name that is not part of the plan; provide it when you bind the schedule.
    External(&'static str),
}

/// The origin of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// An action of a step of the plan, or a part of it.
    Plan {
        /// The step's place in the program.
        step: usize,
        /// The action's place in the step.
        action: usize,
    },
    /// A launch after the plan's: an index into [`ScheduleOptions::appended`].
    Appended(usize),
}

/// A launch of the plan, or a part of one that does not depend on the others.
#[derive(Clone)]
pub struct Instance {
    /// The call: the kernel and its piece, with the numbers of its record.
    pub call: Op,
    /// Its op: an index into [`Schedule::ops`].
    pub op: usize,
    /// The arguments of the launch by name, in the kernel's order. A piece takes those of [`Op::args`].
    pub args: Vec<(&'static str, Operand)>,
    /// Numbers that lengths and the grid depend on, in addition to scalar arguments.
    pub dims: Vec<(&'static str, u64)>,
    /// The grid, in tiles.
    pub grid: [u32; 3],
    /// Bytes that it moves, as [`PlannedLaunch::bytes`](crate::PlannedLaunch::bytes) counts them.
    pub bytes: u64,
    /// Bytes of matrices of products among them.
    pub weight_bytes: u64,
    /// Whether all blocks should share in it, so that what depends on it is in a later phase: it reads matrices or
    /// caches, which grow with the model and the context, or moves as much as a device does in the time of a barrier.
    pub large: bool,
    /// Whose work it does.
    pub origin: Origin,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("call", &self.call)
            .field("op", &self.op)
            .field("args", &self.args)
            .field("grid", &self.grid)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// Tiles of its grid.
    pub fn tiles(&self) -> u64 {
        self.grid.iter().fold(1, |tiles, &extent| tiles * u64::from(extent))
    }

    /// The entry of its kernel, for people.
    pub fn kernel(&self) -> String {
        self.call.name()
    }

    /// The arguments that it takes, in the order of its record, with what they are.
    pub fn operands(&self) -> impl Iterator<Item = (&ArgDesc, Operand)> {
        self.call.args().filter_map(|desc| {
            let &(_, operand) = self.args.iter().find(|(name, _)| *name == desc.name)?;
            Some((desc, operand))
        })
    }
}

/// What happens between two barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// One after the other: never none.
    pub stages: Vec<Stage>,
}

/// What can happen at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Places in [`Schedule::instances`]: never none.
    pub instances: Vec<usize>,
}

impl Schedule {
    /// The schedule of a plan.
    ///
    /// # Errors
    ///
    /// If a persistent kernel cannot run the plan: see [`ScheduleError`].
    pub fn new(plan: &Plan, options: &ScheduleOptions) -> Result<Self, ScheduleError> {
        if !matches!(options.warps, 1 | 2 | 4 | 8) {
            return Err(ScheduleError::BlockWarps { warps: options.warps });
        }
        let costs = plan.options().tuning.choose(&ScheduleShape {});
        let instances = Parts::new(plan, options.warps, costs.large)?.instances(&options.appended)?;
        let phases = form::phases(plan, &instances);
        let mut schedule = Schedule { ops: Vec::new(), instances, phases, warps: options.warps, costs };
        schedule.find_ops();
        Ok(schedule)
    }

    /// Gives each instance its code.
    fn find_ops(&mut self) {
        for instance in &mut self.instances {
            let known = self.ops.iter().position(|op| *op == instance.call);
            instance.op = known.unwrap_or_else(|| {
                self.ops.push(instance.call.clone());
                self.ops.len() - 1
            });
        }
    }

    /// Grid barriers of a token: one behind each phase.
    pub fn barriers(&self) -> usize {
        self.phases.len()
    }

    /// Bytes that a token moves, according to the arguments of its instances.
    pub fn bytes(&self) -> u64 {
        self.instances.iter().fold(0, |sum, instance| sum.saturating_add(instance.bytes))
    }

    /// Bytes of the matrices of products that a token reads.
    pub fn weight_bytes(&self) -> u64 {
        self.instances.iter().fold(0, |sum, instance| sum.saturating_add(instance.weight_bytes))
    }
}

impl Appended {
    /// The launch that hands the token of a plan to the host, and says whether another one follows: the token is what the
    /// plan's last step that chooses one makes; the other buffers are [`Operand::External`], by the names of the kernel's
    /// arguments. `None` where the plan chooses no token.
    pub fn publish(plan: &Plan, kernel: Publish) -> Option<Self> {
        let chosen = plan.program().steps().iter().rev().find_map(|step| match step.op {
            StepOp::ArgMax { out, .. } | StepOp::Sample { out, .. } => Some(out),
            _ => None,
        });
        chosen.map(|token| Appended::publish_token(token, kernel))
    }

    /// The same of the one `u32` of a tensor of the plan.
    pub fn publish_token(token: Tensor, kernel: Publish) -> Self {
        let token = ArgSource::Tensor { tensor: token, plane: 0, at: 0, len: 1 };
        let args = kernel.args().into_iter().map(|desc| match desc.name {
            "tokens" => (desc.name, Operand::Plan(token)),
            name => (name, Operand::External(name)),
        });
        let args = args.collect();
        Appended { kernel: Arc::new(kernel), args, dims: Vec::new() }
    }
}
