//! Streams.

use super::{entries, forward};
use crate::abi::{Handle, In, Out, Stream};
use crate::driver::driver;
use std::ffi::{c_int, c_uint, c_ulonglong};

entries! {
    /// Makes a stream.
    fn cudaStreamCreate(stream: Out<Stream>) { driver!(cuStreamCreate(stream.required()?, 0u32)) }

    /// Returns the device of a stream.
    fn cudaStreamGetDevice, cudaStreamGetDevice_ptsz |default| (stream: Stream, device: Out<c_int>) {
        driver!(cuStreamGetDevice(default.resolve(stream), device.required()?))
    }
}

forward! {
    cudaStreamCreateWithFlags(stream: Out<Stream>, flags: c_uint) = cuStreamCreate(stream, flags);
    cudaStreamCreateWithPriority(stream: Out<Stream>, flags: c_uint, priority: c_int) =
        cuStreamCreateWithPriority(stream, flags, priority);
    cudaStreamDestroy(stream: Stream) = cuStreamDestroy_v2(stream);
    cudaStreamSynchronize, cudaStreamSynchronize_ptsz |default| (stream: Stream) =
        cuStreamSynchronize(default.resolve(stream));
    cudaStreamQuery, cudaStreamQuery_ptsz |default| (stream: Stream) = cuStreamQuery(default.resolve(stream));
    cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz |default| (stream: Stream, event: Handle, flags: c_uint) =
        cuStreamWaitEvent(default.resolve(stream), event, flags);
    cudaStreamGetFlags, cudaStreamGetFlags_ptsz |default| (stream: Stream, flags: Out<c_uint>) =
        cuStreamGetFlags(default.resolve(stream), flags);
    cudaStreamGetPriority, cudaStreamGetPriority_ptsz |default| (stream: Stream, priority: Out<c_int>) =
        cuStreamGetPriority(default.resolve(stream), priority);
    cudaStreamGetId, cudaStreamGetId_ptsz |default| (stream: Stream, id: Out<c_ulonglong>) =
        cuStreamGetId(default.resolve(stream), id);
    cudaStreamAddCallback, cudaStreamAddCallback_ptsz |default| (
        stream: Stream, callback: Handle, data: Handle, flags: c_uint
    ) = cuStreamAddCallback(default.resolve(stream), callback, data, flags);
    cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz |default| (
        stream: Stream, address: Handle, bytes: usize, flags: c_uint
    ) = cuStreamAttachMemAsync(default.resolve(stream), address, bytes, flags);
    cudaStreamCopyAttributes, cudaStreamCopyAttributes_ptsz |default| (to: Stream, from: Stream) =
        cuStreamCopyAttributes(default.resolve(to), default.resolve(from));
    cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz |default| (stream: Stream, attribute: c_int, value: Handle) =
        cuStreamGetAttribute(default.resolve(stream), attribute, value);
    cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz |default| (stream: Stream, attribute: c_int, value: Handle) =
        cuStreamSetAttribute(default.resolve(stream), attribute, value);
    cudaSignalExternalSemaphoresAsync = cudaSignalExternalSemaphoresAsync_v2(
        semaphores: In<Handle>, params: Handle, count: c_uint, stream: Stream
    ) = cuSignalExternalSemaphoresAsync(semaphores, params, count, stream);
    cudaSignalExternalSemaphoresAsync_ptsz = cudaSignalExternalSemaphoresAsync_v2_ptsz(
        semaphores: In<Handle>, params: Handle, count: c_uint, stream: Stream
    ) = cuSignalExternalSemaphoresAsync_ptsz(semaphores, params, count, stream);
    cudaWaitExternalSemaphoresAsync = cudaWaitExternalSemaphoresAsync_v2(
        semaphores: In<Handle>, params: Handle, count: c_uint, stream: Stream
    ) = cuWaitExternalSemaphoresAsync(semaphores, params, count, stream);
    cudaWaitExternalSemaphoresAsync_ptsz = cudaWaitExternalSemaphoresAsync_v2_ptsz(
        semaphores: In<Handle>, params: Handle, count: c_uint, stream: Stream
    ) = cuWaitExternalSemaphoresAsync_ptsz(semaphores, params, count, stream);
}
