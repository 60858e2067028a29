//! Bulk copies by the tensor memory engine.
