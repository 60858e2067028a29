//! Tensor memory and the fifth generation of tensor cores.
