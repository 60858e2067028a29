//! Copies of rows and slices, with pitches and offsets, and of parts of arrays.

use super::copy::{alone, contexts};
use super::entries;
use crate::engine::{Stream, array, issue, memory_of_any, memory_of_device, memory_of_host};
use crate::report::log;
use crate::types::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUarray, CUmemorytype, CUstream, In, Result, Status};
use warpwright_device::{Bytes, Copy, Layout, Memory, Side};

/// The maximum distance of rows, in bytes.
const MAX_PITCH: u64 = i32::MAX as u64;

/// One side of a copy, as the client describes it.
struct CopyOperand {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    array: CUarray,
    x: u64,
    y: u64,
    z: u64,
    lod: u64,
    pitch: u64,
    /// Rows of a slice.
    height: u64,
}

/// The extent of a copy: bytes of a row, rows, slices.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) depth: u64,
}

impl CopyOperand {
    fn side(&self, extent: Extent) -> Result<Side> {
        if self.kind == CUmemorytype::ARRAY {
            if self.lod != 0 {
                return Err(Status::INVALID_VALUE);
            }
            return side_of_array(self.array, [self.x, self.y, self.z], extent);
        }
        let Extent { width, height, depth } = extent;
        let invalid = Status::INVALID_VALUE;
        // One row needs no pitch, one slice no height.
        let row = self.x.checked_add(width).ok_or(invalid)?;
        let pitch = if self.pitch == 0 && height == 1 && depth == 1 && self.y == 0 && self.z == 0 {
            row
        } else {
            self.pitch
        };
        let rows = self.y.checked_add(height).ok_or(invalid)?;
        let has_slices = depth > 1 || self.z > 0;
        // A height counts where it is given, even if no slice comes behind.
        let too_low = rows > self.height && (has_slices || self.height > 0);
        if row > pitch || self.pitch > MAX_PITCH || too_low || self.lod != 0 {
            return Err(invalid);
        }
        let slice = if has_slices { pitch.checked_mul(self.height).ok_or(invalid)? } else { 0 };
        let layout = Layout { pitch, slice };
        let begin = self.y.checked_mul(pitch).and_then(|rows| rows.checked_add(self.z.checked_mul(slice)?));
        let begin = begin.and_then(|begin| begin.checked_add(self.x)).ok_or(invalid)?;
        let bytes = layout.extent(width, height, depth).ok_or(invalid)?;
        let at = |base: u64| if base == 0 { Err(invalid) } else { base.checked_add(begin).ok_or(invalid) };
        let memory = match self.kind {
            CUmemorytype::HOST => memory_of_host(at(self.host)?, bytes)?,
            CUmemorytype::DEVICE => memory_of_device(at(self.device)?, bytes)?,
            CUmemorytype::UNIFIED => memory_of_any(at(self.device)?, bytes)?,
            _ => return Err(invalid),
        };
        Ok(Side { memory, layout })
    }
}

/// A part of an array: bytes of a row, rows and slices from the given ones on.
pub(super) fn side_of_array(handle: CUarray, [x, y, z]: [u64; 3], extent: Extent) -> Result<Side> {
    let array = array(handle)?;
    let level = array.array.image().levels()[0];
    let texel = u64::from(array.array.shape().format.bytes());
    let inside = |from: u64, count: u64, all: u64| from.checked_add(count).is_some_and(|end| end <= all);
    let Extent { width, height, depth } = extent;
    if !inside(x, width, u64::from(level.width) * texel)
        || !inside(y, height, level.height.into())
        || !inside(z, depth, level.slices.into())
        || !x.is_multiple_of(texel)
        || !width.is_multiple_of(texel)
    {
        log::misuse(&format_args!(
            "a copy of {width} bytes × {height} rows × {depth} slices from byte {x}, row {y}, slice {z} on is not whole \
             texels of {texel} bytes inside an array of {} × {} × {}",
            level.width, level.height, level.slices
        ));
        return Err(Status::INVALID_VALUE);
    }
    let layout = Layout { pitch: level.pitch, slice: level.slice };
    let bytes = layout.extent(width, height, depth).ok_or(Status::INVALID_VALUE)?;
    let memory = array.array.part(z * level.slice + y * level.pitch + x, bytes);
    Ok(Side { memory: Memory::Known(Bytes::new(memory)), layout })
}

/// The copy; `None` if it is empty.
fn rows(to: &CopyOperand, from: &CopyOperand, extent: Extent) -> Result<Option<Copy>> {
    let Extent { width, height, depth } = extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(None);
    }
    let (target, source) = (to.side(extent)?, from.side(extent)?);
    Ok(Some(Copy { target, source, width, height, depth }))
}

fn issue_rows(
    stream: CUstream,
    to: &CopyOperand,
    from: &CopyOperand,
    extent: Extent,
    waits: bool,
) -> Result<()> {
    let stream = Stream::get(stream)?;
    match rows(to, from, extent)? {
        Some(copy) => issue(&stream, copy, waits),
        None => Ok(()),
    }
}

fn copy_2d(stream: CUstream, copy: In<CUDA_MEMCPY2D>, waits: bool) -> Result<()> {
    let c = copy.get()?;
    let from = CopyOperand {
        kind: c.srcMemoryType,
        host: c.srcHost.expose_provenance() as u64,
        device: c.srcDevice,
        array: c.srcArray,
        x: c.srcXInBytes as u64,
        y: c.srcY as u64,
        z: 0,
        lod: 0,
        pitch: c.srcPitch as u64,
        height: 0,
    };
    let to = CopyOperand {
        kind: c.dstMemoryType,
        host: c.dstHost.expose_provenance() as u64,
        device: c.dstDevice,
        array: c.dstArray,
        x: c.dstXInBytes as u64,
        y: c.dstY as u64,
        z: 0,
        lod: 0,
        pitch: c.dstPitch as u64,
        height: 0,
    };
    issue_rows(
        stream,
        &to,
        &from,
        Extent { width: c.WidthInBytes as u64, height: c.Height as u64, depth: 1 },
        waits,
    )
}

/// The sides and the extent of a copy of slices.
fn taken_apart(c: &CUDA_MEMCPY3D) -> (CopyOperand, CopyOperand, Extent) {
    let from = CopyOperand {
        kind: c.srcMemoryType,
        host: c.srcHost.expose_provenance() as u64,
        device: c.srcDevice,
        array: c.srcArray,
        x: c.srcXInBytes as u64,
        y: c.srcY as u64,
        z: c.srcZ as u64,
        lod: c.srcLOD as u64,
        pitch: c.srcPitch as u64,
        height: c.srcHeight as u64,
    };
    let to = CopyOperand {
        kind: c.dstMemoryType,
        host: c.dstHost.expose_provenance() as u64,
        device: c.dstDevice,
        array: c.dstArray,
        x: c.dstXInBytes as u64,
        y: c.dstY as u64,
        z: c.dstZ as u64,
        lod: c.dstLOD as u64,
        pitch: c.dstPitch as u64,
        height: c.dstHeight as u64,
    };
    let extent = Extent { width: c.WidthInBytes as u64, height: c.Height as u64, depth: c.Depth as u64 };
    (to, from, extent)
}

/// The copy of slices; `None` if it is empty.
pub(super) fn copy_of(copy: &CUDA_MEMCPY3D) -> Result<Option<Copy>> {
    let (to, from, extent) = taken_apart(copy);
    rows(&to, &from, extent)
}

fn copy_3d(stream: CUstream, copy: CUDA_MEMCPY3D, waits: bool) -> Result<()> {
    let (to, from, extent) = taken_apart(&copy);
    issue_rows(stream, &to, &from, extent, waits)
}

fn copy_3d_peer(stream: CUstream, copy: In<CUDA_MEMCPY3D>, waits: bool) -> Result<()> {
    let copy = copy.get()?;
    if waits {
        return alone(stream, copy.dstContext, copy.srcContext, || copy_3d(stream, copy, true));
    }
    contexts(copy.dstContext, copy.srcContext)?;
    copy_3d(stream, copy, false)
}

entries! {
    /// Copies rows.
    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds |default| (copy: In<CUDA_MEMCPY2D>) {
        copy_2d(default.resolve(CUstream::NULL), copy, true)
    }

    /// Copies rows with any alignment, as all functions do here.
    fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds |default| (copy: In<CUDA_MEMCPY2D>) {
        copy_2d(default.resolve(CUstream::NULL), copy, true)
    }

    /// Copies rows in the order of a stream.
    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz |default| (copy: In<CUDA_MEMCPY2D>, stream: CUstream) {
        copy_2d(default.resolve(stream), copy, false)
    }

    /// Copies slices of rows.
    fn cuMemcpy3D_v2, cuMemcpy3D_v2_ptds |default| (copy: In<CUDA_MEMCPY3D>) {
        copy_3d(default.resolve(CUstream::NULL), copy.get()?, true)
    }

    /// Copies slices of rows in the order of a stream.
    fn cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz |default| (copy: In<CUDA_MEMCPY3D>, stream: CUstream) {
        copy_3d(default.resolve(stream), copy.get()?, false)
    }

    /// Copies slices of rows between contexts.
    fn cuMemcpy3DPeer, cuMemcpy3DPeer_ptds |default| (copy: In<CUDA_MEMCPY3D>) {
        copy_3d_peer(default.resolve(CUstream::NULL), copy, true)
    }

    /// Copies slices of rows between contexts in the order of a stream.
    fn cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz |default| (copy: In<CUDA_MEMCPY3D>, stream: CUstream) {
        copy_3d_peer(default.resolve(stream), copy, false)
    }
}
