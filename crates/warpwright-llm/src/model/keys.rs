//! The parameters of an architecture in a file's metadata: keys with its name as prefix.

use super::error::ModelError;
use crate::gguf::{Metadata, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The parameters of one architecture.
pub(super) struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'static str,
    /// The keys that were asked for: what they say is in the model.
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(metadata: &'a Metadata, architecture: &'static str) -> Self {
        Keys { metadata, architecture, asked: RefCell::default() }
    }

    fn full(&self, key: &'static str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// The key as it is in the file, which is asked for.
    fn ask(&self, key: &'static str) -> String {
        self.asked.borrow_mut().insert(key);
        self.full(key)
    }

    pub(super) fn has(&self, key: &'static str) -> bool {
        self.metadata.get(&self.ask(key)).is_some()
    }

    pub(super) fn f32(&self, key: &'static str) -> Result<f32, ModelError> {
        Ok(self.metadata.f32(&self.ask(key))?)
    }

    /// A number; `None` where it is missing or 0, which means the same.
    pub(super) fn factor(&self, key: &'static str) -> Result<Option<f32>, ModelError> {
        match self.optional_f32(key)? {
            Some(value) if !value.is_finite() => Err(self.parameter(key, value, "a finite number")),
            value => Ok(value.filter(|&value| value != 0.0)),
        }
    }

    /// The cap of a soft cap; `None` where it is missing or 0.
    pub(super) fn cap(&self, key: &'static str) -> Result<Option<f32>, ModelError> {
        match self.factor(key)? {
            Some(value) if value < 0.0 => Err(self.parameter(key, value, "0 or more")),
            value => Ok(value),
        }
    }

    pub(super) fn optional_bool(&self, key: &'static str) -> Result<Option<bool>, ModelError> {
        self.has(key).then(|| Ok(self.metadata.bool(&self.full(key))?)).transpose()
    }

    pub(super) fn optional_f32(&self, key: &'static str) -> Result<Option<f32>, ModelError> {
        self.has(key).then(|| self.f32(key)).transpose()
    }

    pub(super) fn optional_u32(&self, key: &'static str) -> Result<Option<u32>, ModelError> {
        self.has(key).then(|| Ok(self.metadata.u32(&self.full(key))?)).transpose()
    }

    pub(super) fn optional_str(&self, key: &'static str) -> Result<Option<&'a str>, ModelError> {
        self.has(key).then(|| Ok(self.metadata.str(&self.full(key))?)).transpose()
    }

    /// A number that is not zero.
    pub(super) fn size(&self, key: &'static str) -> Result<u32, ModelError> {
        self.not_zero(key, self.metadata.u32(&self.ask(key))?)
    }

    /// A number for each layer: an array, or one number for all.
    pub(super) fn by_layer(&self, key: &'static str, layers: u32) -> Result<ByLayer, ModelError> {
        let full = self.ask(key);
        let error = match self.metadata.u32(&full) {
            Ok(number) => return Ok(ByLayer { key, numbers: vec![number] }),
            Err(error) => error,
        };
        let Ok(numbers) = self.metadata.u32s(&full) else { return Err(error.into()) };
        match u32::try_from(numbers.len()) == Ok(layers) {
            true => Ok(ByLayer { key, numbers }),
            false => {
                let rule = format!("one number, or one for each of the {layers} layers");
                Err(self.parameter(key, format!("{} numbers", numbers.len()), rule))
            }
        }
    }

    /// Which of so many layers are meant: an array of truth values or of numbers, or a number.
    pub(super) fn pattern(&self, key: &'static str, layers: u32) -> Result<Option<Pattern>, ModelError> {
        let full = self.ask(key);
        let Some(value) = self.metadata.get(&full) else { return Ok(None) };
        let Value::Array(array) = value else { return Ok(Some(Pattern::Period(self.metadata.u32(&full)?))) };
        let truth = |item: Value| match item {
            Value::Bool(is_meant) => Some(is_meant),
            item => item.integer().map(|number| number != 0),
        };
        let listed: Option<Vec<bool>> = array.iter().map(truth).collect();
        match listed.filter(|listed| u32::try_from(listed.len()) == Ok(layers)) {
            Some(listed) => Ok(Some(Pattern::Listed(listed))),
            None => {
                let rule = format!("a number, or a truth value for each of the {layers} layers");
                Err(self.parameter(key, format!("an array of {} items", array.len()), rule))
            }
        }
    }

    /// An array of numbers of this length.
    pub(super) fn numbers<const N: usize>(&self, key: &'static str) -> Result<[u32; N], ModelError> {
        let numbers = self.metadata.u32s(&self.ask(key))?;
        let count = numbers.len();
        let rule = || format!("an array of {N}");
        numbers.try_into().map_err(|_| self.parameter(key, format!("an array of {count}"), rule()))
    }

    pub(super) fn not_zero(&self, key: &'static str, size: u32) -> Result<u32, ModelError> {
        if size == 0 { Err(self.parameter(key, size, "1 or more")) } else { Ok(size) }
    }

    /// Refuses an unused parameter, unless it has one of these values, which change nothing.
    pub(super) fn neutral(
        &self,
        key: &'static str,
        neutral: &[f32],
        what: &'static str,
    ) -> Result<(), ModelError> {
        let full = self.full(key);
        if self.asked.borrow().contains(key) || self.metadata.get(&full).is_none() {
            return Ok(());
        }
        let value = match self.metadata.bool(&full) {
            Ok(flag) => f32::from(u8::from(flag)),
            Err(_) => match self.metadata.u32(&full) {
                Ok(number) => number as f32,
                Err(_) => self.metadata.f32(&full)?,
            },
        };
        if neutral.contains(&value) {
            return Ok(());
        }
        Err(ModelError::Unsupported { key: full, value: value.to_string(), what })
    }

    /// The error for a value that a parameter may not have.
    pub(super) fn parameter(
        &self,
        key: &'static str,
        value: impl Display,
        rule: impl Into<String>,
    ) -> ModelError {
        ModelError::Parameter { key: self.full(key), value: value.to_string(), rule: rule.into() }
    }

    /// The error for a parameter value that requires an unsupported computation.
    pub(super) fn unsupported(
        &self,
        key: &'static str,
        value: impl Display,
        what: &'static str,
    ) -> ModelError {
        ModelError::Unsupported { key: self.full(key), value: value.to_string(), what }
    }
}

/// A number for each layer.
pub(super) struct ByLayer {
    key: &'static str,
    /// One for all, or one for each.
    numbers: Vec<u32>,
}

impl ByLayer {
    pub(super) fn of(&self, layer: usize) -> u32 {
        let one = self.numbers.first().filter(|_| self.numbers.len() == 1);
        one.or(self.numbers.get(layer)).copied().unwrap_or(0)
    }

    /// The number of a layer, which must not be zero.
    pub(super) fn size(&self, keys: &Keys<'_>, layer: usize) -> Result<u32, ModelError> {
        keys.not_zero(self.key, self.of(layer))
    }
}

/// Which layers are meant.
pub(super) enum Pattern {
    Listed(Vec<bool>),
    /// All but the last of so many.
    Period(u32),
}

impl Pattern {
    pub(super) fn means(&self, layer: u32) -> bool {
        match self {
            Pattern::Listed(listed) => listed.get(layer as usize).copied().unwrap_or(false),
            Pattern::Period(0) => true,
            Pattern::Period(period) => layer % period + 1 < *period,
        }
    }
}
