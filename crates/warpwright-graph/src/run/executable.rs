//! A plan that can run: its inputs, its outputs, and the issue of its steps.

use super::bind::Bound;
use super::error::ExecuteError;
use super::placed::Placed;
use super::store::Store;
use crate::dispatch::{KernelDispatch, StepRun};
use crate::graph::TensorType;
use crate::plan::Plan;
use std::fmt;
use std::sync::Arc;
use warpwright_runtime::{self as runtime, AnyBuffer, Buffer, Event, Stream};

/// A plan that is bound to the weights and states of a [`Store`], with its own memory for everything else and every
/// launch prepared.
///
/// Inputs keep their values until they are written again; write each input before the first execution. Outputs hold the
/// results of the last execution.
pub struct Executable {
    bound: Bound,
}

impl Plan {
    /// Binds the plan to a store: lays out its weights, makes missing states, allocates memory for everything else,
    /// builds the kernels and prepares every launch.
    ///
    /// Fails if the store lacks a weight or has it with another type, if a state is of another type, if the plan was
    /// made for another architecture than the device's, or if the device refuses memory or a kernel.
    pub fn bind(self, store: &mut Store) -> Result<Executable, ExecuteError> {
        Executable::new(Arc::new(self), store)
    }
}

impl Executable {
    /// As [`Plan::bind`], for a plan that is bound several times.
    pub fn new(plan: Arc<Plan>, store: &mut Store) -> Result<Self, ExecuteError> {
        Ok(Executable { bound: Bound::new(plan, store)? })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.bound.placed.plan
    }

    /// The stream that it runs on: the store's.
    pub fn stream(&self) -> &Stream {
        &self.bound.placed.stream
    }

    /// Names and types of the inputs, which the host writes.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.bound.placed.inputs()
    }

    /// Names and types of the outputs, which the host reads.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.bound.placed.outputs()
    }

    /// Writes an input completely. The slice may be reused at once.
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        self.bound.placed.write_input(name, values)
    }

    /// Writes an input from memory of the device, in stream order.
    pub fn copy_input<T: runtime::Element>(
        &mut self,
        name: &str,
        source: &Buffer<T>,
    ) -> Result<(), ExecuteError> {
        self.bound.placed.copy_input(name, source)
    }

    /// Reads an output in stream order, and waits for it.
    pub fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        self.bound.placed.read_output(name)
    }

    /// As [`read_output`](Self::read_output), into a slice of the output's length.
    pub fn read_output_to<T: runtime::Element>(
        &self,
        name: &str,
        values: &mut [T],
    ) -> Result<(), ExecuteError> {
        self.bound.placed.read_output_to(name, values)
    }

    /// The memory of an output, for copies that do not wait.
    pub fn output_buffer(&self, name: &str) -> Result<&AnyBuffer, ExecuteError> {
        self.bound.placed.output_buffer(name)
    }

    /// Issues every step through the dispatcher, and returns without waiting.
    ///
    /// Errors of the device are returned by the next call that waits for the stream. Memory that a failed kernel has
    /// left is cleared before anything else is issued.
    pub fn issue(&mut self, dispatch: &dyn KernelDispatch) -> Result<(), ExecuteError> {
        self.must_be_ready()?;
        self.issue_steps(dispatch)
    }

    /// The same, whether or not inputs were written.
    pub(super) fn issue_steps(&self, dispatch: &dyn KernelDispatch) -> Result<(), ExecuteError> {
        for index in 0..self.plan().steps().len() {
            let issued = dispatch.step(&mut StepRun::new(&self.bound, index));
            issued.map_err(|error| self.placed().at_step(index, error))?;
        }
        Ok(())
    }

    pub(super) fn placed(&self) -> &Placed {
        &self.bound.placed
    }

    /// Whether states have other memory than when this was bound.
    pub(super) fn has_moved(&self) -> bool {
        self.placed().has_moved()
    }

    /// That all inputs were written, and states are where they were.
    pub(super) fn must_be_ready(&self) -> Result<(), ExecuteError> {
        self.placed().must_be_ready()
    }

    /// An event of the stream.
    pub(super) fn event(&self) -> Result<Event, ExecuteError> {
        Ok(self.stream().record_event()?)
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Executable");
        debug.field("steps", &self.plan().steps().len()).field("inputs", &self.inputs().collect::<Vec<_>>());
        debug.field("outputs", &self.outputs().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
