//! What virtual GPUs do and CUDA devices do not: they go on after a failure, tell what they have found, end with their
//! last handle, and are as small as one likes.

mod devices;
mod drops;
mod errors;
mod memory;
