//! Types of elements.

use bytemuck::Pod;
use warpwright_ptx::ir::Type;

/// An element type with the same layout on the host and in kernels: a number, or a struct of numbers of one type.
///
/// A struct must be [`Pod`] and names the type of its numbers. A kernel sees these numbers one after the other.
///
/// ```
/// use warpwright_runtime::{Device, Element, Type, VmConfig};
///
/// #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32,
/// }
///
/// impl Element for Particle {
///     const TYPE: Type = Type::F32;
/// }
///
/// let stream = Device::vm(VmConfig::default())?.default_stream();
/// let particles = stream.alloc_zeros::<Particle>(100)?;
/// stream.memset(&particles, Particle { position: [0.5; 3], mass: 2.0 })?;
/// // For a kernel with an argument of `f32`, four for each particle.
/// let numbers = particles.cast::<f32>()?;
/// assert_eq!((particles.len(), numbers.len()), (100, 400));
/// assert_eq!(stream.clone_dtoh(&numbers.slice(..4)?)?, [0.5, 0.5, 0.5, 2.0]);
/// # Ok::<(), warpwright_runtime::RuntimeError>(())
/// ```
pub trait Element: Pod + Send + Sync {
    /// The PTX type of the same size and meaning; for a struct, the type of its numbers.
    const TYPE: Type;

    /// The number of numbers in an element. A struct whose size is not a multiple of theirs does not compile.
    const PARTS: usize = {
        let bytes = Self::TYPE.bits() as usize / 8;
        assert!(bytes > 0 && size_of::<Self>() > 0, "elements, and numbers of them, have whole bytes");
        assert!(size_of::<Self>().is_multiple_of(bytes), "an element is a whole number of its numbers");
        size_of::<Self>() / bytes
    };
}

macro_rules! element {
    ($($ty:ty => $name:ident),* $(,)?) => {$(
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
