//! Types of elements.

use bytemuck::Pod;
use warpwright_ptx::ir::Type;

/// A type of elements that the host and kernels see alike.
pub trait Element: Pod + Send + Sync + sealed::Sealed {
    /// The PTX type of that size and meaning.
    const TYPE: Type;
}

mod sealed {
    /// `TYPE` has the size of the Rust type: nothing else checks that.
    pub trait Sealed {}
}

macro_rules! element {
    ($($ty:ty => $name:ident),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const TYPE: Type = {
                assert!(Type::$name.bits() as usize == 8 * size_of::<$ty>());
                Type::$name
            };
        }
    )*};
}

element! {
    u8 => U8,
    i8 => S8,
    u16 => U16,
    i16 => S16,
    u32 => U32,
    i32 => S32,
    u64 => U64,
    i64 => S64,
    f32 => F32,
    f64 => F64,
    half::f16 => F16,
    half::bf16 => BF16,
}
