//! Copies that run beside the thread: cp.async and its groups.
