//! Exchanges between the lanes of a warp.
