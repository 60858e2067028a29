//! Matrix products of a warp, and transfers of small matrices between memory and its registers.
//!
//! All of these require the whole warp: lanes that execute one without the others wait for them. For lanes that never
//! arrive, the contents of their registers are used.

mod halves;
mod layout;
mod mma;
mod product;
mod scaled;
mod transfer;

pub(crate) use halves::{multiply, sums, words};
pub(crate) use layout::{CHUNK, Layout};
pub(crate) use mma::{Form, float, packed};
pub(crate) use product::{Arithmetic, Held, Integer, Product, Results, Sparse, gather, scatter};
pub(crate) use scaled::scale;
use transfer::Transfer;

use super::tcgen05::TensorProduct;
use super::wgmma::WarpgroupProduct;
use super::wmma::TileAccess;
use crate::decode::Decoder;
use warpwright_ptx::op::family::Matrix as Op;

/// What the instructions of these families carry.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) products: Vec<Product>,
    pub(crate) transfers: Vec<Transfer>,
    /// Loads and stores of `wmma`.
    pub(crate) tiles: Vec<TileAccess>,
    /// Products of `wgmma`.
    pub(crate) warpgroup: Vec<WarpgroupProduct>,
    /// Products of `tcgen05`.
    pub(crate) tensor: Vec<TensorProduct>,
}

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mma(op) => mma::dense(op, d),
        Op::MmaSp(op) => mma::sparse(op, d),
        Op::MmaSpOrdered(op) => mma::sparse_ordered(op, d),
        Op::Ldmatrix(op) => transfer::ldmatrix(op, d),
        Op::Stmatrix(op) => transfer::stmatrix(op, d),
        Op::Movmatrix(op) => transfer::movmatrix(op, d),
    }
    true
}
