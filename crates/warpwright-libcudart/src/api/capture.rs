//! Capture of streams.

use super::{entries, forward};
use crate::abi::{Handle, Out, Stream};
use crate::driver::{driver, driver_by};
use crate::error::Result;
use crate::state::{DefaultStream, major};
use std::ptr::with_exposed_provenance_mut;
use std::ffi::{c_int, c_uint, c_ulonglong};

/// Where a client wants what is known of a capture; each may be null but the status.
struct Info {
    status: Out<c_int>,
    id: Out<c_ulonglong>,
    graph: Out<Handle>,
    dependencies: Out<Handle>,
    edges: Option<Out<Handle>>,
    count: Out<usize>,
}

fn info(stream: Stream, wanted: &Info) -> Result<()> {
    let Info { status, id, graph, dependencies, edges, count } = *wanted;
    let status = status.required()?;
    match edges {
        Some(edges) => {
            driver!(cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count))
        }
        None => driver!(cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count)),
    }
}

fn update(stream: Stream, nodes: Handle, edges: Handle, count: usize, flags: c_uint) -> Result<()> {
    driver!(cuStreamUpdateCaptureDependencies_v2(stream, nodes, edges, count, flags))
}

entries! {
    /// Returns what is known of the capture of a stream. CUDA 12 asks for status and id only.
    fn cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz |default| (
        stream: Stream, status: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>, dependencies: Out<Handle>,
        edges: Out<Handle>, count: Out<usize>,
    ) {
        let stream = default.resolve(stream);
        match major() {
            12 => driver!(cuStreamGetCaptureInfo(stream, status.required()?, id)),
            _ => info(stream, &Info { status, id, graph, dependencies, edges: Some(edges), count }),
        }
    }

    /// Returns what is known of the capture of a stream, without data of edges.
    fn cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2_ptsz |default| (
        stream: Stream, status: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>, dependencies: Out<Handle>,
        count: Out<usize>,
    ) {
        info(default.resolve(stream), &Info { status, id, graph, dependencies, edges: None, count })
    }

    /// Returns what is known of the capture of a stream.
    fn cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v3_ptsz |default| (
        stream: Stream, status: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>, dependencies: Out<Handle>,
        edges: Out<Handle>, count: Out<usize>,
    ) {
        info(default.resolve(stream), &Info { status, id, graph, dependencies, edges: Some(edges), count })
    }

    /// Changes on what the next captured node depends. CUDA 12 has no data of edges.
    fn cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz |default| (
        stream: Stream, nodes: Handle, edges_or_count: usize, count_or_flags: usize, flags_of_13: c_uint,
    ) {
        let stream = default.resolve(stream);
        match major() {
            12 => {
                let flags = count_or_flags as c_uint;
                driver!(cuStreamUpdateCaptureDependencies(stream, nodes, edges_or_count, flags))
            }
            _ => update(stream, nodes, with_exposed_provenance_mut(edges_or_count), count_or_flags, flags_of_13),
        }
    }

    /// Changes on what the next captured node depends.
    fn cudaStreamUpdateCaptureDependencies_v2, cudaStreamUpdateCaptureDependencies_v2_ptsz |default| (
        stream: Stream, nodes: Handle, edges: Handle, count: usize, flags: c_uint,
    ) {
        update(default.resolve(stream), nodes, edges, count, flags)
    }

    /// Makes an executable graph, with parameters, among which is a stream.
    fn cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz |default| (
        exec: Out<Handle>, graph: Handle, params: Handle,
    ) {
        let exec = exec.required()?;
        driver_by!(default, cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, (exec, graph, params))
    }
}

forward! {
    cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz |default| (stream: Stream, mode: c_int) =
        cuStreamBeginCapture_v2(default.resolve(stream), mode);
    cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz |default| (
        stream: Stream, graph: Handle, nodes: Handle, edges: Handle, count: usize, mode: c_int
    ) = cuStreamBeginCaptureToGraph(default.resolve(stream), graph, nodes, edges, count, mode);
    cudaStreamBeginRecaptureToGraph, cudaStreamBeginRecaptureToGraph_ptsz |default| (
        stream: Stream, mode: c_int, graph: Handle, callback: Handle
    ) = cuStreamBeginRecaptureToGraph(default.resolve(stream), mode, graph, callback);
    cudaStreamEndCapture, cudaStreamEndCapture_ptsz |default| (stream: Stream, graph: Out<Handle>) =
        cuStreamEndCapture(default.resolve(stream), graph);
    cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz |default| (stream: Stream, status: Out<c_int>) =
        cuStreamIsCapturing(default.resolve(stream), status);
    cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) = cuThreadExchangeStreamCaptureMode(mode);
    cudaGraphLaunch, cudaGraphLaunch_ptsz |default| (exec: Handle, stream: Stream) =
        cuGraphLaunch(exec, DefaultStream::resolve(default, stream));
    cudaGraphUpload, cudaGraphUpload_ptsz |default| (exec: Handle, stream: Stream) =
        cuGraphUpload(exec, default.resolve(stream));
}
