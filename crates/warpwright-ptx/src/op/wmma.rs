//! Matrix products of a warp with opaque fragments.
