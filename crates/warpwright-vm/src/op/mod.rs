//! Execution of instructions, one file per family, with the names of `warpwright_ptx::op`.
//!
//! Each family has a `decode` function that takes all of its instructions apart and emits the code for them
//! ([`Decoder::emit`]): a [`lane_op!`](crate::simd::lane_op) for work that is the same in every lane, otherwise a
//! handler on the [`Machine`](crate::machine::Machine), or a closure that carries its data ([`Decoder::emit_boxed`]).

pub(crate) mod arith;
pub(crate) mod async_copy;
pub(crate) mod atomic;
pub(crate) mod builtin;
mod bulk_copy;
mod cluster;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod convert;
mod deferred;
mod format;
pub(crate) mod lanes;
pub(crate) mod logic;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod special;
mod stack;
mod swap;
pub(crate) mod sync;
pub(crate) mod tcgen05;
pub(crate) mod texture;
pub(crate) mod video;
pub(crate) mod warp;
pub(crate) mod wgmma;
pub(crate) mod wmma;

use crate::decode::{BranchTarget, Decoder, LoadError};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::family::Family;

/// Emits what executes an instruction, or a trap that names it. `reconvergence` is where lanes that
/// diverge here meet again.
pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>, reconvergence: BranchTarget) -> Result<(), LoadError> {
    let known = match op.family() {
        Family::Sums(op) => arith::sum::decode(op, d),
        Family::Products(op) => arith::product::decode(op, d),
        Family::Functions(op) => arith::function::decode(op, d),
        Family::Signs(op) => arith::sign::decode(op, d),
        Family::Extrema(op) => arith::extremum::decode(op, d),
        Family::Logic(op) => logic::decode(op, d),
        Family::Compare(op) => compare::decode(op, d),
        Family::Convert(op) => convert::decode(op, d),
        Family::Memory(op) => memory::decode(op, d),
        Family::Stack(op) => stack::decode(op, d),
        Family::Atomic(op) => atomic::decode(op, d),
        Family::Control(op) => control::decode(op, d, reconvergence)?,
        Family::Sync(op) => sync::decode(op, d),
        Family::Warp(op) => warp::decode(op, d),
        Family::AsyncCopy(op) => async_copy::decode(op, d),
        Family::Matrix(op) => matrix::decode(op, d),
        Family::Wmma(op) => wmma::decode(op, d),
        Family::Mbarrier(op) => mbarrier::decode(op, d),
        Family::Video(op) => video::decode(op, d),
        Family::Wgmma(op) => {
            wgmma::decode(op, d);
            true
        }
        Family::Tcgen05(op) => tcgen05::decode(op, d),
        Family::BulkCopy(op) => bulk_copy::decode(op, d),
        Family::Texture(op) => texture::decode(op, d),
        Family::Cluster(op) => cluster::decode(op, d),
    };
    if !known {
        d.unsupported(op.name(), "");
    }
    Ok(())
}
