//! Which bytes of a tensor a tile is made of, or columns of a convolution.

use crate::device::{Im2col, Im2colMode, TensorMap};

/// Dimensions of a tensor at most.
const MAX_RANK: usize = 5;

/// Elements that 16 bytes of shared memory have where they are padded.
const PADDED: i64 = 16;

/// Elements beside each other that are in the tensor, and in the tile.
pub(super) struct Run {
    /// Where in global memory.
    pub(super) address: u64,
    /// Where in the tile.
    pub(super) at: u32,
    /// In global memory.
    pub(super) bytes: u32,
}

/// What a tile is made of, row by row.
pub(super) struct Walk<'a> {
    map: &'a TensorMap,
    /// What is in the tensor.
    pub(super) runs: Vec<Run>,
    rows: u32,
}

impl<'a> Walk<'a> {
    fn new(map: &'a TensorMap, rows: u32) -> Self {
        Walk { map, runs: Vec::with_capacity(rows as usize), rows: 0 }
    }

    /// Bytes that are copied, those outside of the tensor included.
    pub(super) fn bytes(&self) -> u32 {
        self.rows * self.map.row_bytes()
    }

    /// Bytes of shared memory that they are in.
    pub(super) fn extent(&self) -> u32 {
        self.rows * self.map.row_pitch()
    }

    /// The row that begins at those coordinates.
    fn row(&mut self, at: &[i64; MAX_RANK]) {
        let map = self.map;
        let begin = self.rows * map.row_pitch();
        self.rows += 1;
        let mut address = map.address as i64;
        for (dim, stride) in map.strides.iter().enumerate() {
            let (at, size) = (at[dim + 1], map.dims[dim + 1] as i64);
            if !(0..size).contains(&at) {
                return;
            }
            address = address.wrapping_add(at.wrapping_mul(*stride as i64));
        }
        let bits = i64::from(map.unit_bits());
        let step = if map.im2col.is_some() { 1 } else { i64::from(map.steps[0]) };
        // Of the elements of the row, those from one to another are in the tensor.
        let behind = |coordinate: i64| (coordinate - at[0] + step - 1).div_euclid(step).max(0);
        let first = behind(0);
        let end = behind(map.dims[0] as i64).min(map.row_count().into());
        // Which stay together, and bits of each in shared memory.
        let (together, pitch) = match map.element.is_padded() {
            true => (PADDED, 8),
            false if step == 1 => (end - first, bits),
            false => (1, bits),
        };
        let mut element = first;
        while element < end {
            self.runs.push(Run {
                address: address.wrapping_add((at[0] + element * step) * bits / 8) as u64,
                at: begin + (element * pitch / 8) as u32,
                bytes: (together * bits / 8) as u32,
            });
            element += together;
        }
    }
}

/// A tile, or rows of a matrix: the coordinates of `rows` follow that of the column.
pub(super) fn tile<'a>(map: &'a TensorMap, rows: bool, coordinates: &[i64]) -> Walk<'a> {
    let mut counts: Vec<u32> = map.counts().collect();
    if rows {
        counts[1] = coordinates.len() as u32 - 1;
    }
    let count = counts[1..].iter().product();
    let mut walk = Walk::new(map, count);
    let mut at = [coordinates[0]; MAX_RANK];
    for index in 0..count {
        let mut left = index;
        for dim in 1..counts.len() {
            let step = left % counts[dim];
            left /= counts[dim];
            at[dim] = match rows {
                true => coordinates[1 + step as usize],
                false => coordinates[dim] + i64::from(step * map.steps[dim]),
            };
        }
        walk.row(&at);
    }
    walk
}

/// Columns of a convolution. `offsets` are those of the filter, or halo and offset along the width.
///
/// The corner of the filter moves through the box along the width, the height, the depth and the images, by the steps.
/// Of 128 pixels along the width each 32 have a halo of their own, the pixels that the corner reaches next: the first of
/// all four stand behind the pixels, then the second.
///
/// # Errors
/// What the ISA does not allow.
pub(super) fn columns<'a>(
    map: &'a TensorMap,
    im2col: &Im2col,
    coordinates: &[i64],
    offsets: &[u32],
) -> Result<Walk<'a>, String> {
    let (first, last) = (map.first_of_image(), map.dims.len() - 1);
    let is_wide = im2col.mode != Im2colMode::Spatial;
    let is_128 = im2col.mode == Im2colMode::Wide128;
    let most: &[u32] = match (is_wide, is_128, last) {
        (true, true, _) => &[31, 31],
        (true, ..) => &[511, 31],
        (_, _, 2) => &[0xffff],
        (_, _, 3) => &[0xff; 2],
        _ => &[0x1f; 3],
    };
    if let Some((offset, most)) = offsets.iter().zip(most).find(|(offset, most)| offset > most) {
        return Err(format!("an offset of {offset}: it is {most} at most in this form"));
    }
    let (halo, shift) = match (is_wide, offsets) {
        (true, [halo, offset]) => (*halo, i64::from(*offset)),
        _ => (0, 0),
    };
    let mut begins = [0; MAX_RANK];
    let mut ends = [0; MAX_RANK];
    // How far a pixel is from the corner of the filter.
    let mut distance = [0; MAX_RANK];
    let mut at = [0; MAX_RANK];
    at[..coordinates.len()].copy_from_slice(coordinates);
    at[first] += shift;
    let image = first..first + im2col.lower.len();
    for (dim, (lower, upper)) in image.clone().zip(im2col.lower.iter().zip(&im2col.upper)) {
        begins[dim] = i64::from(*lower) + shift;
        ends[dim] = map.dims[dim] as i64 + i64::from(*upper) + shift;
        // Along the width the first pixel may be before the box.
        if at[dim] >= ends[dim] || (at[dim] < begins[dim] && !is_wide) {
            let (begin, end) = (begins[dim], ends[dim] - 1);
            return Err(format!(
                "columns from {} on in dimension {dim}: the box has {begin} to {end}",
                at[dim]
            ));
        }
        if !is_wide {
            distance[dim] = offsets.get(dim - first).copied().unwrap_or(0).into();
        }
    }
    let advance = |at: &mut [i64; MAX_RANK]| {
        for dim in image.clone() {
            at[dim] += i64::from(map.steps[dim]);
            if at[dim] < ends[dim] {
                return;
            }
            at[dim] = begins[dim];
        }
        at[last] += i64::from(map.steps[last]);
    };
    let pixel = |at: &[i64; MAX_RANK]| std::array::from_fn(|dim| at[dim] + distance[dim]);
    let (pixels, groups) = if is_128 { (128, 4) } else { (map.tile[1], 1) };
    let mut walk = Walk::new(map, pixels + halo * groups);
    let mut halos = Vec::with_capacity(groups as usize);
    for index in 0..pixels {
        walk.row(&pixel(&at));
        advance(&mut at);
        if (index + 1) % (pixels / groups) == 0 {
            halos.push(at);
        }
    }
    for _ in 0..halo {
        for at in &mut halos {
            walk.row(&pixel(at));
            advance(at);
        }
    }
    Ok(walk)
}
