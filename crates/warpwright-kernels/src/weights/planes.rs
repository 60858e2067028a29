//! Where the planes of a weight matrix lie in its buffer: the numbers of `docs/weights.md`.

use super::WeightFormat;

/// What a plane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Weights that are numbers, each row filled up with zeros to a multiple of 16 bytes.
    Values,
    /// The numbers that are scaled, or their low four bits.
    Quants,
    /// The fifth bits of Q5_K.
    Fifth,
    /// The upper two bits of Q6_K.
    Upper,
    /// Scales and minima of Q4_K and Q5_K.
    Headers,
    /// Scales: `f16` of each 32 weights, for Q6_K bytes of each 16.
    Scales,
    /// The `f16` of each superblock of Q6_K.
    D,
}

impl Part {
    /// Its name: `quants`, `headers`.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Values => "values",
            Part::Quants => "quants",
            Part::Fifth => "fifth",
            Part::Upper => "upper",
            Part::Headers => "headers",
            Part::Scales => "scales",
            Part::D => "d",
        }
    }
}

/// A plane: `n` rows of as many bytes, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// What it holds.
    pub part: Part,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Where it begins in the buffer, in bytes: a multiple of [`Planes::ALIGNMENT`].
    pub offset: u64,
}

/// The planes of a matrix of `n` rows of `k` weights.
///
/// ```
/// use warpwright_kernels::weights::{Part, Planes, WeightFormat};
///
/// let planes = Planes::new(WeightFormat::Q4K, 3, 512);
/// let headers = planes.get(Part::Headers).expect("a plane of this format");
/// assert_eq!((headers.offset, headers.row_bytes), (768, 32));
/// assert_eq!(planes.bytes(), 768 + 3 * 32);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    format: WeightFormat,
    n: u32,
    k: u32,
    planes: Vec<Plane>,
}

impl Planes {
    /// Bytes that planes begin at multiples of.
    pub const ALIGNMENT: u64 = 256;

    /// The planes of `n` rows of `k` weights. Where `k` is not a multiple of the format's block, what is
    /// beyond the last whole block has no room; kernels refuse such a `k` when they are built.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        let mut offset = 0u64;
        let planes = parts(format, k)
            .into_iter()
            .map(|(part, row_bytes)| {
                let plane = Plane { part, row_bytes, offset };
                // Sizes that no kernel takes end at the largest number there is.
                let end = offset.saturating_add(u64::from(n).saturating_mul(row_bytes));
                offset = end.checked_next_multiple_of(Self::ALIGNMENT).unwrap_or(u64::MAX);
                plane
            })
            .collect();
        Planes { format, n, k, planes }
    }

    /// The format.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Rows.
    pub fn n(&self) -> u32 {
        self.n
    }

    /// Weights of a row.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The planes, in the order in which they lie.
    pub fn iter(&self) -> impl Iterator<Item = Plane> + '_ {
        self.planes.iter().copied()
    }

    /// The plane of that part, if the format has one.
    pub fn get(&self, part: Part) -> Option<Plane> {
        self.iter().find(|plane| plane.part == part)
    }

    /// Bytes of the buffer: to the end of the last plane.
    pub fn bytes(&self) -> u64 {
        self.planes
            .last()
            .map_or(0, |last| last.offset.saturating_add(u64::from(self.n).saturating_mul(last.row_bytes)))
    }
}

/// The parts of a format, in order, with the bytes of a row of `k` weights.
fn parts(format: WeightFormat, k: u32) -> Vec<(Part, u64)> {
    let weights = u64::from(format.blocks(k)) * u64::from(format.block());
    let (quarter, eighth, sixteenth) = (weights / 4, weights / 8, weights / 16);
    match format {
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => {
            vec![(Part::Values, format.row_bytes(k).next_multiple_of(16))]
        }
        WeightFormat::Q8_0 => vec![(Part::Quants, weights), (Part::Scales, sixteenth)],
        WeightFormat::Q4_0 => vec![(Part::Quants, weights / 2), (Part::Scales, sixteenth)],
        WeightFormat::Q4K => vec![(Part::Quants, weights / 2), (Part::Headers, sixteenth)],
        WeightFormat::Q5K => {
            vec![(Part::Quants, weights / 2), (Part::Fifth, eighth), (Part::Headers, sixteenth)]
        }
        WeightFormat::Q6K => vec![
            (Part::Quants, weights / 2),
            (Part::Upper, quarter),
            (Part::Scales, sixteenth),
            (Part::D, weights / 128),
        ],
    }
}
