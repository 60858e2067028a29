//! Atomic operations and reductions in memory.
