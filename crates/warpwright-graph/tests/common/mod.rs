//! What tests and benches of graphs share: models of any size, and weights for them.

#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

pub(crate) mod model;
pub(crate) mod random;
pub(crate) mod real;
pub(crate) mod run;
pub(crate) mod weights;

pub(crate) use model::{Biases, Choice, Formats, ModelConfig, Prompt};
pub(crate) use random::Random;
pub(crate) use weights::{random_bytes, random_matrix, random_weights};
