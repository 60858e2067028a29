//! `warpwright run` and `warpwright profile`: a kernel on the virtual GPU.
mod argument;
mod npy;
mod options;
mod program;
mod scalar;
mod signature;
mod values;
