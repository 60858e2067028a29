//! A plan that can run: its inputs, its outputs, and the issue of its steps.

use super::bind::Bound;
use super::error::ExecuteError;
use super::store::Store;
use crate::dispatch::{KernelDispatch, StepRun};
use crate::graph::{Role, Tensor, TensorType};
use crate::plan::Plan;
use crate::program::Family;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_runtime::{self as runtime, AnyBuffer, Buffer, Event, Stream};

/// A plan that is bound to the weights and states of a [`Store`], with memory of its own for everything else, and
/// every launch prepared.
///
/// Inputs keep what was written to them until they are written again; each must have been written before the
/// first execution. Outputs are what the last execution has left.
pub struct Executable {
    bound: Bound,
    inputs: Vec<Input>,
    outputs: Vec<(Tensor, String)>,
    /// The store's number of moves, now and when this was bound.
    moves: (Arc<AtomicU64>, u64),
    times: bool,
}

struct Input {
    tensor: Tensor,
    name: String,
    written: bool,
}

impl Plan {
    /// Binds the plan to a store: lays out the weights that it takes, makes the states that are not there yet, allocates
    /// memory for everything else, builds the kernels and prepares every launch.
    ///
    /// Refused where the store lacks a weight or has it otherwise, where a state is of another type, where the plan was
    /// made for another architecture than the device's, and where the device refuses memory or a kernel.
    pub fn bind(self, store: &mut Store) -> Result<Executable, ExecuteError> {
        Executable::new(Arc::new(self), store)
    }
}

impl Executable {
    /// As [`Plan::bind`], for a plan that is bound several times.
    pub fn new(plan: Arc<Plan>, store: &mut Store) -> Result<Self, ExecuteError> {
        let bound = Bound::new(plan, store)?;
        let named = |role| {
            let tensors = bound.plan.tensors(role);
            tensors.map(|tensor| (tensor, bound.name(tensor))).collect::<Vec<_>>()
        };
        let input = |(tensor, name)| Input { tensor, name, written: false };
        let (inputs, outputs) = (named(Role::Input).into_iter().map(input).collect(), named(Role::Output));
        let moves = (store.moves.clone(), store.moves.load(Relaxed));
        Ok(Executable { bound, inputs, outputs, moves, times: false })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.bound.plan
    }

    /// The stream that it runs on: the store's.
    pub fn stream(&self) -> &Stream {
        &self.bound.stream
    }

    /// Names and types of what the host writes.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.inputs.iter().map(|input| (input.name.as_str(), self.ty(input.tensor)))
    }

    /// Names and types of what the host reads.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.outputs.iter().map(|(tensor, name)| (name.as_str(), self.ty(*tensor)))
    }

    /// Whether executions take the time of each step: for that an event is recorded after each.
    pub fn record_times(&mut self, record: bool) {
        self.times = record;
    }

    pub(super) fn records_times(&self) -> bool {
        self.times
    }

    fn ty(&self, tensor: Tensor) -> TensorType {
        self.plan().program().ty(tensor)
    }

    /// Writes an input: all of it. The slice may be used again at once.
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        let (at, buffer) = self.input::<T>(name)?;
        self.must_have(name, self.inputs[at].tensor, values.len(), buffer.len())?;
        self.stream().memcpy_htod(values, &buffer)?;
        self.inputs[at].written = true;
        Ok(())
    }

    /// Writes an input from memory of the device, after what the stream was asked for so far.
    pub fn copy_input<T: runtime::Element>(
        &mut self,
        name: &str,
        source: &Buffer<T>,
    ) -> Result<(), ExecuteError> {
        let (at, buffer) = self.input::<T>(name)?;
        self.must_have(name, self.inputs[at].tensor, source.len(), buffer.len())?;
        self.stream().memcpy_dtod(source, &buffer)?;
        self.inputs[at].written = true;
        Ok(())
    }

    /// Reads an output, after everything that the stream was asked for; waits for that.
    pub fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        let buffer = self.output_buffer(name)?.clone();
        let buffer = self.typed(name, &buffer)?;
        Ok(self.stream().clone_dtoh(&buffer)?)
    }

    /// As [`read_output`](Self::read_output), into a slice of the output's length.
    pub fn read_output_to<T: runtime::Element>(
        &self,
        name: &str,
        values: &mut [T],
    ) -> Result<(), ExecuteError> {
        let buffer: Buffer<T> = self.typed(name, self.output_buffer(name)?)?;
        self.must_have(name, self.output(name)?, values.len(), buffer.len())?;
        Ok(self.stream().memcpy_dtoh(&buffer, values)?)
    }

    /// The memory of an output, for copies that do not wait.
    pub fn output_buffer(&self, name: &str) -> Result<&AnyBuffer, ExecuteError> {
        let tensor = self.output(name)?;
        match self.bound.parts(tensor)? {
            [part] => Ok(part),
            _ => Err(ExecuteError::NoBuffer { name: name.into() }),
        }
    }

    fn output(&self, name: &str) -> Result<Tensor, ExecuteError> {
        let found = self.outputs.iter().find(|(_, known)| known == name);
        let known = || self.outputs.iter().map(|(_, name)| name.clone()).collect();
        let unknown = || ExecuteError::Unknown { role: Role::Output, name: name.into(), known: known() };
        Ok(found.ok_or_else(unknown)?.0)
    }

    fn input<T: runtime::Element>(&self, name: &str) -> Result<(usize, Buffer<T>), ExecuteError> {
        let known = || self.inputs.iter().map(|input| input.name.clone()).collect();
        let unknown = || ExecuteError::Unknown { role: Role::Input, name: name.into(), known: known() };
        let at = self.inputs.iter().position(|input| input.name == name).ok_or_else(unknown)?;
        match self.bound.parts(self.inputs[at].tensor)? {
            [part] => Ok((at, self.typed(name, part)?)),
            _ => Err(ExecuteError::NoBuffer { name: name.into() }),
        }
    }

    fn typed<T: runtime::Element>(&self, name: &str, part: &AnyBuffer) -> Result<Buffer<T>, ExecuteError> {
        let (given, needed) = (T::TYPE, part.element());
        if given != needed {
            return Err(ExecuteError::Element { name: name.into(), given, needed });
        }
        Ok(part.typed()?)
    }

    fn must_have(&self, name: &str, tensor: Tensor, given: usize, needed: usize) -> Result<(), ExecuteError> {
        if given == needed {
            return Ok(());
        }
        Err(ExecuteError::Length { name: name.into(), ty: self.ty(tensor), given, needed })
    }

    /// Issues every step through the dispatcher, and returns without waiting for any.
    ///
    /// What goes wrong on the device later is returned by the next call that waits for the stream. What a
    /// failed kernel has left behind is cleared before anything is issued after that.
    pub fn issue(&mut self, dispatch: &dyn KernelDispatch) -> Result<(), ExecuteError> {
        self.issue_with(dispatch, |_| Ok(()))
    }

    /// As [`issue`](Self::issue), with something after each step.
    pub(super) fn issue_with(
        &self,
        dispatch: &dyn KernelDispatch,
        after: impl FnMut(usize) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
        self.must_be_ready()?;
        self.issue_steps(dispatch, after)
    }

    /// The same, whether or not inputs were written.
    pub(super) fn issue_steps(
        &self,
        dispatch: &dyn KernelDispatch,
        mut after: impl FnMut(usize) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
        for (index, step) in self.plan().program().steps().iter().enumerate() {
            let mut run = StepRun::new(&self.bound, index);
            let issued = match step.op.family() {
                Family::Rows => dispatch.rows(&mut run),
                Family::MatMul => dispatch.mat_mul(&mut run),
                Family::Norm => dispatch.norm(&mut run),
                Family::Rope => dispatch.rope(&mut run),
                Family::Attention => dispatch.attention(&mut run),
                Family::Elementwise => dispatch.elementwise(&mut run),
                Family::Sampling => dispatch.sampling(&mut run),
                Family::State => dispatch.state(&mut run),
            };
            issued.map_err(|error| self.bound.at_step(index, error))?;
            after(index)?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Whether states have other memory than when this was bound.
    pub(super) fn has_moved(&self) -> bool {
        self.moves.0.load(Relaxed) != self.moves.1
    }

    /// That all inputs were written, and states are where they were.
    pub(super) fn must_be_ready(&self) -> Result<(), ExecuteError> {
        if self.has_moved() {
            return Err(ExecuteError::Moved);
        }
        self.bound.recover()?;
        match self.inputs.iter().find(|input| !input.written) {
            Some(input) => {
                let ty = self.ty(input.tensor);
                Err(ExecuteError::InputNotWritten { name: input.name.clone(), ty })
            }
            None => Ok(()),
        }
    }

    pub(super) fn node_names(&self, step: usize) -> Vec<String> {
        self.bound.node_names(step)
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
