//! A plan with the memory of a device: where each tensor is, and every launch ready.

use super::error::ExecuteError;
use super::store::Store;
use crate::graph::{Role, Tensor};
use crate::launch::{Action, ArgSource, PlannedLaunch, WeightLayout, planes};
use crate::plan::{Location, Plan};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, PreparedLaunch, RuntimeError, Stream};

/// What a library step does, ready to be issued.
pub(crate) enum Ready {
    /// A launch.
    Launch(PreparedLaunch),
    /// A copy.
    Copy {
        /// From here.
        from: AnyBuffer,
        /// To here.
        to: AnyBuffer,
    },
}

/// A plan in memory.
pub(crate) struct Bound {
    pub(crate) plan: Arc<Plan>,
    pub(crate) stream: Stream,
    /// What each tensor of the program consists of; nothing of tensors that no step has, and of matrices of weights.
    parts: Vec<Vec<AnyBuffer>>,
    matrices: HashMap<(Tensor, WeightLayout), AnyBuffer>,
    /// By step.
    pub(crate) ready: Vec<Vec<Ready>>,
    /// Scratch that is zero between launches.
    zeroed: Option<AnyBuffer>,
    /// The device's number of failures when that was cleared last.
    failures: AtomicU64,
}

impl Bound {
    /// Binds a plan to a store: lays out weights, makes states, allocates, builds and prepares.
    pub(super) fn new(plan: Arc<Plan>, store: &mut Store) -> Result<Self, ExecuteError> {
        let (given, needed) = (plan.options().arch, store.device().properties().arch);
        if given != needed {
            return Err(ExecuteError::Arch { given, needed });
        }
        let stream = store.stream().clone();
        let mut matrices = HashMap::new();
        let mut parts = vec![Vec::new(); plan.program().tensors().len()];
        for weight in plan.weights() {
            let info = plan.program().info(weight.tensor);
            for &layout in &weight.layouts {
                let buffer = store.laid_out(&info.name, info.ty, layout)?;
                matrices.insert((weight.tensor, layout), buffer);
            }
            if weight.layouts.is_empty() {
                parts[weight.tensor.index()] = vec![store.vector(&info.name, info.ty)?];
            }
        }
        for state in plan.tensors(Role::State) {
            let info = plan.program().info(state);
            parts[state.index()] = store.state(&info.name, info.ty)?;
        }
        let memory = plan.memory();
        let arena = allocate(&stream, memory.arena_bytes, "the plan's memory")?;
        let zeroed = allocate(&stream, memory.zeroed_bytes, "the plan's scratch")?;
        let failures = AtomicU64::new(stream.device().failures());
        let mut bound = Bound { plan, stream, parts, matrices, ready: Vec::new(), zeroed, failures };
        bound.clear_scratch()?;
        bound.place(arena.as_ref())?;
        let plan = bound.plan.clone();
        for (step, planned) in plan.steps().iter().enumerate() {
            let ready = planned.actions.iter().map(|action| bound.prepare(action, arena.as_ref()));
            let ready = ready.collect::<Result<_, _>>().map_err(|error| bound.at_step(step, error))?;
            bound.ready.push(ready);
        }
        Ok(bound)
    }

    /// Sets the scratch to zero that kernels leave zero, unless they fail.
    fn clear_scratch(&self) -> Result<(), RuntimeError> {
        match &self.zeroed {
            Some(zeroed) => self.stream.memset_any(zeroed, 0),
            None => Ok(()),
        }
    }

    /// Clears scratch where something has failed on the device since the last time: what comes now does not depend
    /// on what the failure has left, whoever was told of it.
    pub(super) fn recover(&self) -> Result<(), RuntimeError> {
        let failures = self.stream.device().failures();
        if self.failures.swap(failures, Relaxed) != failures {
            self.clear_scratch()?;
        }
        Ok(())
    }

    /// Finds the parts of what is in the arena, and of versions of states.
    fn place(&mut self, arena: Option<&AnyBuffer>) -> Result<(), ExecuteError> {
        let plan = self.plan.clone();
        for tensor in plan.program().handles() {
            self.parts[tensor.index()] = match plan.location(tensor) {
                Some(Location::Arena(offset)) => {
                    let parts = planes(plan.program().ty(tensor)).into_iter();
                    let part = |plane: crate::launch::Plane| {
                        range(arena, offset + plane.offset, plane.bytes(), plane.dtype)
                    };
                    parts.map(part).collect::<Result<_, _>>()?
                }
                Some(Location::State(state)) if state != tensor => self.parts[state.index()].clone(),
                _ => continue,
            };
        }
        Ok(())
    }

    fn prepare(&self, action: &Action, arena: Option<&AnyBuffer>) -> Result<Ready, ExecuteError> {
        match action {
            Action::Launch(launch) => Ok(Ready::Launch(self.prepare_launch(launch, arena)?)),
            Action::Copy { from, to } => match (self.parts(*from)?, self.parts(*to)?) {
                ([from], [to]) => Ok(Ready::Copy { from: from.clone(), to: to.clone() }),
                _ => Err(self.no_buffer(*from)),
            },
        }
    }

    fn prepare_launch(
        &self,
        launch: &PlannedLaunch,
        arena: Option<&AnyBuffer>,
    ) -> Result<PreparedLaunch, ExecuteError> {
        let kernel = self.stream.device().kernel(&**launch.kernel.kernel())?;
        let mut binder = kernel.bind();
        for (&(name, source), desc) in launch.args.iter().zip(launch.kernel.args()) {
            binder = match source {
                ArgSource::U32(value) => binder.scalar(name, value),
                ArgSource::F32(value) => binder.scalar(name, value),
                ArgSource::Weights { tensor, layout } => {
                    // Weights that are floats are taken as such.
                    binder.buffer(name, self.matrix(tensor, layout)?.cast(desc.dtype)?)
                }
                ArgSource::Tensor { tensor, plane, at, len } => {
                    let part = self.parts(tensor)?.get(plane).ok_or_else(|| self.no_buffer(tensor))?;
                    let size = u64::from(desc.dtype.bytes());
                    binder.buffer(name, range(Some(part), at * size, len * size, desc.dtype)?)
                }
                ArgSource::Scratch(id) => {
                    let bytes = self.plan.scratch().get(id.index()).map_or(0, |scratch| scratch.bytes());
                    let (memory, offset) = match self.plan.scratch_location(id) {
                        Some(Location::Arena(offset)) => (arena, offset),
                        Some(Location::Zeroed(offset)) => (self.zeroed.as_ref(), offset),
                        _ => (None, 0),
                    };
                    binder.buffer(name, range(memory, offset, bytes, desc.dtype)?)
                }
            };
        }
        for &(name, count) in &launch.dims {
            binder = binder.dim(name, count);
        }
        Ok(binder.prepare()?)
    }

    /// What a tensor consists of, in the order of [`planes`].
    pub(crate) fn parts(&self, tensor: Tensor) -> Result<&[AnyBuffer], ExecuteError> {
        match self.parts.get(tensor.index()) {
            Some(parts) if !parts.is_empty() => Ok(parts),
            _ => Err(self.no_buffer(tensor)),
        }
    }

    /// A matrix of weights in a layout.
    pub(crate) fn matrix(&self, tensor: Tensor, layout: WeightLayout) -> Result<&AnyBuffer, ExecuteError> {
        let missing = || ExecuteError::Layout { name: self.name(tensor), layout };
        self.matrices.get(&(tensor, layout)).ok_or_else(missing)
    }

    /// Issues the library's launches for a step.
    pub(crate) fn issue(&self, step: usize) -> Result<(), RuntimeError> {
        for ready in &self.ready[step] {
            match ready {
                Ready::Launch(launch) => self.stream.launch(launch)?,
                Ready::Copy { from, to } => self.stream.memcpy_dtod_any(from, to)?,
            }
        }
        Ok(())
    }

    /// An error, with the step that it is about.
    pub(crate) fn at_step(&self, step: usize, error: ExecuteError) -> ExecuteError {
        if matches!(error, ExecuteError::Step { .. }) {
            return error;
        }
        let op = self.plan.program().steps()[step].op.name();
        ExecuteError::Step { op, nodes: self.node_names(step), error: Box::new(error) }
    }

    /// The nodes whose work a step does.
    pub(crate) fn node_names(&self, step: usize) -> Vec<String> {
        let program = self.plan.program();
        program.steps()[step].nodes.iter().map(|&node| program.node(node).0.to_owned()).collect()
    }

    pub(crate) fn name(&self, tensor: Tensor) -> String {
        self.plan.program().tensors().get(tensor.index()).map(|info| info.name.clone()).unwrap_or_default()
    }

    fn no_buffer(&self, tensor: Tensor) -> ExecuteError {
        ExecuteError::NoBuffer { name: self.name(tensor) }
    }
}

/// Memory of a size; none for no bytes.
fn allocate(stream: &Stream, bytes: u64, what: &'static str) -> Result<Option<AnyBuffer>, ExecuteError> {
    if bytes == 0 {
        return Ok(None);
    }
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    let buffer = stream.alloc::<u8>(len);
    let buffer = buffer.map_err(|error| ExecuteError::Memory { what, bytes, error: Box::new(error) })?;
    Ok(Some(buffer.into_any()))
}

/// Bytes of memory as elements of a type.
fn range(memory: Option<&AnyBuffer>, offset: u64, bytes: u64, ty: Type) -> Result<AnyBuffer, RuntimeError> {
    let (start, end) = (offset as usize, offset.saturating_add(bytes) as usize);
    let memory = memory.ok_or(RuntimeError::Range { start, end, len: 0 })?;
    memory.cast(Type::U8)?.slice(start..end)?.cast(ty)
}

#[cfg(test)]
mod tests {
    use crate::dispatch::KernelLibrary;
    use crate::graph::{ComputeGraph, TensorType};
    use crate::options::PlanOptions;
    use crate::plan::Plan;
    use crate::run::{Store, execute_graph};
    use warpwright_ptx::dsl::{ArgDesc, K, Kernel, LaunchRule};
    use warpwright_runtime::{Device, VmConfig};

    struct Fails;

    impl Kernel for Fails {
        fn entry(&self) -> String {
            "fails".into()
        }

        fn args(&self) -> Vec<ArgDesc> {
            Vec::new()
        }

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32)
        }

        fn body(&self, k: K<'_>) {
            k.trap();
        }
    }

    /// Counters that a failed kernel has left are zero again before the next execution or replay, also where somebody
    /// else was told of the failure.
    #[test]
    fn what_a_failure_has_left_is_cleared() {
        let device = Device::vm(VmConfig::default()).expect("a device");
        let mut graph = ComputeGraph::new();
        let n = 1 << 16;
        let x = graph.input("x", TensorType::f32([1, n]));
        let best = graph.argmax("best", x).expect("an index");
        graph.output(best).expect("an output");
        let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
        let stream = device.default_stream();
        let mut executable = plan.bind(&mut Store::new(&stream)).expect("bound");
        let values: Vec<f32> = (0..n).map(|i| if i == 40_000 { 1.0 } else { 0.0 }).collect();
        executable.write_input("x", &values).expect("written");

        let scratch = executable.bound().zeroed.clone().expect("scratch of blocks that merge");
        let fail = || {
            stream.memset_any(&scratch, 0xff).expect("issued");
            let kernel = device.kernel(&Fails).expect("a kernel");
            kernel.bind().launch(&stream).expect("issued");
            assert!(stream.synchronize().is_err());
        };
        fail();
        execute_graph(&mut executable, &KernelLibrary).expect("executed");
        assert_eq!(executable.read_output::<u32>("best").expect("best"), [40_000]);

        let captured = executable.capture(&KernelLibrary).expect("captured");
        fail();
        for _ in 0..2 {
            captured.replay().expect("replayed");
            assert_eq!(captured.executable().read_output::<u32>("best").expect("best"), [40_000]);
        }
    }
}
