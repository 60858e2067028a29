//! What elements of tensors are, and how they lie in global and in shared memory.

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
    /// Single precision, whose additions flush subnormals to zero. Copies are those of `F32`.
    F32Ftz = 8,
    /// Double precision.
    F64 = 9,
    /// The upper half of single precision.
    BF16 = 10,
    /// Single precision, which loads round to the nearest with 10 bits of the fraction, ties to even.
    TF32 = 11,
    /// The same; there is no reduction of it that could flush.
    TF32Ftz = 12,
    /// 4 bits, two in a byte.
    B4x16 = 13,
    /// 4 bits: loads put 8 bytes without contents behind each 16 elements. There are no stores.
    B4x16P64 = 14,
    /// 6 bits, 16 in 12 bytes. Loads put 4 bytes without contents behind each 16 elements (`.b6x16_p32`); stores take the
    /// lower 6 bits of each byte (`.b6p2x16`).
    B6x16P32 = 15,
}

impl TensorElement {
    const ALL: [TensorElement; 16] = {
        use TensorElement::*;
        [U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, BF16, TF32, TF32Ftz, B4x16, B4x16P64, B6x16P32]
    };

    /// The type of a number that `tensormap.replace` has for it.
    pub fn from_ptx(number: u8) -> Option<TensorElement> {
        TensorElement::ALL.get(usize::from(number)).copied()
    }

    /// The type of a number that the driver's API has for it.
    pub fn from_driver(number: u8) -> Option<TensorElement> {
        // Double precision and BF16 come before the types that flush.
        TensorElement::from_ptx(match number {
            8 => TensorElement::F64 as u8,
            9 => TensorElement::BF16 as u8,
            10 => TensorElement::F32Ftz as u8,
            other => other,
        })
    }

    /// The number that the driver's API has for it.
    pub fn to_driver(self) -> u8 {
        match self {
            TensorElement::F64 => 8,
            TensorElement::BF16 => 9,
            TensorElement::F32Ftz => 10,
            other => other as u8,
        }
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        use TensorElement::*;
        match self {
            B4x16 | B4x16P64 => 4,
            B6x16P32 => 6,
            U8 => 8,
            U16 | F16 | BF16 => 16,
            U32 | S32 | F32 | F32Ftz | TF32 | TF32Ftz => 32,
            U64 | S64 | F64 => 64,
        }
    }

    /// Whether 16 elements have 16 bytes in shared memory, and less in global memory.
    pub const fn is_padded(self) -> bool {
        matches!(self, TensorElement::B4x16P64 | TensorElement::B6x16P32)
    }

    /// Whether loads round to TF32.
    pub(crate) const fn rounds(self) -> bool {
        matches!(self, TensorElement::TF32 | TensorElement::TF32Ftz)
    }

    /// The pattern, repeated over 64 bits, of the NaN that stands for what is outside; none of integers.
    pub(crate) const fn nan(self) -> Option<u64> {
        use TensorElement::*;
        match self {
            F16 | BF16 => Some(0x7fff_7fff_7fff_7fff),
            F32 | F32Ftz | TF32 | TF32Ftz => Some(0x7fff_ffff_7fff_ffff),
            F64 => Some(0x7fff_ffff_ffff_ffff),
            _ => None,
        }
    }
}

/// How channels lie in global memory: all of a pixel together, or in slices (NC/8HWC8 and its like). Of a tensor in slices
/// dimension 0 is the width, an element of it the slice of a pixel, and the last but one counts slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TensorInterleave {
    /// All of a pixel together.
    #[default]
    None = 0,
    /// In slices of 16 bytes.
    B16 = 1,
    /// In slices of 32 bytes.
    B32 = 2,
}

impl TensorInterleave {
    /// The layout of a number, which is the same in PTX and in the driver's API.
    pub fn from_number(number: u8) -> Option<TensorInterleave> {
        use TensorInterleave::*;
        [None, B16, B32].get(usize::from(number)).copied()
    }

    /// Bytes of a slice.
    pub const fn slice(self) -> Option<u32> {
        match self {
            TensorInterleave::None => None,
            TensorInterleave::B16 => Some(16),
            TensorInterleave::B32 => Some(32),
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
    pub(super) const ALL: [(TensorSwizzle, [u8; 2]); 8] = {
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

    /// The number that the driver's API has for it.
    pub fn to_driver(self) -> u8 {
        let numbers = 0..=7;
        numbers.into_iter().find(|&number| TensorSwizzle::from_driver(number) == Some(self)).unwrap_or(0)
    }

    /// Bytes of a row at most.
    pub(super) const fn span(self) -> Option<u32> {
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
