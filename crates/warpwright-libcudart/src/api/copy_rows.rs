//! Copies of rows and slices, between memory and arrays.

use super::array::{describe, element_bytes};
use super::copy::{Direction, Order};
use super::entries;
use crate::abi::{
    DriverMemcpy3D, Extent, Handle, In, Memcpy3DParms, Memcpy3DPeerParms, PitchedPtr, Pos, Stream,
};
use crate::driver::{driver, driver_by};
use crate::error::{Error, Result};
use std::ffi::c_int;

/// The kind of memory of an array: `CUmemorytype`.
const ARRAY: u32 = 3;

/// One side of a copy. Offsets in a row are in bytes.
#[derive(Clone, Copy)]
enum Side {
    Memory { address: Handle, pitch: usize, height: usize, at: Pos },
    Array { array: Handle, at: Pos },
}

impl Side {
    /// Rows in memory from an address on.
    fn rows(address: Handle, pitch: usize) -> Side {
        Side::Memory { address, pitch, height: 0, at: Pos { x: 0, y: 0, z: 0 } }
    }

    /// An array from a byte of a row on.
    fn array(array: Handle, x: usize, y: usize) -> Side {
        Side::Array { array, at: Pos { x, y, z: 0 } }
    }

    /// A side of the structure for slices: an array or memory, of which exactly one is there.
    fn of(array: Handle, memory: PitchedPtr, at: Pos) -> Result<Side> {
        match (array.is_null(), memory.pointer.is_null()) {
            (false, true) => {
                let x = at.x.checked_mul(element_bytes(&describe(array)?)?).ok_or(Error::INVALID_VALUE)?;
                Ok(Side::Array { array, at: Pos { x, ..at } })
            }
            (true, false) => {
                Ok(Side::Memory { address: memory.pointer, pitch: memory.pitch, height: memory.ysize, at })
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn element_bytes(self) -> Result<Option<usize>> {
        match self {
            Side::Memory { .. } => Ok(None),
            Side::Array { array, .. } => Ok(Some(element_bytes(&describe(array)?)?)),
        }
    }
}

/// The driver's description of a copy of slices; `extent.width` is in bytes.
fn described(to: Side, from: Side, extent: Extent, direction: Direction) -> DriverMemcpy3D {
    let mut copy = DriverMemcpy3D::zeroed();
    let (from_kind, to_kind) = direction.kinds();
    match from {
        Side::Memory { address, pitch, height, at } => {
            (copy.src_x, copy.src_y, copy.src_z) = (at.x, at.y, at.z);
            (copy.src_type, copy.src_host, copy.src_device) = (from_kind, address, address);
            (copy.src_pitch, copy.src_height) = (pitch, height.max(at.y + extent.height));
        }
        Side::Array { array, at } => {
            (copy.src_x, copy.src_y, copy.src_z) = (at.x, at.y, at.z);
            (copy.src_type, copy.src_array) = (ARRAY, array);
        }
    }
    match to {
        Side::Memory { address, pitch, height, at } => {
            (copy.dst_x, copy.dst_y, copy.dst_z) = (at.x, at.y, at.z);
            (copy.dst_type, copy.dst_host, copy.dst_device) = (to_kind, address, address);
            (copy.dst_pitch, copy.dst_height) = (pitch, height.max(at.y + extent.height));
        }
        Side::Array { array, at } => {
            (copy.dst_x, copy.dst_y, copy.dst_z) = (at.x, at.y, at.z);
            (copy.dst_type, copy.dst_array) = (ARRAY, array);
        }
    }
    (copy.width, copy.height, copy.depth) = (extent.width, extent.height, extent.depth);
    copy
}

/// Issues a copy; one of nothing is done.
fn issue(copy: &DriverMemcpy3D, order: Order) -> Result<()> {
    if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
        return Ok(());
    }
    match order {
        Order::Waiting(default) => {
            driver_by!(default, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, (std::ptr::from_ref(copy)))
        }
        Order::On(stream) => driver!(cuMemcpy3DAsync_v2(std::ptr::from_ref(copy), stream)),
    }
}

/// Copies `height` rows of `width` bytes.
fn copy_rows(to: Side, from: Side, width: usize, height: usize, kind: c_int, order: Order) -> Result<()> {
    let direction = Direction::new(kind)?;
    let is_too_narrow = |side: Side| matches!(side, Side::Memory { pitch, .. } if pitch < width);
    if height > 0 && (is_too_narrow(to) || is_too_narrow(from)) {
        return Err(Error::INVALID_PITCH);
    }
    issue(&described(to, from, Extent { width, height, depth: 1 }, direction), order)
}

/// A part of a run of bytes of an array: where it is, and how many rows of how many bytes.
struct Part {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// The parts of a run of bytes from a byte of a row on: the rest of that row, whole rows, the beginning of the last.
fn parts(row: usize, x: usize, y: usize, bytes: usize) -> Result<Vec<Part>> {
    if row == 0 || x >= row {
        return Err(Error::INVALID_VALUE);
    }
    let head = if x == 0 { 0 } else { (row - x).min(bytes) };
    let (whole, tail) = ((bytes - head) / row, (bytes - head) % row);
    let below = y + usize::from(head > 0);
    let all = [
        Part { x, y, width: head, height: 1 },
        Part { x: 0, y: below, width: row, height: whole },
        Part { x: 0, y: below + whole, width: tail, height: 1 },
    ];
    Ok(all.into_iter().filter(|part| part.width > 0 && part.height > 0).collect())
}

/// The bytes of a row of an array.
fn row_bytes(array: Handle) -> Result<usize> {
    let found = describe(array)?;
    found.width.checked_mul(element_bytes(&found)?).ok_or(Error::INVALID_VALUE)
}

/// Where a run of bytes begins in an array.
#[derive(Clone, Copy)]
struct Start {
    array: Handle,
    x: usize,
    y: usize,
}

/// Copies a run of bytes between memory and an array.
fn copy_run(
    memory: Handle,
    start: Start,
    bytes: usize,
    kind: c_int,
    order: Order,
    is_to_array: bool,
) -> Result<()> {
    let mut done = 0;
    for part in parts(row_bytes(start.array)?, start.x, start.y, bytes)? {
        let array = Side::array(start.array, part.x, part.y);
        let rows = Side::rows(memory.wrapping_byte_add(done), part.width);
        let (to, from) = if is_to_array { (array, rows) } else { (rows, array) };
        copy_rows(to, from, part.width, part.height, kind, order)?;
        done += part.width * part.height;
    }
    Ok(())
}

/// The driver's copy for the structure of the runtime. With an array, widths are in its elements.
pub(super) fn slices(params: &Memcpy3DParms) -> Result<DriverMemcpy3D> {
    let from = Side::of(params.src_array, params.src, params.src_pos)?;
    let to = Side::of(params.dst_array, params.dst, params.dst_pos)?;
    sides(to, from, params.extent, Direction::new(params.kind)?)
}

fn sides(to: Side, from: Side, extent: Extent, direction: Direction) -> Result<DriverMemcpy3D> {
    let element = match (from.element_bytes()?, to.element_bytes()?) {
        (Some(from), Some(to)) if from != to => return Err(Error::INVALID_VALUE),
        (from, to) => from.or(to).unwrap_or(1),
    };
    let width = extent.width.checked_mul(element).ok_or(Error::INVALID_VALUE)?;
    Ok(described(to, from, Extent { width, ..extent }, direction))
}

/// The runtime's structure for a driver's copy.
pub(super) fn slices_of(copy: &DriverMemcpy3D) -> Result<Memcpy3DParms> {
    let mut params = Memcpy3DParms::zeroed();
    let width_of = |array: Handle| if array.is_null() { Ok(1) } else { element_bytes(&describe(array)?) };
    let (from, to) = (width_of(copy.src_array)?, width_of(copy.dst_array)?);
    let pointer = |kind: u32, host: Handle, device: Handle| if kind == 1 { host } else { device };
    params.src_array = copy.src_array;
    params.dst_array = copy.dst_array;
    params.src_pos = Pos { x: copy.src_x / from, y: copy.src_y, z: copy.src_z };
    params.dst_pos = Pos { x: copy.dst_x / to, y: copy.dst_y, z: copy.dst_z };
    params.src = PitchedPtr {
        pointer: if copy.src_type == ARRAY {
            std::ptr::null_mut()
        } else {
            pointer(copy.src_type, copy.src_host, copy.src_device)
        },
        pitch: copy.src_pitch,
        xsize: copy.src_pitch,
        ysize: copy.src_height,
    };
    params.dst = PitchedPtr {
        pointer: if copy.dst_type == ARRAY {
            std::ptr::null_mut()
        } else {
            pointer(copy.dst_type, copy.dst_host, copy.dst_device)
        },
        pitch: copy.dst_pitch,
        xsize: copy.dst_pitch,
        ysize: copy.dst_height,
    };
    params.extent = Extent { width: copy.width / from.max(to), height: copy.height, depth: copy.depth };
    params.kind = match (copy.src_type, copy.dst_type) {
        (1, 1) => 0,
        (1, 2 | ARRAY) => 1,
        (2 | ARRAY, 1) => 2,
        (2 | ARRAY, 2 | ARRAY) => 3,
        _ => 4,
    };
    Ok(params)
}

/// A copy of slices between devices, as the driver has it.
fn between(params: In<Memcpy3DPeerParms>) -> Result<DriverMemcpy3D> {
    let params = params.get()?;
    let from = Side::of(params.src_array, params.src, params.src_pos)?;
    let to = Side::of(params.dst_array, params.dst, params.dst_pos)?;
    let mut copy = sides(to, from, params.extent, Direction::DeviceToDevice)?;
    copy.src_context = super::peer::context(params.src_device)?;
    copy.dst_context = super::peer::context(params.dst_device)?;
    Ok(copy)
}

entries! {
    /// Copies rows between memories, and waits.
    fn cudaMemcpy2D, cudaMemcpy2D_ptds |default| (
        to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        copy_rows(Side::rows(to, to_pitch), Side::rows(from, from_pitch), width, height, kind, Order::Waiting(default))
    }

    /// Copies rows between memories in the order of a stream.
    fn cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz |default| (
        to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
        stream: Stream,
    ) {
        let order = Order::On(default.resolve(stream));
        copy_rows(Side::rows(to, to_pitch), Side::rows(from, from_pitch), width, height, kind, order)
    }

    /// Copies rows to an array, and waits. Offsets in a row are in bytes.
    fn cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds |default| (
        to: Handle, x: usize, y: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        copy_rows(Side::array(to, x, y), Side::rows(from, from_pitch), width, height, kind, Order::Waiting(default))
    }

    /// Copies rows to an array in the order of a stream.
    fn cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz |default| (
        to: Handle, x: usize, y: usize, from: Handle, from_pitch: usize, width: usize, height: usize, kind: c_int,
        stream: Stream,
    ) {
        let order = Order::On(default.resolve(stream));
        copy_rows(Side::array(to, x, y), Side::rows(from, from_pitch), width, height, kind, order)
    }

    /// Copies rows of an array to memory, and waits.
    fn cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds |default| (
        to: Handle, to_pitch: usize, from: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int,
    ) {
        copy_rows(Side::rows(to, to_pitch), Side::array(from, x, y), width, height, kind, Order::Waiting(default))
    }

    /// Copies rows of an array to memory in the order of a stream.
    fn cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz |default| (
        to: Handle, to_pitch: usize, from: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int,
        stream: Stream,
    ) {
        let order = Order::On(default.resolve(stream));
        copy_rows(Side::rows(to, to_pitch), Side::array(from, x, y), width, height, kind, order)
    }

    /// Copies rows between arrays, and waits.
    fn cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds |default| (
        to: Handle, to_x: usize, to_y: usize, from: Handle, from_x: usize, from_y: usize, width: usize, height: usize,
        kind: c_int,
    ) {
        let (to, from) = (Side::array(to, to_x, to_y), Side::array(from, from_x, from_y));
        copy_rows(to, from, width, height, kind, Order::Waiting(default))
    }

    /// Copies bytes to an array, row after row, and waits.
    fn cudaMemcpyToArray, cudaMemcpyToArray_ptds |default| (
        to: Handle, x: usize, y: usize, from: Handle, bytes: usize, kind: c_int,
    ) {
        copy_run(from, Start { array: to, x, y }, bytes, kind, Order::Waiting(default), true)
    }

    /// Copies bytes to an array, row after row, in the order of a stream.
    fn cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz |default| (
        to: Handle, x: usize, y: usize, from: Handle, bytes: usize, kind: c_int, stream: Stream,
    ) {
        copy_run(from, Start { array: to, x, y }, bytes, kind, Order::On(default.resolve(stream)), true)
    }

    /// Copies bytes of an array, row after row, and waits.
    fn cudaMemcpyFromArray, cudaMemcpyFromArray_ptds |default| (
        to: Handle, from: Handle, x: usize, y: usize, bytes: usize, kind: c_int,
    ) {
        copy_run(to, Start { array: from, x, y }, bytes, kind, Order::Waiting(default), false)
    }

    /// Copies bytes of an array, row after row, in the order of a stream.
    fn cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz |default| (
        to: Handle, from: Handle, x: usize, y: usize, bytes: usize, kind: c_int, stream: Stream,
    ) {
        copy_run(to, Start { array: from, x, y }, bytes, kind, Order::On(default.resolve(stream)), false)
    }

    /// Copies bytes between arrays with rows of one length, from the same place of a row on, and waits.
    fn cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds |default| (
        to: Handle, to_x: usize, to_y: usize, from: Handle, from_x: usize, from_y: usize, bytes: usize, kind: c_int,
    ) {
        let row = row_bytes(from)?;
        if row_bytes(to)? != row || to_x != from_x {
            return Err(Error::INVALID_VALUE);
        }
        for part in parts(row, from_x, from_y, bytes)? {
            let (to, from) = (Side::array(to, part.x, to_y + part.y - from_y), Side::array(from, part.x, part.y));
            copy_rows(to, from, part.width, part.height, kind, Order::Waiting(default))?;
        }
        Ok(())
    }

    /// Copies slices, and waits.
    fn cudaMemcpy3D, cudaMemcpy3D_ptds |default| (params: In<Memcpy3DParms>) {
        issue(&slices(&params.get()?)?, Order::Waiting(default))
    }

    /// Copies slices in the order of a stream.
    fn cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz |default| (params: In<Memcpy3DParms>, stream: Stream) {
        issue(&slices(&params.get()?)?, Order::On(default.resolve(stream)))
    }

    /// Copies slices between devices, and waits.
    fn cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds |default| (params: In<Memcpy3DPeerParms>) {
        let copy = between(params)?;
        driver_by!(default, cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, (&raw const copy))
    }

    /// Copies slices between devices in the order of a stream.
    fn cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz |default| (params: In<Memcpy3DPeerParms>, stream: Stream) {
        let copy = between(params)?;
        driver!(cuMemcpy3DPeerAsync(&raw const copy, default.resolve(stream)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_bytes_is_the_rest_of_a_row_whole_rows_and_a_beginning() {
        let all = |x, y, bytes| {
            let parts = parts(10, x, y, bytes).unwrap();
            parts.iter().map(|part| (part.x, part.y, part.width, part.height)).collect::<Vec<_>>()
        };
        assert_eq!(all(0, 2, 30), [(0, 2, 10, 3)]);
        assert_eq!(all(4, 2, 3), [(4, 2, 3, 1)]);
        assert_eq!(all(4, 2, 6), [(4, 2, 6, 1)]);
        assert_eq!(all(4, 2, 29), [(4, 2, 6, 1), (0, 3, 10, 2), (0, 5, 3, 1)]);
        assert_eq!(all(0, 0, 4), [(0, 0, 4, 1)]);
        assert_eq!(all(3, 0, 0), []);
        assert!(parts(10, 10, 0, 1).is_err());
    }
}
