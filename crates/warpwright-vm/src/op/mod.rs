//! How instructions execute, one file per family, named as in `warpwright_ptx::op`.
//!
//! A family has a `decode` function that takes its instructions apart and emits what executes them
//! ([`Decoder::emit`]): for what is the same in every lane a [`lane_op!`](crate::simd::lane_op), else a
//! handler on the [`Machine`](crate::machine::Machine), or a closure that carries what it needs
//! ([`Decoder::emit_boxed`]).

pub(crate) mod arith;
pub(crate) mod async_copy;
pub(crate) mod atomic;
pub(crate) mod builtin;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod convert;
mod format;
pub(crate) mod lanes;
pub(crate) mod logic;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod special;
pub(crate) mod sync;
pub(crate) mod video;
pub(crate) mod warp;
pub(crate) mod wmma;

use crate::decode::{Decoder, LoadError, Place};
use warpwright_ptx::op::Op;

/// Emits what executes an instruction. `join` is where lanes that part here meet again.
pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>, join: Place) -> Result<(), LoadError> {
    let known = arith::decode(op, d)
        || logic::decode(op, d)
        || compare::decode(op, d)
        || convert::decode(op, d)
        || memory::decode(op, d)
        || sync::decode(op, d)
        || warp::decode(op, d)
        || atomic::decode(op, d)
        || mbarrier::decode(op, d)
        || async_copy::decode(op, d)
        || video::decode(op, d)
        || matrix::decode(op, d)
        || wmma::decode(op, d)
        || control::decode(op, d, join)?;
    if !known {
        d.unsupported(op.name(), "");
    }
    Ok(())
}
