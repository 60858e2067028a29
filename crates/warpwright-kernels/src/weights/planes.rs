//! The layout of the planes of a weight matrix in its buffer, as in `docs/weights.md`.

use super::WeightFormat;
use super::codes::Cut;

/// Weights of a unit, for which planes have records.
pub(crate) const UNIT: u32 = 64;

/// A plane: rows of equal length in bytes, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// What it holds: `values`, or `codes`, `rest`, and the format's records by their names.
    pub name: &'static str,
    /// Rows: those of the matrix, or one.
    pub rows: u32,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// The offset of the plane in the buffer, in bytes: a multiple of [`Planes::ALIGNMENT`].
    pub offset: u64,
}

/// The planes of a matrix of `n` rows of `k` weights.
///
/// ```
/// use warpwright_kernels::weights::{Planes, WeightFormat};
///
/// let planes = Planes::new(WeightFormat::Q4K, 3, 512);
/// let headers = planes.get("headers").expect("a plane of this format");
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
    /// Alignment of planes, in bytes.
    pub const ALIGNMENT: u64 = 256;

    /// The planes of `n` rows of `k` weights. If `k` is not a multiple of the format's block, the weights after the
    /// last whole block get no room; kernels refuse such a `k` when they are built.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        let mut offset = 0u64;
        let planes = parts(format, n, k)
            .into_iter()
            .map(|(name, rows, row_bytes)| {
                let plane = Plane { name, rows, row_bytes, offset };
                // Sizes that no kernel takes end at the largest number there is.
                let end = offset.saturating_add(u64::from(rows).saturating_mul(row_bytes));
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

    /// The planes, in memory order.
    pub fn iter(&self) -> impl Iterator<Item = Plane> + '_ {
        self.planes.iter().copied()
    }

    /// The plane of that name, if the format has it.
    pub fn get(&self, name: &str) -> Option<Plane> {
        self.iter().find(|plane| plane.name == name)
    }

    /// Bytes of the buffer, up to the end of the last plane.
    pub fn bytes(&self) -> u64 {
        let end =
            |last: &Plane| last.offset.saturating_add(u64::from(last.rows).saturating_mul(last.row_bytes));
        self.planes.last().map_or(0, end)
    }
}

/// The names of a format's planes in order, with their rows and the bytes of a row of `k` weights.
fn parts(format: WeightFormat, n: u32, k: u32) -> Vec<(&'static str, u32, u64)> {
    let Some(quants) = format.quants() else {
        return vec![("values", n, format.row_bytes(k).next_multiple_of(16))];
    };
    let blocks = u64::from(format.blocks(k));
    let units = (blocks * u64::from(format.block())).div_ceil(UNIT.into());
    let Cut { main, rest } = Cut::of(quants);
    let mut parts = vec![("codes", n, units * u64::from(UNIT / 8 * main))];
    if rest > 0 {
        parts.push(("rest", n, units * u64::from(UNIT / 8 * rest)));
    }
    for record in quants.records {
        let of_unit = || units * u64::from(record.unit_bytes(format.block()));
        let bytes = if record.shared_out { of_unit() } else { blocks * u64::from(record.bytes) };
        parts.push((record.name, n, bytes));
    }
    if quants.tensor_scale {
        parts.push(("tensor_scale", 1, 4));
    }
    parts
}
