//! Matrix products of a warp on registers: mma and its loads and stores.
