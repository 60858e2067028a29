//! A virtual GPU: executes verified PTX modules on the CPU, and reports what a GPU would hide.

pub mod check;
pub mod num;
pub mod tensor;
