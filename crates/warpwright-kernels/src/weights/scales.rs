//! The scales of a unit of 64 weights, decoded on the device from the bytes beside the codes.

use warpwright_dsl::*;

/// The records that a unit needs, as words; those of less than a word are its low bytes.
#[derive(Clone, Debug)]
pub(crate) struct Records<'k> {
    pub(super) words: Vec<Vec<Reg<'k, u32>>>,
    /// The number of the unit in its block.
    pub(super) unit: Reg<'k, u32>,
}

impl<'k> Records<'k> {
    /// Word `word` of record `record`.
    pub(super) fn word(&self, record: usize, word: usize) -> Reg<'k, u32> {
        self.words[record][word]
    }

    /// The half in the low bytes of a record.
    pub(super) fn half(&self, record: usize) -> Reg<'k, f32> {
        self.word(record, 0).bits::<F16x2>().f32x2()[0]
    }
}

/// The scales of a unit: a weight of part `p` is `d · scales[p] · quant - dmin · minima[p]`.
#[derive(Clone, Debug)]
pub(crate) struct Scales<'k> {
    /// 1 where there is none.
    pub(crate) d: Option<Reg<'k, f32>>,
    /// By part.
    pub(crate) scales: Vec<Reg<'k, f32>>,
    /// 1 where there is none.
    pub(crate) dmin: Option<Reg<'k, f32>>,
    /// By part; none where the format has none.
    pub(crate) minima: Vec<Reg<'k, f32>>,
}

impl<'k> Scales<'k> {
    /// A scale for each part, and nothing else.
    pub(super) fn of_parts(scales: impl IntoIterator<Item = Reg<'k, f32>>) -> Self {
        Scales { d: None, scales: scales.into_iter().collect(), dmin: None, minima: Vec::new() }
    }

    /// The scale and the minimum of part `p`, exactly.
    pub(crate) fn part(&self, p: usize) -> (Reg<'k, f32>, Option<Reg<'k, f32>>) {
        let times = |d: Option<Reg<'k, f32>>, by: Reg<'k, f32>| d.map_or(by, |d| d * by);
        (times(self.d, self.scales[p]), self.minima.get(p).map(|&minimum| times(self.dmin, minimum)))
    }
}

/// Blocks of 32 with `f16 d`.
pub(super) fn of_d<'k>(records: &Records<'k>) -> Scales<'k> {
    Scales::of_parts(records.word(0, 0).bits::<F16x2>().f32x2())
}

/// Blocks of 32 with `f16 d, m`, for `d · q + m`.
pub(super) fn of_d_and_m<'k>(records: &Records<'k>) -> Scales<'k> {
    let [[d0, m0], [d1, m1]] = [0, 1].map(|block| records.word(0, block).bits::<F16x2>().f32x2());
    Scales { minima: vec![-m0, -m1], ..Scales::of_parts([d0, d1]) }
}

/// The half at byte `at`.
pub(super) fn half(block: &[u8], at: usize) -> f64 {
    let bits = u16::from_le_bytes([block[at], block[at + 1]]);
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if sign == 0 { magnitude } else { -magnitude }
}
