//! Fusion: what is formed, and that it computes the same.

mod layers;
#[path = "../../examples/plan_layer/model.rs"]
mod model;
mod products;
mod properties;
mod random;
mod residuals;
mod rotations;
mod small;
mod terms;
