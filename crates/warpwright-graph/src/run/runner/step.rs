//! A prepared step, and its execution.

use super::super::capture::Captured;
use super::super::error::ExecuteError;
use super::super::executable::Executable;
use super::super::execute::{Execution, execute_graph};
use super::{Replanned, StepShape};
use crate::dispatch::KernelDispatch;
use std::fmt;
use warpwright_runtime as runtime;

/// A plan that can run.
pub(super) enum Ready {
    Captured(Box<Captured>),
    Eager(Box<Executable>),
}

impl Ready {
    pub(super) fn executable(&self) -> &Executable {
        match self {
            Ready::Captured(captured) => captured.executable(),
            Ready::Eager(executable) => executable,
        }
    }

    pub(super) fn executable_mut(&mut self) -> &mut Executable {
        match self {
            Ready::Captured(captured) => captured.executable_mut(),
            Ready::Eager(executable) => executable,
        }
    }
}

/// A prepared step.
pub struct RunnerStep<'a> {
    pub(super) ready: &'a mut Ready,
    pub(super) dispatch: &'a dyn KernelDispatch,
    pub(super) shape: StepShape,
    pub(super) replanned: Option<Replanned>,
}

impl RunnerStep<'_> {
    /// Its shape.
    pub fn shape(&self) -> StepShape {
        self.shape
    }

    /// Why it was planned by this call; `None` if it was ready.
    pub fn replanned(&self) -> Option<Replanned> {
        self.replanned
    }

    /// Its plan, with its inputs and outputs.
    pub fn executable(&self) -> &Executable {
        self.ready.executable()
    }

    /// Writes an input: see [`Executable::write_input`].
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        self.ready.executable_mut().write_input(name, values)
    }

    /// Issues the step, as one graph launch unless the runner is eager, and does not wait.
    pub fn run(&mut self) -> Result<(), ExecuteError> {
        match self.ready {
            Ready::Captured(captured) => captured.replay(),
            Ready::Eager(executable) => executable.issue(self.dispatch),
        }
    }

    /// Issues the step launch by launch through another dispatcher than the runner's, for example one that observes
    /// steps or skips some. The plan is that of the runner's dispatcher.
    pub fn issue(&mut self, dispatch: &dyn KernelDispatch) -> Result<(), ExecuteError> {
        self.ready.executable_mut().issue(dispatch)
    }

    /// Runs the step, waits for it and returns the device's counters.
    pub fn execute(&mut self) -> Result<Execution, ExecuteError> {
        match self.ready {
            Ready::Captured(captured) => captured.execute(),
            Ready::Eager(executable) => execute_graph(executable, self.dispatch),
        }
    }

    /// Reads an output: see [`Executable::read_output`].
    pub fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        self.executable().read_output(name)
    }
}

impl fmt::Debug for RunnerStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RunnerStep");
        debug.field("shape", &self.shape).field("replanned", &self.replanned).finish_non_exhaustive()
    }
}
