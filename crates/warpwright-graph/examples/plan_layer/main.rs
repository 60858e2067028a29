//! Prints how a layer is planned.
mod model;
fn main() {}
