//! Tensor cores: how products are accumulated, bit for bit, by hardware model.
