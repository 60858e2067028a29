//! Why plans cannot be bound or run.

use super::persistent::PersistentFault;
use crate::graph::{Role, TensorType};
use crate::launch::WeightLayout;
use crate::program::Family;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_runtime::RuntimeError;

/// Why a [`Store`](super::Store) does not hold what it was given, or does not give what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A weight was given twice.
    #[error("weight `{name}` is in the store already; `remove_weight` takes it out")]
    Twice {
        /// Its name.
        name: String,
    },
    /// A type that no weight or state has, or that kernels have no layout for.
    #[error("`{name}` cannot be {ty}: {rule}")]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        ty: TensorType,
        /// What a type must be.
        rule: String,
    },
    /// As many bytes or elements as the type does not have.
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
    /// A weight that was never given.
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
    /// Weights that are no matrix have one layout.
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
    /// Elements of another type than the tensor's.
    #[error("`{name}` holds {needed}, and not {given}", needed = needed.name(), given = given.name())]
    Element {
        /// The tensor.
        name: String,
        /// The type of the host's elements.
        given: Type,
        /// The type of the tensor's.
        needed: Type,
    },
    /// The device refuses, or has failed.
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
    /// What the device says, where that is why.
    pub fn device_error(&self) -> Option<&RuntimeError> {
        if let StoreError::Device { error, .. } = self { Some(error) } else { None }
    }
}

/// Why a plan was not bound, or not executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// A weight or a state is not there, or not as the plan takes it.
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
    /// There is no room for a plan's memory.
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
    /// As many elements as the tensor does not have.
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
    /// Elements of another type than the tensor's.
    #[error("`{name}` holds {needed}, and not {given}", needed = needed.name(), given = given.name())]
    Element {
        /// The tensor.
        name: String,
        /// The type of the host's elements.
        given: Type,
        /// The type of the tensor's.
        needed: Type,
    },
    /// A tensor that has no memory of its own, or is in several pieces where one is needed.
    #[error("`{name}` is not one buffer: it has none, or several")]
    NoBuffer {
        /// The tensor.
        name: String,
    },
    /// Weights are not there in a layout: what dispatchers get is what they have said when the plan was made.
    #[error("`{name}` is not there in the layout {layout:?}")]
    Layout {
        /// The tensor.
        name: String,
        /// The layout.
        layout: WeightLayout,
    },
    /// A dispatcher asks for a tensor that is no operand of its step.
    #[error("`{name}` is no operand of the step")]
    NotAnOperand {
        /// The tensor.
        name: String,
    },
    /// The plan has no library launches for a step, because its dispatcher said that it runs the family itself.
    #[error(
        "the plan has no launches of the kernel library for steps of the family {family}: its dispatcher overrides them"
    )]
    NoLibrary {
        /// The family.
        family: Family,
    },
    /// States have other memory than when the plan was bound.
    #[error("states of the store were resized after the plan was bound; bind it again")]
    Moved,
    /// A launch for many tokens gave up.
    #[error(transparent)]
    Persistent(Box<PersistentFault>),
    /// A launch for many tokens was asked for more than its options say.
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
    /// The device refuses, or has failed.
    #[error(transparent)]
    Runtime(Box<RuntimeError>),
    /// A dispatcher's own error.
    #[error(transparent)]
    Dispatch(Box<dyn std::error::Error + Send + Sync>),
    /// What went wrong in a step, or in making it ready.
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

    /// What went wrong, without the step that it went wrong in.
    pub fn cause(&self) -> &ExecuteError {
        match self {
            ExecuteError::Step { error, .. } => error.cause(),
            other => other,
        }
    }

    /// What the device says, where that is why.
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
