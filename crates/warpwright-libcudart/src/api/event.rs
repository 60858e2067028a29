//! Events.

use super::{entries, forward};
use crate::abi::{Handle, Out, Stream};
use crate::driver::driver;
use std::ffi::c_uint;

entries! {
    /// Makes an event.
    fn cudaEventCreate(event: Out<Handle>) { driver!(cuEventCreate(event.required()?, 0u32)) }
}

forward! {
    cudaEventCreateWithFlags(event: Out<Handle>, flags: c_uint) = cuEventCreate(event, flags);
    cudaEventDestroy(event: Handle) = cuEventDestroy_v2(event);
    cudaEventQuery(event: Handle) = cuEventQuery(event);
    cudaEventSynchronize(event: Handle) = cuEventSynchronize(event);
    cudaEventElapsedTime = cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) =
        cuEventElapsedTime(milliseconds, start, end);
    cudaEventRecord, cudaEventRecord_ptsz |default| (event: Handle, stream: Stream) =
        cuEventRecord(event, default.resolve(stream));
    cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz |default| (event: Handle, stream: Stream, flags: c_uint) =
        cuEventRecordWithFlags(event, default.resolve(stream), flags);
}
