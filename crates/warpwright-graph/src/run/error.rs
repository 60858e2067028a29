//! Errors of binding and running plans.

use super::persistent::PersistentFault;
use crate::graph::{Role, TensorType};
use crate::launch::WeightLayout;
use crate::program::Family;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_runtime::RuntimeError;

/// Why a [`Store`](super::Store) rejects data or a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A weight was added twice.
    #[error("weight `{name}` is in the store already; `remove_weight` takes it out")]
    Twice {
        /// Its name.
        name: String,
    },
    /// A type that weights or states cannot have, or that has no layout for kernels.
    #[error("`{name}` cannot be {ty}: {rule}")]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        ty: TensorType,
        /// What a type must be.
        rule: String,
    },
    /// The number of bytes or elements does not match the type.
    #[error("`{name}`, {ty}, has {needed} {unit}; {given} were given")]
    Length {
        /// The tensor.
        name: String,
        /// Its type.
        ty: TensorType,
        /// `bytes` or `elements`.
        unit: &'static str,
        /// How many were given.
        given: u64,
        /// How many it has.
        needed: u64,
    },
    /// A weight that was never added.
    #[error("weight `{name}`, {ty}, is not in the store; add it before the plan is bound")]
    MissingWeight {
        /// The weight.
        name: String,
        /// What the plan takes it for.
        ty: TensorType,
    },
    /// A weight of another format or shape.
    #[error("weight `{name}` is {given} in the store; the plan takes {needed}")]
    Weight {
        /// The weight.
        name: String,
        /// What the store has.
        given: TensorType,
        /// What the plan takes.
        needed: TensorType,
    },
    /// Weights that are not a matrix have only one layout.
    #[error("weight `{name}`, {ty}, has no {layout:?} layout: only matrices of weights have")]
    Layout {
        /// The weight.
        name: String,
        /// Its type.
        ty: TensorType,
        /// What was asked for.
        layout: WeightLayout,
    },
    /// A state of another type.
    #[error("state `{name}` is {given} in the store, and {needed} was asked for: {rule}")]
    State {
        /// The state.
        name: String,
        /// What the store has.
        given: TensorType,
        /// What was asked for.
        needed: TensorType,
        /// How they may differ.
        rule: &'static str,
    },
    /// A state that no plan has.
    #[error(
        "the store has no state `{name}`; it gets one with the first plan that has it, or by `add_state`"
    )]
    MissingState {
        /// The state.
        name: String,
    },
    /// The elements have another type than the tensor's.
    #[error("`{name}` holds {needed}, and not {given}", needed = needed.name(), given = given.name())]
    Element {
        /// The tensor.
        name: String,
        /// The type of the host's elements.
        given: Type,
        /// The type of the tensor's.
        needed: Type,
    },
    /// The device refused, or has failed.
    #[error("`{name}`: {error}")]
    Device {
        /// The weight or state that it is about.
        name: String,
        /// What it says.
        #[source]
        error: Box<RuntimeError>,
    },
}

impl StoreError {
    /// An error of the device, about that tensor.
    pub(super) fn device(name: &str) -> impl FnOnce(RuntimeError) -> StoreError + '_ {
        move |error| StoreError::Device { name: name.into(), error: Box::new(error) }
    }
}

impl StoreError {
    /// The device's error, if that is the cause.
    pub fn device_error(&self) -> Option<&RuntimeError> {
        if let StoreError::Device { error, .. } = self { Some(error) } else { None }
    }
}

/// Why a plan was not bound, or not executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// A weight or a state is missing, or does not match the plan.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan was made for another architecture.
    #[error("the plan was made for {given}, and the device is {needed}; plan for the device")]
    Arch {
        /// What it was made for.
        given: Arch,
        /// What the device is.
        needed: Arch,
    },
    /// There is not enough memory for a plan.
    #[error("{bytes} bytes for {what}: {error}")]
    Memory {
        /// What for.
        what: &'static str,
        /// How much.
        bytes: u64,
        /// What the device says.
        #[source]
        error: Box<RuntimeError>,
    },
    /// An input or output that the graph does not have.
    #[error("the graph has no {role} `{name}`; it has {}", list(known))]
    Unknown {
        /// What it would be.
        role: Role,
        /// The name.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// An input was never written.
    #[error("input `{name}`, {ty}, was not written before the execution")]
    InputNotWritten {
        /// The input.
        name: String,
        /// Its type.
        ty: TensorType,
    },
    /// The number of elements does not match the tensor.
    #[error("`{name}`, {ty}, has {needed} elements; {given} were given")]
    Length {
        /// The tensor.
        name: String,
        /// Its type.
        ty: TensorType,
        /// How many were given.
        given: usize,
        /// How many it has.
        needed: usize,
    },
    /// The elements have another type than the tensor's.
    #[error("`{name}` holds {needed}, and not {given}", needed = needed.name(), given = given.name())]
    Element {
        /// The tensor.
        name: String,
        /// The type of the host's elements.
        given: Type,
        /// The type of the tensor's.
        needed: Type,
    },
    /// A tensor without memory of its own, or in several pieces where one is needed.
    #[error("`{name}` is not one buffer: it has none, or several")]
    NoBuffer {
        /// The tensor.
        name: String,
    },
    /// Weights are missing in a layout: a dispatcher gets the layouts that it requested when the plan was made.
    #[error("`{name}` is not there in the layout {layout:?}")]
    Layout {
        /// The tensor.
        name: String,
        /// The layout.
        layout: WeightLayout,
    },
    /// A dispatcher requested a tensor that is not an operand of its step.
    #[error("`{name}` is no operand of the step")]
    NotAnOperand {
        /// The tensor.
        name: String,
    },
    /// The plan has no library launches for a step, because its dispatcher runs the family itself.
    #[error(
        "the plan has no launches of the kernel library for steps of the family {family}: its dispatcher overrides them"
    )]
    NoLibrary {
        /// The family.
        family: Family,
    },
    /// States have moved in memory since the plan was bound.
    #[error("states of the store were resized after the plan was bound; bind it again")]
    Moved,
    /// A launch of a persistent kernel gave up.
    #[error(transparent)]
    Persistent(Box<PersistentFault>),
    /// A launch of a persistent kernel exceeds the limits of its options.
    #[error(
        "a launch with {given} {what}: there can be from {min} to {max}, by the options it was bound with"
    )]
    PersistentLimit {
        /// What there are so many of.
        what: &'static str,
        /// How many.
        given: usize,
        /// The fewest.
        min: u32,
        /// The most.
        max: u32,
    },
    /// The device refused, or has failed.
    #[error(transparent)]
    Runtime(Box<RuntimeError>),
    /// A dispatcher's own error.
    #[error(transparent)]
    Dispatch(Box<dyn std::error::Error + Send + Sync>),
    /// An error in a step, or in preparing it.
    #[error("{op} of {}: {error}", list(nodes))]
    Step {
        /// What the step does.
        op: &'static str,
        /// The nodes whose work that is.
        nodes: Vec<String>,
        /// What went wrong.
        #[source]
        error: Box<ExecuteError>,
    },
}

impl ExecuteError {
    /// A dispatcher's own error.
    pub fn dispatch(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        ExecuteError::Dispatch(error.into())
    }

    /// The error without the step.
    pub fn cause(&self) -> &ExecuteError {
        match self {
            ExecuteError::Step { error, .. } => error.cause(),
            other => other,
        }
    }

    /// The device's error, if that is the cause.
    pub fn device_error(&self) -> Option<&RuntimeError> {
        match self.cause() {
            ExecuteError::Store(error) => error.device_error(),
            ExecuteError::Memory { error, .. } | ExecuteError::Runtime(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RuntimeError> for ExecuteError {
    fn from(error: RuntimeError) -> Self {
        ExecuteError::Runtime(Box::new(error))
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
