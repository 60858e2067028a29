//! From launches to instances: each launch as it is, or as what its kernel has blocks of this size call in its place.
//!
//! A copy is an instance of the library's kernel for copies. What a resident launch cannot do is refused here, by what
//! stands against it.

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

/// A kernel that is called for a launch, with each of its arguments by the launch's name for it.
#[derive(Clone)]
struct Part {
    kernel: Arc<dyn AnyKernel + Send + Sync>,
    args: Vec<(ArgDesc, &'static str)>,
}

/// What makes instances of a plan's launches; what kernels say of themselves is asked once for each configuration.
pub(super) struct Parts<'a> {
    plan: &'a Plan,
    threads: u32,
    known: HashMap<Key, Arc<[Part]>>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(plan: &'a Plan, warps: u32) -> Result<Self, ScheduleError> {
        supported(plan)?;
        Ok(Parts { plan, threads: 32 * warps, known: HashMap::new() })
    }

    /// The instances of all launches, and of what comes after them.
    pub(super) fn instances(mut self, appended: &[Appended]) -> Result<Vec<Instance>, ScheduleError> {
        let mut instances = Vec::new();
        for (step, planned) in self.plan.steps().iter().enumerate() {
            for (action, what) in planned.actions.iter().enumerate() {
                let origin = Origin::Plan { step, action };
                match what {
                    Action::Launch(launch) => {
                        let kernel = launch.kernel.kernel();
                        let parts = self.parts(kernel)?;
                        self.launch(launch, &parts, origin, &mut instances)?;
                    }
                    Action::Copy { from, to } => instances.push(self.copy([*from, *to], origin)?),
                }
            }
        }
        for (i, launch) in appended.iter().enumerate() {
            let parts = self.parts(&launch.kernel)?;
            for part in parts.iter() {
                let instance = self.instance(part, &launch.args, &launch.dims, Origin::Appended(i))?;
                instances.push(instance);
            }
        }
        Ok(instances)
    }

    /// What is called for a kernel.
    fn parts(&mut self, kernel: &Arc<dyn AnyKernel + Send + Sync>) -> Result<Arc<[Part]>, ScheduleError> {
        let key = kernel.key();
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(Arc::clone(known));
        }
        let parts = match kernel.called(self.threads) {
            None => {
                let args = kernel.args().into_iter().map(|desc| (desc.name, desc));
                let args = args.map(|(name, desc)| (desc, name)).collect();
                vec![Part { kernel: Arc::clone(kernel), args }]
            }
            Some(called) => {
                let part = |called: warpwright_dsl::Called| {
                    let of = |desc: ArgDesc| {
                        let whole =
                            called.args.iter().find(|(own, _)| *own == desc.name).map(|&(_, name)| name);
                        let lacks =
                            || ScheduleError::Called { kernel: called.kernel.entry(), argument: desc.name };
                        whole.ok_or_else(lacks).map(|name| (desc, name))
                    };
                    let args = called.kernel.args().into_iter().map(of).collect::<Result<_, _>>()?;
                    Ok(Part { kernel: Arc::clone(&called.kernel), args })
                };
                called.into_iter().map(part).collect::<Result<Vec<_>, ScheduleError>>()?
            }
        };
        let parts: Arc<[Part]> = parts.into();
        if let Some(key) = key {
            self.known.insert(key, Arc::clone(&parts));
        }
        Ok(parts)
    }

    fn launch(
        &self,
        launch: &PlannedLaunch,
        parts: &[Part],
        origin: Origin,
        instances: &mut Vec<Instance>,
    ) -> Result<(), ScheduleError> {
        let args: Vec<_> = launch.args.iter().map(|&(name, source)| (name, Operand::Plan(source))).collect();
        for part in parts {
            let mut instance = self.instance(part, &args, &launch.dims, origin)?;
            // A plan knows how much of a table or a cache is touched.
            if parts.len() == 1 {
                instance.bytes = launch.bytes;
            }
            instance.large |= instance.bytes >= LARGE;
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
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(CopyBytes::new(bytes));
        let part = |tensor| Operand::Plan(ArgSource::Tensor { tensor, plane: 0, at: 0, len: bytes });
        let args = [("x", part(from)), ("y", part(to))];
        let parts = self.parts(&kernel)?;
        match &parts[..] {
            [only] => self.instance(only, &args, &[], origin),
            _ => Err(ScheduleError::Copy { from: name(from), to: name(to) }),
        }
    }

    /// An instance of a part, with those of the launch's arguments that it takes.
    fn instance(
        &self,
        part: &Part,
        given: &[(&'static str, Operand)],
        dims: &[(&'static str, u64)],
        origin: Origin,
    ) -> Result<Instance, ScheduleError> {
        let kernel = || part.kernel.entry();
        let mut args = Vec::with_capacity(part.args.len());
        let (mut bytes, mut weight_bytes, mut large) = (0u64, 0u64, false);
        for (desc, whole) in &part.args {
            let found = given.iter().find(|(name, _)| name == whole).map(|&(_, operand)| operand);
            let lacks = || ScheduleError::Called { kernel: kernel(), argument: desc.name };
            let operand = found.ok_or_else(lacks)?;
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
            args.push((desc.name, operand));
        }
        let known = |name: &str| {
            let number = args.iter().find_map(|&(arg, operand)| match operand {
                Operand::Plan(ArgSource::U32(value)) if arg == name => Some(u64::from(value)),
                _ => None,
            });
            number.or_else(|| dims.iter().find(|(dim, _)| *dim == name).map(|&(_, value)| value))
        };
        let mut grid = [0; 3];
        for (extent, rule) in grid.iter_mut().zip(part.kernel.launch().grid) {
            let blocks = rule.evaluate(known).and_then(|blocks| u32::try_from(blocks).ok());
            *extent = blocks.ok_or_else(|| ScheduleError::Grid { kernel: kernel() })?;
        }
        let tiles = grid.iter().try_fold(1u32, |tiles, &extent| tiles.checked_mul(extent));
        if tiles.is_none_or(|tiles| tiles == 0) {
            return Err(ScheduleError::Grid { kernel: kernel() });
        }
        Ok(Instance {
            kernel: Arc::clone(&part.kernel),
            op: 0,
            args,
            dims: dims.to_vec(),
            grid,
            bytes,
            weight_bytes,
            large,
            origin,
        })
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

/// Bytes that a large device moves in a microsecond, which is about what a barrier takes.
const LARGE: u64 = 4 << 20;

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
