//! Compute graphs for LLM inference: typed tensors and operations, fused, planned and run as few launches.
#![forbid(unsafe_code)]
