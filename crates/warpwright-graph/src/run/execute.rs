//! Execution step by step, and its statistics.

use super::error::ExecuteError;
use super::executable::Executable;
use crate::dispatch::KernelDispatch;
use std::time::Duration;
use warpwright_runtime::DeviceStatistics;

/// The statistics of an execution, as the device counted them; other work on the device at the same time is counted
/// too.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Execution {
    /// Launches of kernels, those of graphs included.
    pub launches: u64,
    /// Launches of graphs.
    pub graph_launches: u64,
    /// Copies.
    pub copies: u64,
    /// Bytes copied.
    pub bytes_copied: u64,
    /// Bytes that kernels read from and wrote to global memory, summed over lanes, if the device counts them: virtual
    /// GPUs with counters do.
    pub bytes_accessed: u64,
    /// Bytes that the plan's launches move according to their arguments, each counted once: the minimum for an
    /// execution that reads and writes nothing twice.
    pub bytes_planned: u64,
    /// Device time from before the first step to after the last one.
    pub time: Duration,
}

/// Executes a plan, and waits for the end. Each step goes to the dispatcher's method for its family, in order.
///
/// ```
/// use warpwright_graph::{
///     ComputeGraph, Element, KernelLibrary, Plan, PlanOptions, Store, TensorType, execute_graph,
/// };
/// use warpwright_kernels::WeightFormat;
/// use warpwright_runtime::{Device, DeviceSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut graph = ComputeGraph::new();
/// let x = graph.input("x", TensorType::f32([1, 32]));
/// let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::F32), [8, 32]));
/// let y = graph.mat_mul("y", x, w, None)?;
/// graph.output(y)?;
///
/// let device = Device::open(DeviceSpec::Vm)?;
/// let mut store = Store::new(&device.default_stream());
/// let ones: Vec<u8> = [1f32; 8 * 32].iter().flat_map(|one| one.to_le_bytes()).collect();
/// store.add_matrix("w", WeightFormat::F32, 8, 32, &ones)?;
///
/// let options = PlanOptions::for_device(&device);
/// let mut executable = Plan::new(&graph, &options, &KernelLibrary)?.bind(&mut store)?;
/// executable.write_input("x", &[0.5f32; 32])?;
/// let execution = execute_graph(&mut executable, &KernelLibrary)?;
/// assert_eq!(execution.launches, 1);
/// assert_eq!(executable.read_output::<f32>("y")?, [16.0; 8]);
/// # Ok(())
/// # }
/// ```
pub fn execute_graph(
    executable: &mut Executable,
    dispatch: &dyn KernelDispatch,
) -> Result<Execution, ExecuteError> {
    counted(executable, || {
        executable.must_be_ready()?;
        executable.issue_steps(dispatch)
    })
}

/// What the device counts while something is issued and done.
pub(super) fn counted(
    executable: &Executable,
    issue: impl FnOnce() -> Result<(), ExecuteError>,
) -> Result<Execution, ExecuteError> {
    let stream = executable.stream();
    stream.synchronize()?;
    let before = stream.device().statistics();
    let start = executable.event()?;
    if let Err(error) = issue() {
        // What was issued may have failed too, and the dispatcher's error is the earlier one.
        let _ = stream.synchronize();
        return Err(error);
    }
    let end = executable.event()?;
    stream.synchronize()?;
    let after = stream.device().statistics();
    let delta = |of: fn(&DeviceStatistics) -> u64| of(&after).saturating_sub(of(&before));
    Ok(Execution {
        launches: delta(|statistics| statistics.launches),
        graph_launches: delta(|statistics| statistics.graph_launches),
        copies: delta(|statistics| statistics.copies),
        bytes_copied: delta(|statistics| statistics.bytes_copied),
        bytes_accessed: delta(|statistics| statistics.bytes_accessed),
        bytes_planned: executable.plan().bytes(),
        time: end.elapsed(&start)?,
    })
}
