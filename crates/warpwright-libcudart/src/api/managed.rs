//! Managed memory: advice, and moves ahead of use.

use super::{entries, forward};
use crate::abi::{Handle, Location, Out, Stream};
use crate::driver::driver;
use crate::error::Result;
use crate::state::{DefaultStream, major};
use std::ffi::{c_int, c_uint, c_ulonglong};

/// The kinds of places: `cudaMemLocationType`.
const DEVICE: c_int = 1;
const HOST: c_int = 2;

/// The device number that stands for the host: `cudaCpuDeviceId`.
const CPU: c_int = -1;

/// The place that a number of a device stands for.
fn place(device: c_int) -> Location {
    if device == CPU { Location { kind: HOST, id: 0 } } else { Location { kind: DEVICE, id: device } }
}

/// A parameter that is a device's number in CUDA 12, and a place since: one register either way.
fn place_of(bits: c_ulonglong) -> Location {
    match major() {
        12 => place(bits as c_int),
        _ => Location { kind: bits as c_int, id: (bits >> 32) as c_int },
    }
}

fn prefetch(address: Handle, bytes: usize, to: Location, flags: c_uint, stream: Stream) -> Result<()> {
    driver!(cuMemPrefetchAsync_v2(address, bytes, to, flags, stream))
}

entries! {
    /// Advises how a range is used.
    fn cudaMemAdvise(address: Handle, bytes: usize, advice: c_int, place: c_ulonglong) {
        driver!(cuMemAdvise_v2(address, bytes, advice, place_of(place)))
    }

    /// Advises how a range is used, with a place.
    fn cudaMemAdvise_v2(address: Handle, bytes: usize, advice: c_int, place: Location) {
        driver!(cuMemAdvise_v2(address, bytes, advice, place))
    }

    /// Moves a range to where it is used next. CUDA 12 has no flags before the stream.
    fn cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz |default| (
        address: Handle,
        bytes: usize,
        place: c_ulonglong,
        flags_or_stream: usize,
        stream_of_13: Stream,
    ) {
        let (flags, stream) = match major() {
            12 => (0, Stream(flags_or_stream)),
            _ => (flags_or_stream as c_uint, stream_of_13),
        };
        prefetch(address, bytes, place_of(place), flags, default.resolve(stream))
    }

    /// Moves a range to where it is used next.
    fn cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync_v2_ptsz |default| (
        address: Handle,
        bytes: usize,
        place: Location,
        flags: c_uint,
        stream: Stream,
    ) {
        prefetch(address, bytes, place, flags, default.resolve(stream))
    }
}

forward! {
    cudaMemRangeGetAttribute(data: Handle, room: usize, attribute: c_int, address: Handle, bytes: usize) =
        cuMemRangeGetAttribute(data, room, attribute, address, bytes);
    cudaMemRangeGetAttributes(
        data: Out<Handle>, rooms: Out<usize>, attributes: Out<c_int>, count: usize, address: Handle, bytes: usize
    ) = cuMemRangeGetAttributes(data, rooms, attributes, count, address, bytes);
    cudaMemPrefetchBatchAsync, cudaMemPrefetchBatchAsync_ptsz |default| (
        addresses: Handle, sizes: Handle, count: usize, places: Handle, indices: Handle, place_count: usize,
        flags: c_ulonglong, stream: Stream
    ) = cuMemPrefetchBatchAsync(
        addresses, sizes, count, places, indices, place_count, flags, DefaultStream::resolve(default, stream)
    );
}
