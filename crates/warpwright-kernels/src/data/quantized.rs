//! Output rows that are either floats, or eight-bit quants with a scale for each 32.

use crate::data::eight_bits::{BLOCK, quantize};
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;

/// A buffer of rows that are written as floats or as `q8_0`: a handle, free to copy.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'k> {
    Floats(Floats<'k>),
    Q8_0 { quants: Ptr<'k, Global, i8>, scales: Ptr<'k, Global, F16> },
}

impl<'k> Rows<'k> {
    /// The rows of a buffer, and of that of its scales for `q8_0`.
    #[track_caller]
    pub(crate) fn of(elements: AnyPtr<'k>, scales: Option<Ptr<'k, Global, F16>>) -> Self {
        match scales {
            Some(scales) => Rows::Q8_0 { quants: elements.typed(), scales },
            None => Rows::Floats(elements.into()),
        }
    }

    /// The numbers from element `at` on, of `q8_0` four or eight; zeros where the predicate does not hold.
    #[track_caller]
    pub(crate) fn load(
        self,
        k: K<'k>,
        inside: Option<Reg<'k, Pred>>,
        at: Reg<'k, u32>,
        count: u32,
    ) -> Vec<Reg<'k, f32>> {
        match self {
            Rows::Floats(floats) => floats.load(inside, at, count),
            Rows::Q8_0 { quants, scales } => {
                let inside = inside.unwrap_or(k.pred(true));
                let words = quants.at(at).cast::<u32>();
                let scale = scales.ld_if(inside, at / BLOCK, 0.0).f32();
                let words = words.ld_many(inside, 0, count / 4, 0);
                let quants = words.into_iter().flat_map(|word| word.signed_bytes_f32());
                quants.map(|quant| quant * scale).collect()
            }
        }
    }

    /// The rows from row `row` on, rows of `d` elements; for `q8_0` a multiple of 32.
    #[track_caller]
    pub(crate) fn row(self, row: Reg<'k, u64>, d: u32) -> Self {
        match self {
            Rows::Floats(floats) => Rows::Floats(floats.at(row * u64::from(d))),
            Rows::Q8_0 { quants, scales } => Rows::Q8_0 {
                quants: quants.at(row * u64::from(d)),
                scales: scales.at(row * u64::from(d / BLOCK)),
            },
        }
    }

    /// The rows from row `row` on, rows of `pitch` elements; for `q8_0` a multiple of 32.
    #[track_caller]
    pub(crate) fn row_of(self, row: Reg<'k, u64>, pitch: Dim<'k>) -> Self {
        let pitch = pitch.wide();
        match self {
            Rows::Floats(floats) => Rows::Floats(floats.at(row * pitch)),
            Rows::Q8_0 { quants, scales } => Rows::Q8_0 {
                quants: quants.at(row * pitch),
                scales: scales.at(row * (pitch / u64::from(BLOCK))),
            },
        }
    }

    /// Stores numbers from element `at` on where the predicate holds. All lanes of the warp take part; for
    /// `q8_0` neighbouring lanes have the parts of a block.
    ///
    /// A `q8_0` scale is a half, and quants are rounded for the scale as it is stored: `|x - scale · q| ≤
    /// 0.57 · scale` up to a magnitude of 127 · 65504, and beyond it the largest that there is. Blocks whose
    /// scale would be below 2⁻²⁵ are zeros.
    #[track_caller]
    pub(crate) fn store(
        self,
        k: K<'k>,
        inside: Option<Reg<'k, Pred>>,
        at: Reg<'k, u32>,
        values: &[Reg<'k, f32>],
    ) {
        match self {
            Rows::Floats(floats) => floats.store(inside, at, values),
            Rows::Q8_0 { quants, scales } => {
                let quantized = quantize(k, values, |scale| Dtype::F16.round(scale));
                quantized.store(inside, quants, at);
                let first = quantized.is_first(k);
                let stores = inside.map_or(first, |inside| inside & first);
                scales.st_if(stores, at / BLOCK, quantized.scale.to_f16_saturating());
            }
        }
    }
}
