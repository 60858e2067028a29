//! Conversion of launches to instances: each launch, or each piece of its grid if its kernel's body divides it.
//!
//! A copy is an instance of the library's copy kernel. Launches that a persistent kernel cannot do are refused here,
//! with the reason.

use super::error::ScheduleError;
use super::schedule::{Appended, Instance, Operand, Origin};
use crate::graph::{AttentionMode, Element, Tensor};
use crate::launch::{Action, ArgSource, PlannedLaunch, WeightLayout, planes};
use crate::plan::Plan;
use crate::program::StepOp;
use std::collections::HashMap;
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, Key, Role, any::AnyKernel};
use warpwright_kernels::CopyBytes;
use warpwright_kernels::persistent::Op;

/// What makes instances of a plan's launches. How a kernel is called is found once for each configuration.
pub(super) struct Parts<'a> {
    plan: &'a Plan,
    /// Warps of a block.
    warps: u32,
    /// Bytes from which on work is shared by all blocks.
    large: u64,
    known: HashMap<Key, Arc<[Op]>>,
}

type Shared = Arc<dyn AnyKernel + Send + Sync>;

/// The arguments of a launch or of a piece of one: operands by name, and numbers.
type CallArgs<'g> = (&'g [(&'static str, Operand)], &'g [(&'static str, u64)]);

impl<'a> Parts<'a> {
    pub(super) fn new(plan: &'a Plan, warps: u32, large: u64) -> Result<Self, ScheduleError> {
        supported(plan)?;
        Ok(Parts { plan, warps, large, known: HashMap::new() })
    }

    /// The same, with what is known of how some kernels are called. An op tells what it was made of, whoever has it: it
    /// is as good as one that is made anew where it is for the plan's architecture, and for teams of such blocks.
    pub(super) fn knowing<'i>(mut self, instances: impl IntoIterator<Item = &'i Instance>) -> Self {
        let mut found: HashMap<Key, Vec<&Op>> = HashMap::new();
        for Instance { call, .. } in instances {
            let suits = call.target() == self.plan.options().arch() && call.block_warps() == self.warps;
            if let Some(key) = call.kernel().key().filter(|_| suits) {
                found.entry(key).or_default().push(call);
            }
        }
        for (key, mut calls) in found {
            calls.sort_by_key(|call| call.piece());
            calls.dedup_by_key(|call| call.piece());
            // A body that is not in pieces is one; of one that is, all must be there.
            if calls.len() == calls[0].pieces().max(1) {
                self.known.insert(key, calls.into_iter().cloned().collect());
            }
        }
        self
    }

    /// The instances of all launches, and of what comes after them.
    pub(super) fn instances(mut self, appended: &[Appended]) -> Result<Vec<Instance>, ScheduleError> {
        let mut instances = Vec::new();
        for (step, planned) in self.plan.steps().iter().enumerate() {
            for (action, what) in planned.actions.iter().enumerate() {
                let origin = Origin::Plan { step, action };
                match what {
                    Action::Launch(launch) => {
                        let calls = self.calls(launch.kernel.kernel())?;
                        self.launch(launch, &calls, origin, &mut instances)?;
                    }
                    Action::Copy { from, to } => instances.push(self.copy([*from, *to], origin)?),
                }
            }
        }
        for (i, launch) in appended.iter().enumerate() {
            let given = (&launch.args[..], &launch.dims[..]);
            for call in self.calls(&launch.kernel)?.iter() {
                instances.push(self.instance(call, given, Origin::Appended(i))?);
            }
        }
        Ok(instances)
    }

    /// How a kernel is called, piece by piece.
    fn calls(&mut self, kernel: &Shared) -> Result<Arc<[Op]>, ScheduleError> {
        let key = kernel.key();
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(Arc::clone(known));
        }
        let refused = |error| ScheduleError::Op { kernel: kernel.entry(), error };
        let calls: Arc<[Op]> =
            Op::of(kernel, self.warps, self.plan.options().arch()).map_err(refused)?.into();
        if let Some(key) = key {
            self.known.insert(key, Arc::clone(&calls));
        }
        Ok(calls)
    }

    fn launch(
        &self,
        launch: &PlannedLaunch,
        calls: &[Op],
        origin: Origin,
        instances: &mut Vec<Instance>,
    ) -> Result<(), ScheduleError> {
        let args: Vec<_> = launch.args.iter().map(|&(name, source)| (name, Operand::Plan(source))).collect();
        for call in calls {
            let mut instance = self.instance(call, (&args, &launch.dims), origin)?;
            // A plan knows how much of a table or a cache is touched.
            if calls.len() == 1 {
                instance.bytes = launch.bytes;
            }
            instance.large |= instance.bytes >= self.large;
            instances.push(instance);
        }
        Ok(())
    }

    /// A copy of the bytes of a tensor.
    fn copy(&mut self, tensors: [Tensor; 2], origin: Origin) -> Result<Instance, ScheduleError> {
        let program = self.plan.program();
        let name = |tensor: Tensor| program.info(tensor).name.clone();
        let [from, to] = tensors;
        let [Some(bytes), Some(there)] = tensors.map(|tensor| match planes(program.ty(tensor))[..] {
            [plane] => Some(plane.bytes()),
            _ => None,
        }) else {
            return Err(ScheduleError::Copy { from: name(from), to: name(to) });
        };
        if bytes != there {
            return Err(ScheduleError::Copy { from: name(from), to: name(to) });
        }
        let kernel: Shared = Arc::new(CopyBytes::new(bytes));
        let part = |tensor| Operand::Plan(ArgSource::Tensor { tensor, plane: 0, at: 0, len: bytes });
        let args = [("x", part(from)), ("y", part(to))];
        match &self.calls(&kernel)?[..] {
            [only] => self.instance(only, (&args, &[]), origin),
            _ => Err(ScheduleError::Copy { from: name(from), to: name(to) }),
        }
    }

    /// An instance of a call, with the arguments of its launch.
    fn instance(
        &self,
        call: &Op,
        (given, dims): CallArgs<'_>,
        origin: Origin,
    ) -> Result<Instance, ScheduleError> {
        let kernel = || call.name();
        let operand = |name: &'static str| {
            let found = given.iter().find(|(given, _)| *given == name).map(|&(_, operand)| operand);
            found.ok_or_else(|| ScheduleError::Missing { kernel: kernel(), argument: name })
        };
        let args = call.kernel().args().into_iter().map(|desc| Ok((desc.name, operand(desc.name)?)));
        let args = args.collect::<Result<Vec<_>, ScheduleError>>()?;
        let (mut bytes, mut weight_bytes, mut large) = (0u64, 0u64, false);
        for desc in call.args() {
            let operand = operand(desc.name)?;
            let len = self.bytes(&operand, desc);
            let times = match desc.role {
                Role::Scalar => 0,
                Role::In | Role::Out => 1,
                Role::InOut => 2,
            };
            bytes = bytes.saturating_add(len.saturating_mul(times));
            match operand {
                Operand::Plan(ArgSource::Weights { layout: WeightLayout::Planes, .. }) => {
                    weight_bytes = weight_bytes.saturating_add(len);
                    large = true;
                }
                Operand::Plan(ArgSource::Tensor { tensor, .. }) if desc.role != Role::Out => {
                    large |= matches!(self.plan.program().ty(tensor).element, Element::Cache(_));
                }
                _ => {}
            }
            if desc.constant && !self.is_constant(&operand) {
                return Err(ScheduleError::NotConstant { kernel: kernel(), argument: desc.name });
            }
        }
        let number = |name: &str| {
            let arg = args.iter().find_map(|&(arg, operand)| match operand {
                Operand::Plan(ArgSource::U32(value)) if arg == name => Some(u64::from(value)),
                _ => None,
            });
            arg.or_else(|| dims.iter().find(|(dim, _)| *dim == name).map(|&(_, value)| value))
        };
        let grid = call.grid(number).ok_or_else(|| ScheduleError::Grid { kernel: kernel() })?;
        let tiles = grid.iter().try_fold(1u32, |tiles, &extent| tiles.checked_mul(extent));
        if tiles.is_none_or(|tiles| tiles == 0) {
            return Err(ScheduleError::Grid { kernel: kernel() });
        }
        let (call, dims) = (call.clone(), dims.to_vec());
        Ok(Instance { call, op: 0, args, dims, grid, bytes, weight_bytes, large, origin })
    }

    /// Whether an operand is read-only while the decoder runs: weights, and buffers outside the plan.
    fn is_constant(&self, operand: &Operand) -> bool {
        match *operand {
            Operand::Plan(ArgSource::Tensor { tensor, .. }) => {
                self.plan.program().info(tensor).role == crate::graph::Role::Weight
            }
            Operand::Plan(ArgSource::Scratch(_)) => false,
            Operand::Plan(_) | Operand::External(_) => true,
        }
    }

    /// Bytes of an argument.
    fn bytes(&self, operand: &Operand, desc: &ArgDesc) -> u64 {
        match *operand {
            Operand::Plan(ArgSource::Tensor { len, .. }) => len.saturating_mul(desc.dtype.bytes().into()),
            Operand::Plan(ArgSource::Weights { tensor, layout }) => {
                let ty = self.plan.program().ty(tensor);
                match (ty.element, u32::try_from(ty.shape.rows())) {
                    (Element::Weights(format), Ok(n)) => layout.bytes(format, n, ty.shape.columns()),
                    _ => 0,
                }
            }
            Operand::Plan(ArgSource::Scratch(id)) => {
                self.plan.scratch().get(id.index()).map_or(0, |scratch| scratch.bytes())
            }
            _ => 0,
        }
    }
}

/// Whether a plan is one of a token of one sequence, with the library's launches for all of it.
fn supported(plan: &Plan) -> Result<(), ScheduleError> {
    let program = plan.program();
    let nodes = |step: usize| {
        let nodes = program.steps()[step].nodes.iter();
        nodes.map(|&node| program.node(node).0.to_owned()).collect::<Vec<_>>()
    };
    for (i, (step, planned)) in program.steps().iter().zip(plan.steps()).enumerate() {
        let op = step.op.name();
        if planned.overridden {
            return Err(ScheduleError::Overridden { nodes: nodes(i), step: op });
        }
        match &step.op {
            StepOp::Attention(attention) => {
                if attention.params.mode == AttentionMode::Prefill {
                    return Err(ScheduleError::Prompt { nodes: nodes(i) });
                }
                let sequences = program.ty(attention.k_cache).shape.dims().first().copied().unwrap_or(1);
                if sequences > 1 {
                    return Err(ScheduleError::Batch { nodes: nodes(i), tokens: sequences.into() });
                }
            }
            StepOp::Products(products) => {
                let tokens = program.ty(products.x).shape.rows();
                if tokens > 1 {
                    return Err(ScheduleError::Batch { nodes: nodes(i), tokens });
                }
            }
            _ => {}
        }
    }
    Ok(())
}
