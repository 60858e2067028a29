//! States of a store: they are zero at first, and persist when plans change.
//!
//! A state has the memory of the largest plan that has asked for it. **A plan may use fewer elements of a state's first
//! dimension, the sequences of a batch: it has the first ones.** So plans of several batch sizes share one cache. The
//! third dimension of a cache, its capacity in tokens, is the stride between heads: it is the same for all plans, and
//! grows only by [`Store::resize_state`], which moves the contents.

use super::error::StoreError;
use super::store::Store;
use crate::graph::{Element, TensorType, has_sequences_of, may_become, runs};
use crate::launch::planes;
use std::sync::atomic::Ordering::Relaxed;
use warpwright_runtime::{self as runtime, AnyBuffer, Buffer, RuntimeError};

/// A state on the device: each of its parts has memory of its own, so that the first sequences of a batch are the
/// beginning of every part.
#[derive(Debug)]
pub(super) struct State {
    pub(super) ty: TensorType,
    parts: Vec<AnyBuffer>,
}

impl State {
    /// Its size.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(AnyBuffer::num_bytes).sum()
    }
}

impl Store {
    /// Adds a state of zeros unless it exists. An existing state must have the same type, but may be larger in the
    /// first dimension.
    pub fn add_state(&mut self, name: &str, ty: TensorType) -> Result<(), StoreError> {
        self.state(name, ty).map(|_| ())
    }

    /// Reads a state that is in one piece, in stream order.
    pub fn read_state<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, StoreError> {
        let buffer = self.whole::<T>(name)?;
        self.stream.clone_dtoh(&buffer).map_err(StoreError::device(name))
    }

    /// Writes a state that is in one piece, completely.
    pub fn write_state<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), StoreError> {
        let buffer = self.whole::<T>(name)?;
        if values.len() != buffer.len() {
            let (ty, unit) = (self.states[name].ty, "elements");
            let (given, needed) = (values.len() as u64, buffer.len() as u64);
            return Err(StoreError::Length { name: name.into(), ty, unit, given, needed });
        }
        self.stream.memcpy_htod(values, &buffer).map_err(StoreError::device(name))
    }

    /// The parts of a state, in the order of [`planes`]: the buffers of bound plans.
    /// [`resize_state`](Self::resize_state) replaces them.
    pub fn state_buffers(&self, name: &str) -> Result<&[AnyBuffer], StoreError> {
        let missing = || StoreError::MissingState { name: name.into() };
        Ok(&self.states.get(name).ok_or_else(missing)?.parts)
    }

    /// Sets all of a state to zero.
    pub fn reset_state(&mut self, name: &str) -> Result<(), StoreError> {
        for part in self.state_buffers(name)? {
            self.stream.memset_any(part, 0).map_err(StoreError::device(name))?;
        }
        Ok(())
    }

    /// Resizes a state: in the first dimension, and for a cache also in the third, its capacity in tokens. Elements
    /// that both sizes have keep their values; new ones are zero. Plans that were bound before keep the old memory:
    /// bind them again.
    pub fn resize_state(&mut self, name: &str, ty: TensorType) -> Result<(), StoreError> {
        let missing = || StoreError::MissingState { name: name.into() };
        let given = self.states.get(name).ok_or_else(missing)?.ty;
        if given == ty {
            return Ok(());
        }
        if !may_become(given, ty) {
            let rule = "only the first dimension can change, and of a cache the third";
            return Err(StoreError::State { name: name.into(), given, needed: ty, rule });
        }
        let new = self.zeros(name, ty)?;
        let old = &self.states[name];
        for (part, (from, to)) in old.parts.iter().zip(&new.parts).enumerate() {
            let step = planes(given)[part].len.max(1);
            // Parts with one number for several elements have them along the last dimension, which does not change.
            let scale = given.shape.elements() / step;
            self.copy_common((from, given), (to, ty), scale).map_err(StoreError::device(name))?;
        }
        self.states.insert(name.into(), new);
        self.moves.fetch_add(1, Relaxed);
        Ok(())
    }

    /// The parts of a state for a plan that has it with that type.
    pub(super) fn state(&mut self, name: &str, needed: TensorType) -> Result<Vec<AnyBuffer>, StoreError> {
        let Some(state) = self.states.get(name) else {
            let state = self.zeros(name, needed)?;
            let parts = state.parts.clone();
            self.states.insert(name.into(), state);
            return Ok(parts);
        };
        let given = state.ty;
        let fewer = needed.shape.dims().first() <= given.shape.dims().first();
        if !fewer || !has_sequences_of(given, needed) {
            let rule =
                "a plan has all of a state, or fewer of its first dimension; `resize_state` changes it";
            return Err(StoreError::State { name: name.into(), given, needed, rule });
        }
        let parts =
            state.parts.iter().zip(planes(needed)).map(|(part, plane)| part.slice(..plane.len as usize));
        parts.collect::<Result<_, _>>().map_err(StoreError::device(name))
    }

    /// A new state of that type.
    fn zeros(&self, name: &str, ty: TensorType) -> Result<State, StoreError> {
        let refuse = |rule: &str| Err(StoreError::Type { name: name.into(), ty, rule: rule.into() });
        if ty.shape.elements() == 0 {
            return refuse("it must not be empty");
        }
        if matches!(ty.element, Element::Weights(_) | Element::Int8 | Element::Scaled { .. }) {
            return refuse("states are floats, integers or caches");
        }
        let parts = planes(ty).into_iter().map(|plane| {
            let buffer = self.allocate(name, plane.bytes(), plane.dtype)?;
            self.stream.memset_any(&buffer, 0).map_err(StoreError::device(name))?;
            Ok(buffer)
        });
        Ok(State { ty, parts: parts.collect::<Result<_, StoreError>>()? })
    }

    /// Copies what two sizes of a part have in common. A part has a number for each `scale` elements.
    fn copy_common(
        &self,
        (from, old): (&AnyBuffer, TensorType),
        (to, new): (&AnyBuffer, TensorType),
        scale: u64,
    ) -> Result<(), RuntimeError> {
        let ((count, old), (new_count, new)) = (runs(old, scale), runs(new, scale));
        let (count, len) = (count.min(new_count), old.min(new));
        // Runs of one length lie behind one another on both sides: they are one.
        let (count, len) = if old == new { (1, count * len) } else { (count, len) };
        for run in 0..count {
            let (source, target) = ((run * old) as usize, (run * new) as usize);
            let len = len as usize;
            self.stream
                .memcpy_dtod_any(&from.slice(source..source + len)?, &to.slice(target..target + len)?)?;
        }
        Ok(())
    }

    /// A state that is in one piece.
    fn whole<T: runtime::Element>(&self, name: &str) -> Result<Buffer<T>, StoreError> {
        let parts = self.state_buffers(name)?;
        let [part] = parts else {
            let ty = self.states[name].ty;
            let rule = "it is in several pieces; `state_buffers` gives them".into();
            return Err(StoreError::Type { name: name.into(), ty, rule });
        };
        if part.element() != T::TYPE {
            return Err(StoreError::Element { name: name.into(), given: T::TYPE, needed: part.element() });
        }
        part.typed().map_err(StoreError::device(name))
    }
}
