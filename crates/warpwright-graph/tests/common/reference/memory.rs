//! What stays from one execution to the next.

use super::error::ReferenceError;
use super::value::Value;
use super::weights;
use std::collections::HashMap;
use warpwright_graph::{ComputeGraph, Role, TensorInfo, TensorType};

/// Weights and states by name: those of one model, whose graphs share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    weights: HashMap<String, (TensorType, Value)>,
    states: HashMap<String, (TensorType, Value)>,
}

impl Memory {
    /// No weights, and no states.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Loads those weights of a graph that are not there yet: matrices from rows of a GGUF file, floats and integers
    /// from little-endian numbers.
    ///
    /// # Errors
    ///
    /// [`ReferenceError::Missing`] for what `bytes` does not have, [`ReferenceError::Bytes`] for what is of another
    /// length than the graph says.
    pub(crate) fn load<B: AsRef<[u8]>>(
        &mut self,
        graph: &ComputeGraph,
        mut bytes: impl FnMut(&str) -> Option<B>,
    ) -> Result<(), ReferenceError> {
        for info in graph.tensors().iter().filter(|info| info.role == Role::Weight) {
            if self.weights.contains_key(&info.name) {
                continue;
            }
            let missing = || ReferenceError::Missing { role: Role::Weight, name: info.name.clone() };
            let bytes = bytes(&info.name).ok_or_else(missing)?;
            let value = weights::read(&info.name, info.ty, bytes.as_ref())?;
            self.weights.insert(info.name.clone(), (info.ty, value));
        }
        Ok(())
    }

    /// A state, if there has been one of that name.
    pub(crate) fn state(&self, name: &str) -> Option<&Value> {
        self.states.get(name).map(|(_, value)| value)
    }

    /// Writes a state. Those that are not written are zero at first.
    ///
    /// # Errors
    ///
    /// [`ReferenceError::Value`] where the type has no such value.
    pub(crate) fn set_state(
        &mut self,
        name: &str,
        ty: TensorType,
        value: Value,
    ) -> Result<(), ReferenceError> {
        value.check(name, ty)?;
        self.keep(name, ty, value.held(ty.element));
        Ok(())
    }

    pub(super) fn keep(&mut self, name: &str, ty: TensorType, value: Value) {
        self.states.insert(name.into(), (ty, value));
    }

    /// A state of that type, zeros if it is new.
    pub(super) fn state_of(&self, name: &str, ty: TensorType) -> Result<Value, ReferenceError> {
        match self.states.get(name) {
            None => Ok(Value::zeros(ty)),
            Some((known, value)) => same(Role::State, name, ty, *known).map(|()| value.clone()),
        }
    }

    /// A weight as the graph has it.
    pub(super) fn weight_of(&self, info: &TensorInfo) -> Result<&Value, ReferenceError> {
        let missing = || ReferenceError::Missing { role: info.role, name: info.name.clone() };
        let (known, value) = self.weights.get(&info.name).ok_or_else(missing)?;
        same(Role::Weight, &info.name, info.ty, *known).map(|()| value)
    }
}

fn same(role: Role, name: &str, ty: TensorType, known: TensorType) -> Result<(), ReferenceError> {
    if ty == known {
        return Ok(());
    }
    Err(ReferenceError::Type { role, name: name.into(), ty, known })
}
