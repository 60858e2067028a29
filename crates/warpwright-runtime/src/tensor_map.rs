//! Tensor maps: tensors in buffers, of which kernels copy tiles to shared memory and back (TMA, from sm_90 on).

use crate::buffer::{AnyBuffer, Buffer, Element};
use crate::error::{Result, RuntimeError};
use warpwright_ptx::ir::Type;
use warpwright_vm::{TENSOR_MAP_BYTES, TensorElement, TensorInterleave, TensorSwizzle};

/// A tensor, and the tiles that a kernel copies from it. Sizes of dimensions are in elements, and **the last dimension is
/// the one whose elements are beside each other**: `[rows, columns]` of a matrix in row-major order. A kernel has its
/// coordinates in the opposite order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    shape: Vec<u64>,
    tile: Vec<u32>,
    strides: Option<Vec<u64>>,
    steps: Option<Vec<u32>>,
    swizzle: TensorSwizzle,
    element: Option<TensorElement>,
    nan_outside: bool,
}

impl TensorLayout {
    /// A tensor of one to five dimensions without gaps, and the size of its tiles, of as many.
    pub fn new(shape: impl Into<Vec<u64>>, tile: impl Into<Vec<u32>>) -> Self {
        TensorLayout {
            shape: shape.into(),
            tile: tile.into(),
            strides: None,
            steps: None,
            swizzle: TensorSwizzle::None,
            element: None,
            nan_outside: false,
        }
    }

    /// How far elements beside each other in each dimension but the last are apart, in elements: a multiple of 16 bytes.
    pub fn strides(mut self, elements: impl Into<Vec<u64>>) -> Self {
        self.strides = Some(elements.into());
        self
    }

    /// The step between copied elements in each dimension, 1 to 8, and 1 in the last. A tile then has fewer.
    pub fn steps(mut self, steps: impl Into<Vec<u32>>) -> Self {
        self.steps = Some(steps.into());
        self
    }

    /// Permutes tiles in shared memory, so that columns of a tile are in different banks.
    pub fn swizzle(mut self, swizzle: TensorSwizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// Takes the memory as elements of another type than the buffer's, such as TF32.
    pub fn element(mut self, element: TensorElement) -> Self {
        self.element = Some(element);
        self
    }

    /// Fills what is outside of the tensor with NaNs instead of zeros.
    pub fn nan_outside(mut self) -> Self {
        self.nan_outside = true;
        self
    }

    /// The map of that tensor at an address, and the bytes that it has there.
    fn at(&self, address: u64, element: Type) -> Result<(warpwright_vm::TensorMap, u64)> {
        let Some(element) = self.element.or_else(|| of(element)) else {
            return Err(RuntimeError::TensorElement { element });
        };
        let bytes = |elements: u64| elements.saturating_mul(element.bits().into()) / 8;
        let reversed = |sizes: &[u64]| sizes.iter().rev().copied().collect::<Vec<u64>>();
        let turned = |sizes: &[u32]| sizes.iter().rev().copied().collect::<Vec<u32>>();
        let dense =
            warpwright_vm::TensorMap::dense(address, element, &reversed(&self.shape), &turned(&self.tile));
        let map = warpwright_vm::TensorMap {
            strides: match &self.strides {
                Some(strides) => strides.iter().rev().map(|&stride| bytes(stride)).collect(),
                None => dense.strides.clone(),
            },
            steps: self.steps.as_deref().map_or_else(|| dense.steps.clone(), turned),
            interleave: TensorInterleave::None,
            swizzle: self.swizzle,
            nan_fill: self.nan_outside,
            ..dense
        };
        map.check().map_err(Box::new)?;
        let row = bytes(map.dims[0]);
        let outer = map.dims[1..].iter().zip(&map.strides);
        let needed =
            outer.fold(row, |sum, (size, stride)| sum.saturating_add((size - 1).saturating_mul(*stride)));
        Ok((map, needed))
    }
}

/// The elements of a tensor map that those of a buffer are.
fn of(element: Type) -> Option<TensorElement> {
    Some(match element {
        Type::U8 | Type::S8 => TensorElement::U8,
        Type::U16 | Type::S16 => TensorElement::U16,
        Type::U32 => TensorElement::U32,
        Type::S32 => TensorElement::S32,
        Type::U64 => TensorElement::U64,
        Type::S64 => TensorElement::S64,
        Type::F16 => TensorElement::F16,
        Type::BF16 => TensorElement::BF16,
        Type::F32 => TensorElement::F32,
        Type::F64 => TensorElement::F64,
        _ => return None,
    })
}

/// A tensor in a buffer, as an argument of a kernel: `.param .align 64 .b8 map[128]` in PTX, a `__grid_constant__ const
/// CUtensorMap` in CUDA C++. It keeps the buffer alive.
///
/// ```
/// use warpwright_runtime::{Device, LaunchConfig, RuntimeError, TensorLayout, TensorMap, VmConfig};
///
/// # fn main() -> Result<(), RuntimeError> {
/// let device = Device::vm(VmConfig::default())?;
/// let stream = device.default_stream();
/// // Copies the tile of 4 by 8 numbers from row `y` and column `x` on.
/// let module = device.load_ptx(
///     ".version 8.0
///     .target sm_90
///     .address_size 64
///     .visible .entry tile(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u64 out)
///     {
///         .shared .align 8 .u64 bar;
///         .shared .align 128 .b8 tile[128];
///         .reg .pred %p1;
///         .reg .b32 %r<3>;
///         .reg .b64 %rd<4>;
///         mov.b64             %rd1, map;
///         cvta.param.u64      %rd1, %rd1;
///         ld.param.u32        %r1, [x];
///         ld.param.u32        %r2, [y];
///         ld.param.u64        %rd2, [out];
///         mbarrier.init.shared.b64 [bar], 1;
///         mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 128;
///         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r2}], [bar];
///     $wait:
///         mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
///         @!%p1 bra           $wait;
///         cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 128;
///         cp.async.bulk.commit_group;
///         cp.async.bulk.wait_group 0;
///         ret;
///     }",
/// )?;
/// let tile = module.load_function("tile")?;
/// let numbers: Vec<u32> = (0..10 * 12).collect();
/// let (matrix, out) = (stream.clone_htod(&numbers)?, stream.alloc::<u32>(32)?);
/// let map = TensorMap::new(&matrix, &TensorLayout::new([10, 12], [4, 8]))?;
/// let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
/// // SAFETY: one thread reads the matrix, and writes the 32 numbers of `out`, which nothing else uses.
/// unsafe { stream.launch_builder(&tile).arg(&map).arg(8u32).arg(3u32).arg(&out).launch(config) }?;
/// // Behind the last column are zeros.
/// let want: Vec<u32> =
///     (0..32).map(|at| if at % 8 < 4 { (3 + at / 8) * 12 + 8 + at % 8 } else { 0 }).collect();
/// assert_eq!(stream.clone_dtoh(&out)?, want);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TensorMap {
    buffer: AnyBuffer,
    bytes: [u8; TENSOR_MAP_BYTES],
}

impl TensorMap {
    /// The map of a tensor that begins with a buffer.
    ///
    /// Refused if the layout breaks a rule ([`RuntimeError::TensorMap`]): addresses and strides are multiples of 16 bytes,
    /// and so are rows of a tile, which has up to 256 elements in each dimension; or if the tensor has more bytes than the
    /// buffer ([`RuntimeError::TensorLength`]).
    pub fn new<T: Element>(buffer: &Buffer<T>, layout: &TensorLayout) -> Result<Self> {
        Self::of_any(buffer.as_any(), layout)
    }

    /// The same of a buffer whose element type is a value.
    pub fn of_any(buffer: &AnyBuffer, layout: &TensorLayout) -> Result<Self> {
        let (map, needed) = layout.at(buffer.device_ptr(), buffer.element())?;
        if needed > buffer.num_bytes() {
            return Err(RuntimeError::TensorLength { needed, given: buffer.num_bytes() });
        }
        Ok(TensorMap { buffer: buffer.clone(), bytes: buffer.device().backend().encode(&map)? })
    }

    /// The buffer that the tensor is in.
    pub fn buffer(&self) -> &AnyBuffer {
        &self.buffer
    }

    /// What a kernel gets: the device's own format.
    pub fn as_bytes(&self) -> &[u8; TENSOR_MAP_BYTES] {
        &self.bytes
    }
}
