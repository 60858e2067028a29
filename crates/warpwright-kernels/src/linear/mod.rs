//! Matrix products with the weights of a model.

pub(crate) mod gemv;
