//! `warpwright run` and `warpwright profile`: a kernel on the virtual GPU.
mod argument;
mod npy;
mod scalar;
mod signature;
