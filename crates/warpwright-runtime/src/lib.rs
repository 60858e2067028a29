//! Devices, memory, streams and launches: how a program runs kernels, on the virtual GPU and on CUDA.
#![forbid(unsafe_code)]
