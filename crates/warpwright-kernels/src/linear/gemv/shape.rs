//! The shape of a product, as its body has it.
//!
//! ```text
//!   row of k weights     slices · whole ones ──────────┬─ rest ─┐
//!   plane of n rows      offset, then n times pitch
//! ```

use super::plan::{self, Slices};
use super::tile::Product;
use crate::weights::{Part, Plane, Planes};
use warpwright_dsl::*;

/// A plane of the matrices.
#[derive(Clone, Copy)]
pub(super) struct PlaneAt<'k> {
    pub(super) part: Part,
    /// Where it begins; `None` for the first.
    pub(super) offset: Option<Reg<'k, u64>>,
    /// Bytes of a row.
    pub(super) pitch: Dim<'k>,
}

/// The shape of a product.
pub(super) struct Shape<'k> {
    /// Rows of the matrices.
    pub(super) n: Dim<'k>,
    pub(super) slices: Slices<'k>,
    pub(super) planes: Vec<PlaneAt<'k>>,
    /// `1 / k` and epsilon, where the activations are normalised.
    pub(super) mean: Option<[Reg<'k, f32>; 2]>,
}

impl<'k> Shape<'k> {
    pub(super) fn new(k: K<'k>, product: &Product) -> Self {
        let (whole, rest) = plan::slices(product.layout(), product.k);
        let at = |plane: Plane| PlaneAt {
            part: plane.part,
            offset: (plane.offset > 0).then(|| k.wide_dim(plane.offset)),
            pitch: k.dim(plane.row_bytes as u32),
        };
        Shape {
            n: k.dim(product.n),
            slices: Slices { whole: k.dim(whole), rest: k.dim(rest), warps: product.warps },
            planes: Planes::new(product.format, product.n, product.k).iter().map(at).collect(),
            mean: product.epsilon.map(|epsilon| [k.factor(1.0 / product.k as f32), k.factor(epsilon)]),
        }
    }
}
