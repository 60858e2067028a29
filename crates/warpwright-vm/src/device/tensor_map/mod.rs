//! Tensor maps: what a copy of a tile, or of columns of a convolution, needs to know of the tensor.
//!
//! The ISA calls the 128 bytes opaque. Here they are, in little-endian order:
//!
//! ```text
//! bytes   0..8    address
//!         8..28   size of each dimension, in elements; 0 for 2^32
//!        28       dimensions, less one
//!        29       type of the elements
//!        30       interleaving in bits 0..4, fill in bits 4..8
//!        31       swizzling in bits 0..4, its unit in bits 4..8
//!        32..64   stride of each dimension but the first, in bytes
//!        64..74   size of the box in each dimension, in elements
//!                 (of columns: channels of a pixel, pixels of a column)
//!        74..84   step between elements in each dimension
//!        84       what is copied: 0 for tiles, 1 for columns, 2 and 3 for columns along the width
//!        86..92   lower corners, along the width first
//!        92..98   upper corners
//! ```
//!
//! Numbers of types and modes are those of `tensormap.replace`.

mod element;

pub use element::{TensorElement, TensorInterleave, TensorSwizzle};

use std::fmt;

/// Bytes of a tensor map, and what its address is a multiple of.
pub const TENSOR_MAP_BYTES: usize = 128;
pub(crate) const TENSOR_MAP_ALIGN: u32 = 64;

/// Dimensions of a tensor at most.
const MAX_RANK: usize = 5;

/// Which pixels the columns of a convolution have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Im2colMode {
    /// Those of all images, along all their dimensions: `.im2col` and `.im2col_no_offs`.
    Spatial = 1,
    /// Along the width of all images, in one row of each: `.im2col::w`.
    Wide = 2,
    /// The same, 128 of them: `.im2col::w::128`.
    Wide128 = 3,
}

/// The box of the columns of a convolution: where the corner of the filter can be. It is that of the images, each end moved
/// by a corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Im2col {
    /// Which pixels.
    pub mode: Im2colMode,
    /// Where the box begins along the width, the height and the depth; the width alone in a wide mode.
    pub lower: Vec<i32>,
    /// Where it ends, from the last pixel on.
    pub upper: Vec<i32>,
}

/// A tensor in global memory, and what copies take from it.
///
/// Dimension 0 is the one whose elements are beside each other. For columns the dimensions are channels, width, height,
/// depth and images. In slices they are width, height, depth, slices and images ([`TensorInterleave`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the first element.
    pub address: u64,
    /// The type of the elements.
    pub element: TensorElement,
    /// The size of each dimension, in elements: one to five of them.
    pub dims: Vec<u64>,
    /// The stride of each dimension but the first, in bytes.
    pub strides: Vec<u64>,
    /// The size of the box in each dimension. Where the step is not 1, the elements of it that are copied are fewer. Of
    /// columns: the channels of a pixel and the pixels of a column.
    pub tile: Vec<u32>,
    /// The step between copied elements in each dimension: 1 to 8, and 1 in dimension 0 without slices.
    pub steps: Vec<u32>,
    /// Whether channels are in slices.
    pub interleave: TensorInterleave,
    /// The columns that are copied; tiles without.
    pub im2col: Option<Im2col>,
    /// How tiles are permuted in shared memory.
    pub swizzle: TensorSwizzle,
    /// What stands for elements outside of the tensor: a NaN, or zero.
    pub nan_fill: bool,
}

/// Why there is no such tensor map: the rule, and what breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapError(String);

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TensorMapError {}

fn refuse<T>(message: String) -> Result<T, TensorMapError> {
    Err(TensorMapError(message))
}

impl TensorMap {
    /// A tensor whose elements follow each other without gaps, in tiles of that size.
    pub fn dense(address: u64, element: TensorElement, dims: &[u64], tile: &[u32]) -> TensorMap {
        let mut strides = Vec::new();
        let mut bytes = u64::from(element.bits());
        for dim in dims.iter().take(dims.len().saturating_sub(1)) {
            bytes = bytes.saturating_mul(*dim);
            strides.push(bytes / 8);
        }
        TensorMap {
            address,
            element,
            dims: dims.to_vec(),
            strides,
            tile: tile.to_vec(),
            steps: vec![1; dims.len()],
            interleave: TensorInterleave::None,
            im2col: None,
            swizzle: TensorSwizzle::None,
            nan_fill: false,
        }
    }

    /// Columns of the convolution of a tensor in the layout NHWC (or NWC, NDHWC) without gaps: `box_size` has the channels
    /// of a pixel and the pixels of a column.
    pub fn columns(
        address: u64,
        element: TensorElement,
        dims: &[u64],
        box_size: [u32; 2],
        im2col: Im2col,
    ) -> TensorMap {
        let map = TensorMap::dense(address, element, dims, &box_size);
        TensorMap { im2col: Some(im2col), ..map }
    }

    /// The rules of the driver's API and of the ISA.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let rank = self.dims.len();
        let slice = self.interleave.slice();
        let least = if slice.is_some() || self.im2col.is_some() { 3 } else { 1 };
        if !(least..=MAX_RANK).contains(&rank) {
            return refuse(format!("a tensor of {rank} dimensions: there are {least} to {MAX_RANK}"));
        }
        let sizes = if self.im2col.is_some() { 2 } else { rank };
        for (what, count, expected) in [
            ("strides", self.strides.len(), rank - 1),
            ("sizes of the box", self.tile.len(), sizes),
            ("steps", self.steps.len(), rank),
        ] {
            if count != expected {
                return refuse(format!(
                    "{count} {what} for a tensor of {rank} dimensions: it has {expected}"
                ));
            }
        }
        let padded = self.element.is_padded();
        let unit = if padded || slice == Some(32) { 32 } else { 16 };
        if !self.address.is_multiple_of(unit) {
            return refuse(format!(
                "a tensor at {:#x}: its address must be a multiple of {unit}",
                self.address
            ));
        }
        for (dim, &size) in self.dims.iter().enumerate() {
            if !(1..=1 << 32).contains(&size) {
                return refuse(format!("dimension {dim} of {size} elements: it has 1 to 2^32"));
            }
        }
        let even = match self.element {
            TensorElement::B4x16 => 2,
            _ if padded => 128,
            _ => 1,
        };
        if !self.dims[0].is_multiple_of(even) {
            let bits = self.element.bits();
            let rule = format!("they must be a multiple of {even}");
            return refuse(format!("{} elements of {bits} bits in a row: {rule}", self.dims[0]));
        }
        for (dim, &stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(unit) || stride >= 1 << 40 {
                let rule = format!("it must be a multiple of {unit} and less than 2^40");
                return refuse(format!("a stride of {stride} bytes in dimension {}: {rule}", dim + 1));
            }
        }
        for (dim, &size) in self.tile.iter().enumerate() {
            let most = if self.im2col.is_some() && dim == 1 { 1024 } else { 256 };
            if !(1..=most).contains(&size) {
                return refuse(format!("a box of {size} elements in dimension {dim}: it has 1 to {most}"));
            }
        }
        for (dim, &step) in self.steps.iter().enumerate() {
            let is_one = dim == 0 && slice.is_none();
            if !(1..=8).contains(&step) || (is_one && step != 1) {
                let rule = if is_one { "it is 1 there" } else { "it is 1 to 8" };
                return refuse(format!("a step of {step} in dimension {dim}: {rule}"));
            }
        }
        if self.nan_fill && self.element.nan().is_none() {
            return refuse("elements outside of the tensor that are NaN, of a type that has none".to_owned());
        }
        self.check_layout()?;
        self.im2col.as_ref().map_or(Ok(()), |im2col| self.check_columns(im2col))
    }

    /// The rules of rows and of their swizzling.
    fn check_layout(&self) -> Result<(), TensorMapError> {
        use TensorSwizzle::{B32, B96, B128, B128Atom32, B128Atom64, None};
        let swizzle = self.swizzle;
        let refuse_swizzle = |what: &str, rule: &str| {
            refuse(format!("{what} with swizzling of kind {swizzle:?}: it must be {rule}"))
        };
        match self.interleave {
            TensorInterleave::None => {}
            _ if self.element.is_padded() => {
                return refuse(
                    "a layout in slices of elements that are padded: it is not supported".to_owned(),
                );
            }
            TensorInterleave::B32 if swizzle != B32 => {
                return refuse_swizzle("slices of 32 bytes", "within 32 bytes");
            }
            TensorInterleave::B16 if swizzle == B96 => {
                return refuse_swizzle("slices of 16 bytes", "another");
            }
            _ if self.im2col.is_none() && self.tile[self.dims.len() - 2] != 1 => {
                return refuse(
                    "a box of several slices of channels: it must have one, others are not supported"
                        .to_owned(),
                );
            }
            _ => return Ok(()),
        }
        let row = self.tile[0] * self.element.bits();
        if self.element.is_padded() {
            if self.tile[0] != 128 {
                let message = format!("rows of {} elements that are padded in the box", self.tile[0]);
                return refuse(message + ": they must be 128");
            }
            let is_for_stores = self.element == TensorElement::B6x16P32 && swizzle == B128Atom64;
            return match swizzle {
                None | B128 | B128Atom32 => Ok(()),
                _ if is_for_stores => Ok(()),
                _ => refuse_swizzle("elements that are padded", "none, or within 128 bytes by 16 or 32"),
            };
        }
        if !row.is_multiple_of(8 * 16) {
            return refuse(format!("rows of {row} bits in the box: their bytes must be a multiple of 16"));
        }
        match swizzle.span() {
            Some(span) if row / 8 > span => {
                refuse(format!("rows of {} bytes in the box, and swizzling within {span}", row / 8))
            }
            _ => Ok(()),
        }
    }

    /// The rules of columns of a convolution.
    fn check_columns(&self, im2col: &Im2col) -> Result<(), TensorMapError> {
        use TensorSwizzle::{B64, B96, B128, B128Atom32};
        let rank = self.dims.len();
        let (count, bits) = match (im2col.mode, rank) {
            (Im2colMode::Spatial, 4) => (2, 8),
            (Im2colMode::Spatial, 5) => (3, 5),
            _ => (1, 16),
        };
        for (what, corners) in [("lower", &im2col.lower), ("upper", &im2col.upper)] {
            if corners.len() != count {
                return refuse(format!("{} {what} corners: there are {count}", corners.len()));
            }
            let range = -(1 << (bits - 1))..1 << (bits - 1);
            if let Some(corner) = corners.iter().find(|corner| !range.contains(*corner)) {
                let [least, most] = [range.start, range.end - 1];
                return refuse(format!("a {what} corner of {corner}: it is {least} to {most}"));
            }
        }
        let first = self.first_of_image();
        for (at, (&lower, &upper)) in im2col.lower.iter().zip(&im2col.upper).enumerate() {
            if i64::from(lower) >= self.dims[first + at] as i64 + i64::from(upper) {
                let dim = first + at;
                return refuse(format!("corners {lower} and {upper} in dimension {dim}: the box is empty"));
            }
        }
        match (im2col.mode, self.swizzle) {
            (Im2colMode::Spatial, _) => Ok(()),
            _ if self.interleave != TensorInterleave::None => {
                refuse("columns along the width of a layout in slices: there are none".to_owned())
            }
            (_, B64 | B128 | B128Atom32) | (Im2colMode::Wide, B96) => Ok(()),
            (_, swizzle) => refuse(format!(
                "columns along the width with swizzling of kind {swizzle:?}: it must be within 64 or 128 bytes"
            )),
        }
    }

    /// The dimension that is the width of images.
    pub(crate) fn first_of_image(&self) -> usize {
        usize::from(self.interleave == TensorInterleave::None)
    }

    /// The 128 bytes that a kernel gets.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn to_bytes(&self) -> Result<[u8; TENSOR_MAP_BYTES], TensorMapError> {
        self.check()?;
        let mut bytes = [0; TENSOR_MAP_BYTES];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        for (dim, &size) in self.dims.iter().enumerate() {
            bytes[8 + 4 * dim..][..4].copy_from_slice(&(size as u32).to_le_bytes());
        }
        let swizzles = TensorSwizzle::ALL;
        let [mode, unit] =
            swizzles.iter().find(|(swizzle, _)| *swizzle == self.swizzle).map_or([0; 2], |found| found.1);
        bytes[28] = self.dims.len() as u8 - 1;
        bytes[29] = self.element as u8;
        bytes[30] = self.interleave as u8 | u8::from(self.nan_fill) << 4;
        bytes[31] = mode | unit << 4;
        for (dim, stride) in self.strides.iter().enumerate() {
            bytes[32 + 8 * dim..][..8].copy_from_slice(&stride.to_le_bytes());
        }
        let mut fill = |first: usize, values: &mut dyn Iterator<Item = u16>| {
            for (at, value) in values.enumerate() {
                bytes[first + 2 * at..][..2].copy_from_slice(&value.to_le_bytes());
            }
        };
        fill(64, &mut self.tile.iter().map(|&size| size as u16));
        fill(74, &mut self.steps.iter().map(|&step| step as u16));
        if let Some(im2col) = &self.im2col {
            fill(86, &mut im2col.lower.iter().map(|&corner| corner as u16));
            fill(92, &mut im2col.upper.iter().map(|&corner| corner as u16));
            bytes[84] = im2col.mode as u8;
        }
        Ok(bytes)
    }

    /// What 128 bytes say.
    ///
    /// # Errors
    /// They are no tensor map, or of a kind that is not supported, which is named.
    pub fn from_bytes(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, TensorMapError> {
        let number = |at: usize, count: usize| {
            bytes[at..at + count].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let rank = usize::from(bytes[28]) + 1;
        let dims = |at: usize, bytes: usize, skip: usize| {
            (0..rank.min(MAX_RANK) - skip).map(move |dim| number(at + bytes * dim, bytes))
        };
        let Some(element) = TensorElement::from_ptx(bytes[29]) else {
            return refuse(format!("elements of type {} are not supported", bytes[29]));
        };
        let Some(interleave) = TensorInterleave::from_number(bytes[30] & 0xf) else {
            return refuse(format!("interleaving of number {}: there is none", bytes[30] & 0xf));
        };
        let corners = |first: usize, count: usize| -> Vec<i32> {
            (0..count).map(|at| i32::from(number(first + 2 * at, 2) as i16)).collect()
        };
        use Im2colMode::{Spatial, Wide, Wide128};
        let im2col = match bytes[84] {
            0 => None,
            kind @ 1..=3 => {
                let mode = [Spatial, Wide, Wide128][usize::from(kind) - 1];
                let count = if mode == Spatial { rank.clamp(3, MAX_RANK) - 2 } else { 1 };
                Some(Im2col { mode, lower: corners(86, count), upper: corners(92, count) })
            }
            kind => return refuse(format!("copies of kind {kind}: there are none")),
        };
        let mode = [bytes[31] & 0xf, bytes[31] >> 4];
        let swizzle = TensorSwizzle::ALL.into_iter().find(|(_, found)| *found == mode);
        let Some((swizzle, _)) = swizzle else {
            return refuse(format!(
                "swizzling of mode {} in units of mode {}: there is none",
                mode[0], mode[1]
            ));
        };
        let map = TensorMap {
            address: number(0, 8),
            element,
            dims: dims(8, 4, 0).map(|size| if size == 0 { 1 << 32 } else { size }).collect(),
            strides: dims(32, 8, 1).collect(),
            tile: dims(64, 2, 0)
                .take(if im2col.is_some() { 2 } else { MAX_RANK })
                .map(|size| size as u32)
                .collect(),
            steps: dims(74, 2, 0).map(|step| step as u32).collect(),
            interleave,
            im2col,
            swizzle,
            nan_fill: bytes[30] >> 4 != 0,
        };
        map.check()?;
        Ok(map)
    }

    /// What stands for elements outside of the tensor, over 64 bits.
    pub(crate) fn fill(&self) -> u64 {
        self.element.nan().filter(|_| self.nan_fill).unwrap_or(0)
    }

    /// Bits of what is beside each other in dimension 0: an element, or a slice of channels.
    pub(crate) fn unit_bits(&self) -> u32 {
        self.interleave.slice().map_or(self.element.bits(), |slice| 8 * slice)
    }

    /// How many elements of a tile, or slices, are copied in each dimension; the first two are those of columns.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        let is_tile = self.im2col.is_none();
        let step = move |step: &u32| if is_tile { *step } else { 1 };
        self.tile.iter().zip(&self.steps).map(move |(size, by)| size.div_ceil(step(by)))
    }

    /// How many are copied in dimension 0.
    pub(crate) fn row_count(&self) -> u32 {
        match &self.im2col {
            // Of a layout in slices a pixel is one, whatever number of channels it has.
            Some(_) if self.first_of_image() == 0 => 1,
            _ => self.counts().next().unwrap_or(1),
        }
    }

    /// Bytes of a row that are copied.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.row_count() * self.unit_bits() / 8
    }

    /// Bytes of a row in shared memory.
    pub(crate) fn row_pitch(&self) -> u32 {
        if self.element.is_padded() { self.tile[0] } else { self.row_bytes() }
    }
}

/// A field that `tensormap.replace` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapField {
    /// Where it begins, in bits, and how many it has.
    first: u32,
    bits: u32,
}

impl MapField {
    pub(crate) const ADDRESS: MapField = MapField { first: 0, bits: 64 };
    pub(crate) const RANK: MapField = MapField { first: 8 * 28, bits: 8 };
    pub(crate) const ELEMENT: MapField = MapField { first: 8 * 29, bits: 8 };
    pub(crate) const INTERLEAVE: MapField = MapField { first: 8 * 30, bits: 4 };
    pub(crate) const FILL: MapField = MapField { first: 8 * 30 + 4, bits: 4 };
    pub(crate) const SWIZZLE: MapField = MapField { first: 8 * 31, bits: 4 };
    pub(crate) const SWIZZLE_UNIT: MapField = MapField { first: 8 * 31 + 4, bits: 4 };

    pub(crate) const fn dim(dim: u32) -> MapField {
        MapField { first: 8 * (8 + 4 * dim), bits: 32 }
    }

    /// Of dimension `dim + 1`; there is none for the last.
    pub(crate) const fn stride(dim: u32) -> Option<MapField> {
        if dim < 4 { Some(MapField { first: 8 * (32 + 8 * dim), bits: 64 }) } else { None }
    }

    pub(crate) const fn tile(dim: u32) -> MapField {
        MapField { first: 8 * (64 + 2 * dim), bits: 16 }
    }

    pub(crate) const fn step(dim: u32) -> MapField {
        MapField { first: 8 * (74 + 2 * dim), bits: 16 }
    }

    /// The words of a map after a field has changed. A value that is too large for it becomes one that no map has.
    pub(crate) fn replace(self, words: &mut [u32; TENSOR_MAP_BYTES / 4], value: u64) {
        let most = u64::MAX >> (64 - self.bits);
        let value = value.min(most);
        for bit in 0..self.bits {
            let (word, shift) = ((self.first + bit) / 32, (self.first + bit) % 32);
            let word = &mut words[word as usize];
            *word = *word & !(1 << shift) | (((value >> bit) as u32) & 1) << shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        let mut map = TensorMap::dense(0x7000, TensorElement::F16, &[72, 5, 1 << 32], &[64, 4, 2]);
        map.steps = vec![1, 2, 8];
        map.swizzle = TensorSwizzle::B128Atom64;
        map.nan_fill = true;
        map
    }

    #[test]
    fn bytes_say_what_a_map_was() {
        let written = map();
        assert_eq!(written.strides, [144, 720]);
        assert_eq!(TensorMap::from_bytes(&written.to_bytes().unwrap()).unwrap(), written);
        for (swizzle, _) in TensorSwizzle::ALL {
            let written = TensorMap { swizzle, tile: vec![16, 1, 1], ..map() };
            assert_eq!(TensorMap::from_bytes(&written.to_bytes().unwrap()).unwrap().swizzle, swizzle);
        }
        assert!(TensorMap::from_bytes(&[0; 128]).is_err());
        assert!(TensorMap::from_bytes(&[0xff; 128]).is_err());
    }

    fn columns() -> TensorMap {
        let im2col = Im2col { mode: Im2colMode::Spatial, lower: vec![-16, 0, 1], upper: vec![15, 0, -2] };
        let dims = [16, 4, 5, 6, 7];
        TensorMap {
            swizzle: TensorSwizzle::B128,
            ..TensorMap::columns(0x7000, TensorElement::F16, &dims, [16, 1024], im2col)
        }
    }

    #[test]
    fn bytes_say_what_is_copied() {
        let wide = |mode| TensorMap {
            im2col: Some(Im2col { mode, lower: vec![-32768], upper: vec![32767] }),
            ..columns()
        };
        let slices = TensorMap {
            interleave: TensorInterleave::B32,
            swizzle: TensorSwizzle::B32,
            steps: vec![3, 1, 1],
            tile: vec![7, 1, 2],
            dims: vec![72, 5, 3],
            strides: vec![2304, 11520],
            ..map()
        };
        let padded = TensorMap::dense(0x7000, TensorElement::B6x16P32, &[256, 3], &[128, 2]);
        for written in [columns(), wide(Im2colMode::Wide), wide(Im2colMode::Wide128), slices, padded] {
            assert_eq!(TensorMap::from_bytes(&written.to_bytes().unwrap()).unwrap(), written);
        }
    }

    #[test]
    fn fields_are_replaced() {
        let mut words = [0; 32];
        for (field, value) in [
            (MapField::ADDRESS, 0x7000),
            (MapField::RANK, 2),
            (MapField::ELEMENT, 6),
            (MapField::INTERLEAVE, 0),
            (MapField::SWIZZLE, 3),
            (MapField::SWIZZLE_UNIT, 3),
            (MapField::FILL, 1),
            (MapField::dim(0), 72),
            (MapField::dim(1), 5),
            (MapField::dim(2), 0),
            (MapField::stride(0).unwrap(), 144),
            (MapField::stride(1).unwrap(), 720),
            (MapField::tile(0), 64),
            (MapField::tile(1), 4),
            (MapField::tile(2), 2),
            (MapField::step(0), 1),
            (MapField::step(1), 2),
            (MapField::step(2), 8),
        ] {
            field.replace(&mut words, u64::MAX);
            field.replace(&mut words, value);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        assert_eq!(TensorMap::from_bytes(&bytes.try_into().unwrap()).unwrap(), map());
    }

    #[test]
    fn what_breaks_a_rule_is_told() {
        type Break = fn(&mut TensorMap);
        let broken: [(&str, Break); 12] = [
            ("dimensions", |map| map.dims.clear()),
            ("strides", |map| map.strides.push(16)),
            ("address", |map| map.address = 8),
            ("elements", |map| map.dims[1] = 0),
            ("stride", |map| map.strides[0] = 8),
            ("box", |map| map.tile[1] = 257),
            ("step", |map| map.steps[0] = 2),
            ("step", |map| map.steps[1] = 9),
            ("rows", |map| map.tile[0] = 9),
            ("swizzling", |map| map.tile[0] = 72),
            ("NaN", |map| map.element = TensorElement::U16),
            ("bits", |map| {
                (map.element, map.nan_fill, map.dims[0]) = (TensorElement::B4x16, false, 71);
            }),
        ];
        assert_eq!(map().check(), Ok(()));
        for (what, breaks) in broken {
            let mut map = map();
            breaks(&mut map);
            assert!(map.to_bytes().is_err(), "{what}");
        }
        assert_eq!(columns().check(), Ok(()));
        type BreakColumns = fn(&mut TensorMap, &mut Im2col);
        let broken: [(&str, BreakColumns); 14] = [
            ("corners", |_, im2col| im2col.lower.truncate(2)),
            ("low corner", |_, im2col| im2col.lower[0] = -17),
            ("high corner", |_, im2col| im2col.upper[2] = 16),
            ("empty", |_, im2col| im2col.lower[2] = 4),
            ("channels", |map, _| map.tile[0] = 257),
            ("pixels", |map, _| map.tile[1] = 1025),
            ("rows", |map, _| map.tile[0] = 7),
            ("swizzling", |map, _| map.tile[0] = 72),
            ("wide corners", |_, im2col| im2col.mode = Im2colMode::Wide),
            ("wide without swizzling", |map, im2col| {
                *im2col = Im2col { mode: Im2colMode::Wide, lower: vec![0], upper: vec![0] };
                map.swizzle = TensorSwizzle::None;
            }),
            ("wide, 128 pixels, swizzling within 96", |map, im2col| {
                *im2col = Im2col { mode: Im2colMode::Wide128, lower: vec![0], upper: vec![0] };
                map.swizzle = TensorSwizzle::B96;
            }),
            ("slices and swizzling", |map, _| map.interleave = TensorInterleave::B32),
            ("slices and address", |map, _| {
                (map.interleave, map.swizzle, map.address) = (TensorInterleave::B32, TensorSwizzle::B32, 16);
            }),
            ("padded", |map, _| map.element = TensorElement::B4x16P64),
        ];
        for (what, breaks) in broken {
            let mut map = columns();
            let mut im2col = map.im2col.clone().unwrap();
            breaks(&mut map, &mut im2col);
            map.im2col = Some(im2col);
            assert!(map.to_bytes().is_err(), "{what}");
        }
        let padded = TensorMap::dense(0x7000, TensorElement::B4x16P64, &[256, 3], &[128, 2]);
        let broken: [(&str, Break); 5] = [
            ("rows", |map| map.tile[0] = 64),
            ("dimension", |map| map.dims[0] = 192),
            ("stride", |map| map.strides[0] = 144),
            ("address", |map| map.address = 0x7010),
            ("swizzling", |map| map.swizzle = TensorSwizzle::B64),
        ];
        assert_eq!(padded.check(), Ok(()));
        for (what, breaks) in broken {
            let mut map = padded.clone();
            breaks(&mut map);
            assert!(map.to_bytes().is_err(), "{what}");
        }
    }

    #[test]
    fn swizzling_is_that_of_the_tables() {
        // Of the first 16 bytes of each line: the unit that they go to. ISA 5.5.7.
        let first = |swizzle: TensorSwizzle| -> Vec<u64> {
            (0..8).map(|line| swizzle.place(128 * line) % 128 / 16).collect()
        };
        assert_eq!(first(TensorSwizzle::None), [0; 8]);
        assert_eq!(first(TensorSwizzle::B32), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(first(TensorSwizzle::B96), first(TensorSwizzle::B32));
        assert_eq!(first(TensorSwizzle::B64), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(first(TensorSwizzle::B128), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(first(TensorSwizzle::B128Atom32), [0, 2, 4, 6, 0, 2, 4, 6]);
        assert_eq!(first(TensorSwizzle::B128Atom64), [0, 4, 0, 4, 0, 4, 0, 4]);
        assert_eq!(TensorSwizzle::B128Atom32Flip8.place(128) % 128, 40);
        // The last row of the table for 128 bytes.
        let last: Vec<u64> =
            (0..8).map(|unit| TensorSwizzle::B128.place(128 * 7 + 16 * unit) % 128 / 16).collect();
        assert_eq!(last, [7, 6, 5, 4, 3, 2, 1, 0]);
    }
}
