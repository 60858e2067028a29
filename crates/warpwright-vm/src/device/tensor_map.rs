//! Tensor maps: what a copy of a tile needs to know of the tensor.
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
//!        74..84   step between elements in each dimension
//! ```
//!
//! Numbers of types and modes are those of `tensormap.replace`.

use std::fmt;

/// Bytes of a tensor map, and what its address is a multiple of.
pub const TENSOR_MAP_BYTES: usize = 128;
pub(crate) const TENSOR_MAP_ALIGN: u32 = 64;

/// Dimensions of a tensor at most.
const MAX_RANK: usize = 5;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TensorElement {
    /// 8 bits.
    U8 = 0,
    /// 16 bits.
    U16 = 1,
    /// 32 bits.
    U32 = 2,
    /// 32 bits, signed.
    S32 = 3,
    /// 64 bits.
    U64 = 4,
    /// 64 bits, signed.
    S64 = 5,
    /// Half precision.
    F16 = 6,
    /// Single precision.
    F32 = 7,
    /// Double precision.
    F64 = 9,
    /// The upper half of single precision.
    BF16 = 10,
    /// Single precision, which loads round to the nearest with 10 bits of the fraction, ties to even.
    TF32 = 11,
    /// 4 bits, two in a byte.
    B4x16 = 13,
}

impl TensorElement {
    const ALL: [TensorElement; 12] = {
        use TensorElement::*;
        [U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, TF32, B4x16]
    };

    /// The type of a number that `tensormap.replace` has for it.
    pub fn from_ptx(number: u8) -> Option<TensorElement> {
        TensorElement::ALL.into_iter().find(|element| *element as u8 == number)
    }

    /// The type of a number that the driver's API has for it.
    pub fn from_driver(number: u8) -> Option<TensorElement> {
        // Double precision and BF16 come before the types that flush.
        match number {
            8 => Some(TensorElement::F64),
            9 => Some(TensorElement::BF16),
            10 => None,
            other => TensorElement::from_ptx(other),
        }
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        use TensorElement::*;
        match self {
            B4x16 => 4,
            U8 => 8,
            U16 | F16 | BF16 => 16,
            U32 | S32 | F32 | TF32 => 32,
            U64 | S64 | F64 => 64,
        }
    }

    /// The pattern, repeated over 64 bits, of the NaN that stands for what is outside; none of integers.
    const fn nan(self) -> Option<u64> {
        use TensorElement::*;
        match self {
            F16 | BF16 => Some(0x7fff_7fff_7fff_7fff),
            F32 | TF32 => Some(0x7fff_ffff_7fff_ffff),
            F64 => Some(0x7fff_ffff_ffff_ffff),
            _ => None,
        }
    }
}

/// How a tile is permuted in shared memory, in units of 16 bytes where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TensorSwizzle {
    /// Not at all.
    #[default]
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 96 bytes.
    B96,
    /// Within 128 bytes.
    B128,
    /// Within 128 bytes, in units of 32.
    B128Atom32,
    /// The same, and the halves of 16 bytes are exchanged in every other line of 128 bytes.
    B128Atom32Flip8,
    /// Within 128 bytes, in units of 64.
    B128Atom64,
}

impl TensorSwizzle {
    /// Mode and unit, as `tensormap.replace` numbers them.
    const ALL: [(TensorSwizzle, [u8; 2]); 8] = {
        use TensorSwizzle::*;
        [
            (None, [0, 0]),
            (B32, [1, 0]),
            (B64, [2, 0]),
            (B96, [4, 0]),
            (B128, [3, 0]),
            (B128Atom32, [3, 1]),
            (B128Atom32Flip8, [3, 2]),
            (B128Atom64, [3, 3]),
        ]
    };

    /// The mode of a number that the driver's API has for it.
    pub fn from_driver(number: u8) -> Option<TensorSwizzle> {
        use TensorSwizzle::*;
        let modes = [None, B32, B64, B128, B128Atom32, B128Atom32Flip8, B128Atom64, B96];
        modes.get(usize::from(number)).copied()
    }

    /// Bytes of a row at most.
    const fn span(self) -> Option<u32> {
        match self {
            TensorSwizzle::None => Option::None,
            TensorSwizzle::B32 => Some(32),
            TensorSwizzle::B64 => Some(64),
            TensorSwizzle::B96 => Some(96),
            _ => Some(128),
        }
    }

    /// Bytes that stay together, if any are moved.
    pub(crate) const fn unit(self) -> Option<u32> {
        match self {
            TensorSwizzle::None => Option::None,
            TensorSwizzle::B128Atom32Flip8 => Some(8),
            _ => Some(16),
        }
    }

    /// Where the byte of an address of shared memory goes: the number of the line of 128 bytes changes which unit of
    /// the line it is.
    pub(crate) const fn place(self, address: u64) -> u64 {
        let line = address >> 7;
        let moved = match self {
            TensorSwizzle::None => 0,
            TensorSwizzle::B32 | TensorSwizzle::B96 => (line & 1) << 4,
            TensorSwizzle::B64 => (line & 3) << 4,
            TensorSwizzle::B128 => (line & 7) << 4,
            TensorSwizzle::B128Atom32 => (line & 3) << 5,
            TensorSwizzle::B128Atom32Flip8 => (line & 3) << 5 | (line & 1) << 3,
            TensorSwizzle::B128Atom64 => (line & 1) << 6,
        };
        address ^ moved
    }
}

/// A tensor in global memory, and the box that copies take from it.
///
/// Dimension 0 is the one whose elements are beside each other.
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
    /// The size of the box in each dimension. Where the step is not 1, the elements of it that are copied are fewer.
    pub tile: Vec<u32>,
    /// The step between copied elements in each dimension: 1 to 8, and 1 in dimension 0.
    pub steps: Vec<u32>,
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
            swizzle: TensorSwizzle::None,
            nan_fill: false,
        }
    }

    /// The rules of the driver's API and of the ISA for tiles.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let rank = self.dims.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return refuse(format!("a tensor of {rank} dimensions: there are 1 to {MAX_RANK}"));
        }
        for (what, count, expected) in [
            ("strides", self.strides.len(), rank - 1),
            ("sizes of the box", self.tile.len(), rank),
            ("steps", self.steps.len(), rank),
        ] {
            if count != expected {
                return refuse(format!(
                    "{count} {what} for a tensor of {rank} dimensions: it has {expected}"
                ));
            }
        }
        if !self.address.is_multiple_of(16) {
            return refuse(format!("a tensor at {:#x}: its address must be a multiple of 16", self.address));
        }
        for (dim, &size) in self.dims.iter().enumerate() {
            if !(1..=1 << 32).contains(&size) {
                return refuse(format!("dimension {dim} of {size} elements: it has 1 to 2^32"));
            }
        }
        if self.element == TensorElement::B4x16 && !self.dims[0].is_multiple_of(2) {
            return refuse(format!("{} elements of 4 bits in a row: they must be even", self.dims[0]));
        }
        for (dim, &stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                let rule = "it must be a multiple of 16 and less than 2^40";
                return refuse(format!("a stride of {stride} bytes in dimension {}: {rule}", dim + 1));
            }
        }
        for (dim, (&size, &step)) in self.tile.iter().zip(&self.steps).enumerate() {
            if !(1..=256).contains(&size) {
                return refuse(format!("a box of {size} elements in dimension {dim}: it has 1 to 256"));
            }
            if !(1..=8).contains(&step) || (dim == 0 && step != 1) {
                let rule = if dim == 0 { "it is 1 there" } else { "it is 1 to 8" };
                return refuse(format!("a step of {step} in dimension {dim}: {rule}"));
            }
        }
        let row = self.tile[0] * self.element.bits();
        if !row.is_multiple_of(8 * 16) {
            return refuse(format!("rows of {row} bits in the box: their bytes must be a multiple of 16"));
        }
        match self.swizzle.span() {
            Some(span) if row / 8 > span => {
                refuse(format!("rows of {} bytes in the box, and swizzling within {span}", row / 8))
            }
            _ if self.nan_fill && self.element.nan().is_none() => {
                refuse("elements outside of the tensor that are NaN, of a type that has none".to_owned())
            }
            _ => Ok(()),
        }
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
        bytes[30] = u8::from(self.nan_fill) << 4;
        bytes[31] = mode | unit << 4;
        for (dim, stride) in self.strides.iter().enumerate() {
            bytes[32 + 8 * dim..][..8].copy_from_slice(&stride.to_le_bytes());
        }
        for (dim, (&size, &step)) in self.tile.iter().zip(&self.steps).enumerate() {
            bytes[64 + 2 * dim..][..2].copy_from_slice(&(size as u16).to_le_bytes());
            bytes[74 + 2 * dim..][..2].copy_from_slice(&(step as u16).to_le_bytes());
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
        if bytes[30] & 0xf != 0 {
            return refuse("an interleaved layout is not supported".to_owned());
        }
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
            tile: dims(64, 2, 0).map(|size| size as u32).collect(),
            steps: dims(74, 2, 0).map(|step| step as u32).collect(),
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

    /// Bytes of a row of the box.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.tile[0] * self.element.bits() / 8
    }

    /// How many elements are copied in each dimension.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.tile.iter().zip(&self.steps).map(|(size, step)| size.div_ceil(*step))
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
