//! The sizes of a product: what its body asks for by name, so that one code serves matrices of all shapes.
//!
//! ```text
//!   row of k weights     slices · whole ones ──────────┬─ rest ─┐
//!   plane of n rows      offset, then n times pitch
//! ```
//!
//! What the code itself depends on is in [`class`](Product::class) and the kernel's code: the format, how activations are taken, what is done with the
//! sums, and two classes that no size can change: fewer rows than a tile has, and rows of floats that do not come in
//! fours. Sizes are open for one column of activations.

use super::kernel::{MATRIX_NAMES, Matrix, QuantGemv};
use super::plan::{self, Slices};
use super::tile::Product;
use crate::weights::{Part, Plane, Planes};
use warpwright_dsl::*;

/// Names of arguments: those of a kernel, and those of the one that it is a part of.
pub(super) type Names = Vec<(&'static str, &'static str)>;

/// Warps of the team: any number where a caller says it when it runs.
pub(super) const WARPS: &str = "warps";
const ROWS: &str = "n";
const WHOLE: &str = "slices";
const REST: &str = "rest";
const INVERSE: &str = "inverse_k";
const EPSILON: &str = "epsilon";

/// The names of where a plane begins, and of the bytes of its rows.
const fn names(part: Part) -> [&'static str; 2] {
    match part {
        Part::Values => ["values", "values_pitch"],
        Part::Quants => ["quants", "quants_pitch"],
        Part::Fifth => ["fifth", "fifth_pitch"],
        Part::Upper => ["upper", "upper_pitch"],
        Part::Headers => ["headers", "headers_pitch"],
        Part::Scales => ["scales", "scales_pitch"],
        Part::D => ["d", "d_pitch"],
    }
}

/// A plane of the matrices.
#[derive(Clone, Copy)]
pub(super) struct PlaneAt<'k> {
    pub(super) part: Part,
    /// Where it begins; `None` for the first.
    pub(super) offset: Option<Reg<'k, u64>>,
    /// Bytes of a row.
    pub(super) pitch: Size<'k>,
}

/// The shape of a product, as its body has it.
pub(super) struct Shape<'k> {
    /// Rows of the matrices.
    pub(super) n: Size<'k>,
    pub(super) slices: Slices<'k>,
    pub(super) planes: Vec<PlaneAt<'k>>,
    /// `1 / k` and epsilon, where the activations are normalised.
    pub(super) mean: Option<[Reg<'k, f32>; 2]>,
}

impl<'k> Shape<'k> {
    /// Asks for the sizes of the product.
    pub(super) fn new(k: K<'k>, product: &Product) -> Self {
        let (whole, rest) = plan::slices(product.layout(), product.k);
        let at = |plane: Plane| {
            let [offset, pitch] = names(plane.part);
            PlaneAt {
                part: plane.part,
                offset: (plane.offset > 0).then(|| k.wide_size(offset, plane.offset)),
                pitch: k.size(pitch, plane.row_bytes as u32),
            }
        };
        Shape {
            n: k.size(ROWS, product.n),
            slices: Slices {
                whole: k.size(WHOLE, whole),
                rest: k.size(REST, rest),
                warps: k.size(WARPS, product.warps),
            },
            planes: product.planes().iter().map(at).collect(),
            mean: product
                .epsilon
                .map(|epsilon| [k.factor(INVERSE, product.inverse_k()), k.factor(EPSILON, epsilon)]),
        }
    }
}

impl Product {
    fn planes(&self) -> Planes {
        Planes::new(self.format, self.n, self.k)
    }

    fn inverse_k(&self) -> f32 {
        1.0 / self.k as f32
    }

    /// Whether the matrices have fewer rows than a tile.
    pub(super) fn few_rows(&self) -> bool {
        self.n < self.tile_rows()
    }

    /// What [`Shape::new`] asks for; nothing where there are more columns than one.
    pub(super) fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        if self.batch > 1 {
            return Vec::new();
        }
        let (whole, rest) = plan::slices(self.layout(), self.k);
        let mut sizes = vec![
            (ROWS, SizeValue::U32(self.n)),
            (WHOLE, SizeValue::U32(whole)),
            (REST, SizeValue::U32(rest)),
        ];
        for plane in self.planes().iter() {
            let [offset, pitch] = names(plane.part);
            if plane.offset > 0 {
                sizes.push((offset, SizeValue::U64(plane.offset)));
            }
            sizes.push((pitch, SizeValue::U32(plane.row_bytes as u32)));
        }
        if let Some(epsilon) = self.epsilon {
            sizes.push((INVERSE, SizeValue::F32(self.inverse_k())));
            sizes.push((EPSILON, SizeValue::F32(epsilon)));
        }
        sizes.push((WARPS, SizeValue::U32(self.warps)));
        sizes
    }
}

impl QuantGemv {
    /// The one product whose sizes are open, if that is what the launch is.
    fn open(&self, epsilon: Option<f32>) -> Option<Product> {
        match self.products(epsilon)[..] {
            [product] if product.batch == 1 => Some(product),
            _ => None,
        }
    }

    pub(super) fn open_sizes(&self, epsilon: Option<f32>) -> Vec<(&'static str, SizeValue)> {
        self.open(epsilon).map_or(Vec::new(), |product| product.sizes())
    }

    /// The parts of a launch that do not depend on one another, for blocks of so many threads: a product for each
    /// result, with a number of warps that a team may have, and its arguments by its own names and the whole's. `None`
    /// where it is one such product already, or has more columns than one.
    pub(super) fn parts(&self, epsilon: Option<f32>, threads: u32) -> Option<Vec<(QuantGemv, Names)>> {
        let products = self.products(epsilon);
        let first = products.first().filter(|_| self.batch == 1)?;
        let most = plan::TEAMS.into_iter().filter(|warps| warps * 32 <= threads).max()?;
        if let (Some(warps), [_]) = (self.warps, &products[..])
            && plan::TEAMS.contains(&warps)
            && warps <= most
        {
            return None;
        }
        let tiles: u64 = products.iter().map(|product| u64::from(product.tiles())).sum();
        let warps = |product: &Product| plan::team_warps(product.layout(), self.k, tiles, most);
        if self.swiglu {
            let names = self.names(epsilon).into_iter().map(|name| (name, name)).collect();
            return Some(vec![(QuantGemv { warps: Some(warps(first)), ..self.clone() }, names)]);
        }
        let part = |(i, (&matrix, product)): (usize, (&Matrix, &Product))| {
            let part = QuantGemv { matrices: vec![matrix], warps: Some(warps(product)), ..self.clone() };
            let of_whole = |name| MATRIX_NAMES.iter().find(|of| of[0] == name).map_or(name, |of| of[i]);
            let names = part.names(epsilon).into_iter().map(|name| (name, of_whole(name))).collect();
            (part, names)
        };
        Some(self.matrices.iter().zip(&products).enumerate().map(part).collect())
    }
}
