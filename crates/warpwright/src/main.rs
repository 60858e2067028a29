//! The `warpwright` program.
fn main() {}
