//! How the arithmetic of each [`TensorCore`] is known: measured on which hardware, or assumed. The table of
//! [`model`](super::model), as data.

use super::{FloatElement, TensorCore};

/// A kind of product, as far as evidence of its arithmetic differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductKind {
    /// `mma.sync` or `wmma` without a quad.
    Dense,
    /// `mma.sync.m8n8k4` with `f16` factors: four products at once.
    Quad,
    /// `mma.sp`.
    Sparse,
    /// With block scales.
    Scaled,
    /// `wgmma`.
    Warpgroup,
    /// `wgmma` with a sparse left factor.
    SparseWarpgroup,
}

/// How an arithmetic is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// From measurements of this hardware.
    Measured(&'static str),
    /// It is not; this is what is taken instead.
    Assumed(&'static str),
}

impl TensorCore {
    /// The hardware that was measured, and its architectures; `None`: none is followed by this model.
    pub const fn hardware(self) -> Option<(&'static str, &'static [u16])> {
        Some(match self {
            TensorCore::V100 => ("V100", &[70]),
            TensorCore::A100 => ("A100 and A2", &[80, 86]),
            TensorCore::Ada => ("Ada and L40S", &[89]),
            TensorCore::H100 => ("H100 and H200", &[90]),
            TensorCore::B200 => ("B200", &[100]),
            TensorCore::Rtx50 | TensorCore::Exact => return None,
        })
    }

    /// How the arithmetic of a product of floating-point factors is known, on a device of architecture `sm`. `halves`:
    /// its sums are `f16`.
    pub fn evidence(self, sm: u16, kind: ProductKind, factors: [FloatElement; 2], halves: bool) -> Evidence {
        use Evidence::{Assumed, Measured};
        use FloatElement::*;
        use ProductKind::*;
        if self == TensorCore::Exact {
            return Assumed("one rounding of the exact sum, as no hardware does");
        }
        let is_any = |these: &[FloatElement]| factors.iter().any(|factor| these.contains(factor));
        if kind == Scaled || is_any(&[E3M2, E2M3, E2M1]) {
            return Assumed("one rounding of the exact sum");
        }
        match kind {
            // Whatever the core is, they are those of Hopper.
            Warpgroup => return Measured("H200"),
            SparseWarpgroup => return Assumed("as `wgmma` without zeros left out"),
            Dense | Sparse | Quad | Scaled => {}
        }
        let eight_bits = is_any(&[E4M3, E5M2]);
        match (kind, self) {
            (Dense | Sparse, TensorCore::Rtx50) if eight_bits => {
                return Assumed("one rounding of the exact sum");
            }
            (_, TensorCore::Rtx50) => return Assumed("as on B200"),
            (Dense, TensorCore::B200) if eight_bits => return Assumed("as on H200"),
            _ => {}
        }
        let Some((hardware, of)) = self.hardware() else { return Assumed("one rounding of the exact sum") };
        if !of.contains(&sm) {
            return match self {
                TensorCore::V100 => Assumed("as on V100"),
                TensorCore::A100 => Assumed("as on A100"),
                TensorCore::Ada => Assumed("as on Ada"),
                _ if sm < 100 => Assumed("as on H200"),
                _ => Assumed("as on B200"),
            };
        }
        match self {
            TensorCore::H100 => Measured("H200"),
            // What was published has dense products with `f32` sums.
            _ if halves => Assumed("`f16` sums are rounded as on H200"),
            TensorCore::V100 => Measured(hardware),
            _ if kind == Quad => Assumed("multiply-adds, as on H200"),
            _ if kind == Sparse => Assumed("as dense products"),
            _ => Measured(hardware),
        }
    }

    /// How the arithmetic of `tcgen05.mma` is known, of factors of 16 bits or more, or of fewer.
    pub fn evidence_of_tensor_memory(self, wide: bool) -> Evidence {
        match wide && self != TensorCore::Exact {
            true => Evidence::Assumed("as `mma.sync` on B200"),
            false => Evidence::Assumed("one rounding of the exact sum"),
        }
    }

    /// How the arithmetic of products of `f64` factors is known.
    pub fn evidence_of_doubles(self) -> Evidence {
        match self {
            TensorCore::H100 => Evidence::Measured("H200"),
            _ => Evidence::Assumed("multiply-adds along k, as on H200"),
        }
    }
}
