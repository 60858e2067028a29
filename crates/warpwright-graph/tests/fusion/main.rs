//! Fusion: what is formed, and that it computes the same.

mod layers;
#[path = "../../examples/plan_layer/model.rs"]
mod model;
mod properties;
mod random;
mod structure;
mod terms;
