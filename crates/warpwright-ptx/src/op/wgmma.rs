//! Matrix products of a warpgroup on shared memory.
