//! The fundamental and packed types of PTX.

use std::fmt;

/// The meaning of a type's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// Untyped bits: compatible with any type of the same size.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Floating point.
    Float,
    /// Several integers in one register.
    PackedInteger,
    /// Several floating-point values in one register.
    PackedFloat,
    /// Predicate.
    Predicate,
    /// A texture, sampler or surface reference.
    Opaque,
}

macro_rules! types {
    ($($variant:ident $name:literal $bits:literal $kind:ident;)*) => {
        /// A PTX type, as written after the dot of a modifier or declaration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the PTX type of its name")]
        pub enum Type { $($variant),* }

        impl Type {
            /// Every type.
            pub const ALL: &'static [Type] = &[$(Type::$variant),*];

            /// The name as PTX writes it, without the dot.
            pub const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name),* }
            }

            /// Width in bits. A predicate counts as one bit.
            pub const fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits),* }
            }

            /// The meaning of its bits.
            pub const fn kind(self) -> TypeKind {
                match self { $(Type::$variant => TypeKind::$kind),* }
            }
        }

        impl crate::op::Modifier for Type {
            const EXPECTED: &'static [&'static str] = &[$($name),*];

            fn from_word(word: crate::op::Word<'_>) -> Option<Self> {
                let hash = word.hash();
                let found = $(if hash == const { crate::op::word_hash($name) } { Type::$variant } else)*
                { return None };
                (found.name() == word.text()).then_some(found)
            }

            fn text(self) -> &'static str {
                self.name()
            }
        }
    };
}

types! {
    B1 "b1" 1 Bits;
    B4 "b4" 4 Bits;
    B8 "b8" 8 Bits;
    B16 "b16" 16 Bits;
    B32 "b32" 32 Bits;
    B64 "b64" 64 Bits;
    B128 "b128" 128 Bits;
    U2 "u2" 2 Unsigned;
    U4 "u4" 4 Unsigned;
    U8 "u8" 8 Unsigned;
    U16 "u16" 16 Unsigned;
    U32 "u32" 32 Unsigned;
    U64 "u64" 64 Unsigned;
    S2 "s2" 2 Signed;
    S4 "s4" 4 Signed;
    S8 "s8" 8 Signed;
    S16 "s16" 16 Signed;
    S32 "s32" 32 Signed;
    S64 "s64" 64 Signed;
    F16 "f16" 16 Float;
    BF16 "bf16" 16 Float;
    TF32 "tf32" 32 Float;
    F32 "f32" 32 Float;
    F64 "f64" 64 Float;
    U16X2 "u16x2" 32 PackedInteger;
    S16X2 "s16x2" 32 PackedInteger;
    U8X4 "u8x4" 32 PackedInteger;
    S8X4 "s8x4" 32 PackedInteger;
    F16X2 "f16x2" 32 PackedFloat;
    BF16X2 "bf16x2" 32 PackedFloat;
    F32X2 "f32x2" 64 PackedFloat;
    E4M3 "e4m3" 8 Float;
    E5M2 "e5m2" 8 Float;
    E3M2 "e3m2" 6 Float;
    E2M3 "e2m3" 6 Float;
    E2M1 "e2m1" 4 Float;
    UE8M0 "ue8m0" 8 Float;
    UE4M3 "ue4m3" 8 Float;
    E4M3X2 "e4m3x2" 16 PackedFloat;
    E5M2X2 "e5m2x2" 16 PackedFloat;
    E2M1X2 "e2m1x2" 8 PackedFloat;
    E2M3X2 "e2m3x2" 16 PackedFloat;
    E3M2X2 "e3m2x2" 16 PackedFloat;
    UE8M0X2 "ue8m0x2" 16 PackedFloat;
    E4M3X4 "e4m3x4" 32 PackedFloat;
    E5M2X4 "e5m2x4" 32 PackedFloat;
    E2M1X4 "e2m1x4" 16 PackedFloat;
    E2M3X4 "e2m3x4" 32 PackedFloat;
    E3M2X4 "e3m2x4" 32 PackedFloat;
    S2F6X2 "s2f6x2" 16 PackedFloat;
    UE5M3X2 "ue5m3x2" 16 PackedFloat;
    Pred "pred" 1 Predicate;
    TexRef "texref" 64 Opaque;
    SamplerRef "samplerref" 64 Opaque;
    SurfRef "surfref" 64 Opaque;
}

impl Type {
    /// Size in memory, in bytes (at least 1).
    pub const fn bytes(self) -> u32 {
        let bytes = self.bits().div_ceil(8);
        if bytes == 0 { 1 } else { bytes }
    }

    /// Signed or unsigned, one value.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), TypeKind::Unsigned | TypeKind::Signed)
    }

    /// A signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), TypeKind::Signed)
    }

    /// Floating point, one value or several.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), TypeKind::Float | TypeKind::PackedFloat)
    }

    /// Untyped bits.
    pub const fn is_bits(self) -> bool {
        matches!(self.kind(), TypeKind::Bits)
    }

    /// Whether a register declared with this type can be used where an instruction requires `wanted`: the sizes must
    /// be equal, and both must be integers, or the same floating type, or one untyped. Packed integers use untyped
    /// registers; an `.f16x2` register accepts any 32-bit integer.
    pub fn agrees_with(self, wanted: Type) -> bool {
        use TypeKind::*;
        if self == wanted {
            return true;
        }
        if self.bits() != wanted.bits() {
            return false;
        }
        match (self.kind(), wanted.kind()) {
            (Predicate | Opaque, _) | (_, Predicate | Opaque) => false,
            (Bits, _) | (_, Bits) => true,
            (Unsigned | Signed, Unsigned | Signed) => true,
            (PackedFloat, Unsigned | Signed | PackedInteger) => self == Type::F16X2,
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}
