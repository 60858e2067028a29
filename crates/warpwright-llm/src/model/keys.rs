//! The parameters of an architecture in a file's metadata: keys that begin with its name.

use super::error::ModelError;
use crate::gguf::Metadata;
use std::fmt::Display;

/// The parameters of one architecture.
pub(super) struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'static str,
}

impl<'a> Keys<'a> {
    pub(super) fn new(metadata: &'a Metadata, architecture: &'static str) -> Self {
        Keys { metadata, architecture }
    }

    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.metadata.get(&self.full(key)).is_some()
    }

    pub(super) fn f32(&self, key: &str) -> Result<f32, ModelError> {
        Ok(self.metadata.f32(&self.full(key))?)
    }

    pub(super) fn optional_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        self.has(key).then(|| self.f32(key)).transpose()
    }

    pub(super) fn optional_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.has(key).then(|| Ok(self.metadata.u32(&self.full(key))?)).transpose()
    }

    pub(super) fn optional_str(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        self.has(key).then(|| Ok(self.metadata.str(&self.full(key))?)).transpose()
    }

    /// A number that is not zero.
    pub(super) fn size(&self, key: &str) -> Result<u32, ModelError> {
        self.not_zero(key, self.metadata.u32(&self.full(key))?)
    }

    /// A number that is not zero, for all layers or for each: then all must have the same.
    pub(super) fn size_of_layers(&self, key: &str) -> Result<u32, ModelError> {
        let full = self.full(key);
        let error = match self.metadata.u32(&full) {
            Ok(size) => return self.not_zero(key, size),
            Err(error) => error,
        };
        let Ok(sizes) = self.metadata.u32s(&full) else { return Err(error.into()) };
        let mut sizes = sizes.into_iter();
        let first = sizes.next().unwrap_or(0);
        match sizes.find(|&other| other != first) {
            None => self.not_zero(key, first),
            Some(other) => Err(ModelError::Unsupported {
                key: full,
                value: format!("{first} for the first layer and {other} for another one"),
                what: "layers of different sizes",
            }),
        }
    }

    fn not_zero(&self, key: &str, size: u32) -> Result<u32, ModelError> {
        if size == 0 { Err(self.parameter(key, size, "1 or more")) } else { Ok(size) }
    }

    /// Refuses a parameter that asks for what is not computed: any value but these.
    pub(super) fn neutral(&self, key: &str, neutral: &[f32], what: &'static str) -> Result<(), ModelError> {
        if !self.has(key) {
            return Ok(());
        }
        let full = self.full(key);
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
    pub(super) fn parameter(&self, key: &str, value: impl Display, rule: impl Into<String>) -> ModelError {
        ModelError::Parameter { key: self.full(key), value: value.to_string(), rule: rule.into() }
    }

    /// The error for a value of a parameter that asks for what is not computed.
    pub(super) fn unsupported(&self, key: &str, value: impl Display, what: &'static str) -> ModelError {
        ModelError::Unsupported { key: self.full(key), value: value.to_string(), what }
    }
}
