//! Barriers in shared memory.
