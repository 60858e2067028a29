//! Models of any size as graphs, and random weights for them: what is measured, and what tests of graphs run.

mod model;
mod random;
mod real;
pub mod run;
mod weights;

pub use model::{Biases, Choice, Formats, ModelConfig, Prompt};
pub use random::Random;
pub use weights::{random_bytes, random_matrix, random_weights};
