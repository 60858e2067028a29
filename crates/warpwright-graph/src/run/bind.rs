//! A plan with every launch prepared, in the memory of a device.

use super::error::ExecuteError;
use super::placed::{BoundArg, Placed};
use super::store::Store;
use crate::launch::{Action, PlannedLaunch};
use crate::plan::Plan;
use std::sync::Arc;
use warpwright_runtime::{AnyBuffer, PreparedLaunch, RuntimeError};

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

/// A plan whose launches are ready.
pub(crate) struct Bound {
    pub(crate) placed: Placed,
    /// By step.
    pub(crate) ready: Vec<Vec<Ready>>,
}

impl Bound {
    /// Binds a plan to a store: finds its memory, builds its kernels and prepares their launches.
    pub(super) fn new(plan: Arc<Plan>, store: &mut Store) -> Result<Self, ExecuteError> {
        let placed = Placed::new(plan, store)?;
        let steps = placed.plan.steps().iter().enumerate();
        let ready = steps.map(|(step, planned)| {
            let ready = planned.actions.iter().map(|action| prepare(&placed, action));
            ready.collect::<Result<_, _>>().map_err(|error| placed.at_step(step, error))
        });
        let ready = ready.collect::<Result<_, _>>()?;
        Ok(Bound { placed, ready })
    }

    /// Issues the library's launches for a step.
    pub(crate) fn issue(&self, step: usize) -> Result<(), RuntimeError> {
        let stream = &self.placed.stream;
        for ready in &self.ready[step] {
            match ready {
                Ready::Launch(launch) => stream.launch(launch)?,
                Ready::Copy { from, to } => stream.memcpy_dtod_any(from, to)?,
            }
        }
        Ok(())
    }
}

fn prepare(placed: &Placed, action: &Action) -> Result<Ready, ExecuteError> {
    match action {
        Action::Launch(launch) => Ok(Ready::Launch(prepare_launch(placed, launch)?)),
        Action::Copy { from, to } => match (placed.parts(*from)?, placed.parts(*to)?) {
            ([from], [to]) => Ok(Ready::Copy { from: from.clone(), to: to.clone() }),
            _ => Err(placed.no_buffer(*from)),
        },
    }
}

fn prepare_launch(placed: &Placed, launch: &PlannedLaunch) -> Result<PreparedLaunch, ExecuteError> {
    let kernel = placed.stream.device().kernel(&**launch.kernel.kernel())?;
    let mut binder = kernel.bind().dependent(launch.overlaps);
    for (&(name, source), desc) in launch.args.iter().zip(launch.kernel.args()) {
        binder = match placed.bound_arg(source, desc.dtype)? {
            BoundArg::Buffer(buffer) => binder.buffer(name, buffer),
            BoundArg::U32(value) => binder.scalar(name, value),
            BoundArg::F32(value) => binder.scalar(name, value),
        };
    }
    for &(name, count) in &launch.dims {
        binder = binder.dim(name, count);
    }
    Ok(binder.prepare()?)
}

#[cfg(test)]
mod tests {
    use crate::dispatch::KernelLibrary;
    use crate::graph::{ComputeGraph, TensorType};
    use crate::options::PlanOptions;
    use crate::plan::Plan;
    use crate::run::{Store, execute_graph};
    use warpwright_dsl::{ArgDesc, K, LaunchRule, any::AnyKernel};
    use warpwright_runtime::{Device, VmConfig};

    struct Fails;

    impl AnyKernel for Fails {
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

        let scratch = executable.placed().zeroed().cloned().expect("scratch of blocks that merge");
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
