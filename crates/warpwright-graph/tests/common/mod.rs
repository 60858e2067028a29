//! What tests and benches of graphs share: models of any size, and weights for them.

#![allow(unused_imports, reason = "each test takes what it needs")]

pub(crate) use warpwright_qualify::models::*;
