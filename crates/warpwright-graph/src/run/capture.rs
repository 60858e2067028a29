//! A plan as one graph launch: recorded once, replayed for every token.

use super::error::ExecuteError;
use super::executable::Executable;
use super::execute::{Execution, counted};
use crate::dispatch::KernelDispatch;
use std::fmt;
use warpwright_runtime::{self as runtime, Graph, GraphExec, Stream};

/// A plan whose launches were recorded, to be replayed as one.
///
/// Data that changes from replay to replay is in device memory: inputs that the host writes between replays, and states
/// that steps change. A replay has the same results as an execution, bit by bit, and allocates nothing.
///
/// ```
/// use warpwright_graph::{ComputeGraph, Element, KernelLibrary, Plan, PlanOptions, Store, TensorType};
/// use warpwright_runtime::{Device, DeviceSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Each replay counts a position up, and doubles what the host has written.
/// let mut graph = ComputeGraph::new();
/// let position = graph.state("position", TensorType::new(Element::U32, [1]));
/// graph.advance("advance", &[position])?;
/// let x = graph.input("x", TensorType::f32([1, 4]));
/// let y = graph.add("y", x, x)?;
/// graph.output(y)?;
///
/// let device = Device::open(DeviceSpec::Vm)?;
/// let mut store = Store::new(&device.default_stream());
/// let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary)?;
/// let mut captured = plan.bind(&mut store)?.capture(&KernelLibrary)?;
/// for x in [1f32, 2.0, 3.0] {
///     captured.executable_mut().write_input("x", &[x; 4])?;
///     captured.replay()?;
///     assert_eq!(captured.executable().read_output::<f32>("y")?, [2.0 * x; 4]);
/// }
/// assert_eq!(store.read_state::<u32>("position")?, [3]);
/// assert_eq!(device.statistics().graph_launches, 3);
/// # Ok(())
/// # }
/// ```
pub struct Captured {
    executable: Executable,
    graph: Graph,
    exec: GraphExec,
}

impl Executable {
    /// Records the dispatcher's work for every step; nothing is executed. Inputs need not have been written.
    ///
    /// A dispatcher that waits for the device, allocates on the stream, or copies from or to the host in a step cannot
    /// be recorded: the error is the device's, with the step.
    pub fn capture(self, dispatch: &dyn KernelDispatch) -> Result<Captured, ExecuteError> {
        let stream = self.stream();
        stream.begin_capture()?;
        let recording = Recording(stream);
        self.issue_steps(dispatch)?;
        let graph = recording.end()?;
        let exec = graph.instantiate()?;
        Ok(Captured { executable: self, graph, exec })
    }
}

/// A stream that records: it does not go on when a step is refused, or a dispatcher panics.
struct Recording<'a>(&'a Stream);

impl Recording<'_> {
    fn end(self) -> runtime::Result<Graph> {
        let stream = self.0;
        std::mem::forget(self);
        stream.end_capture()
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        // Nobody wants what was recorded.
        let _ = self.0.end_capture();
    }
}

impl Captured {
    /// Replays the plan: issues one graph launch and does not wait.
    pub fn replay(&self) -> Result<(), ExecuteError> {
        self.executable.must_be_ready()?;
        Ok(self.exec.launch(self.executable.stream())?)
    }

    /// Replays the plan, waits for it and returns the device's counters.
    pub fn execute(&mut self) -> Result<Execution, ExecuteError> {
        counted(&self.executable, || self.replay())
    }

    /// The plan with its inputs and outputs.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// The plan, to write its inputs.
    pub fn executable_mut(&mut self) -> &mut Executable {
        &mut self.executable
    }

    /// The recorded graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captured").field("nodes", &self.graph.len()).finish_non_exhaustive()
    }
}
