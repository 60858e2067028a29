//! Capture of streams.

use super::entries;
use crate::engine::{Stream, permitted};
use crate::graph::nodes::Edge;
use crate::graph::{capture, graph, guard, ids};
use crate::types::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus, In, Out,
    Result, Status,
};
use std::ffi::c_uint;
use std::sync::Arc;

entries! {
    /// Begins a capture: operations on the stream become nodes of a new graph.
    fn cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz |default| (stream: CUstream, mode: CUstreamCaptureMode) {
        capture::begin(&here(default.resolve(stream))?, mode, None)
    }

    /// The same without a mode: the capture forbids calls to all threads.
    fn cuStreamBeginCapture, cuStreamBeginCapture_ptsz |default| (stream: CUstream) {
        capture::begin(&here(default.resolve(stream))?, CUstreamCaptureMode::GLOBAL, None)
    }

    /// Begins a capture into an existing graph. The first node depends on the given nodes.
    fn cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz |default| (
        stream: CUstream,
        into: CUgraph,
        behind: In<CUgraphNode>,
        edges: In<CUgraphEdgeData>,
        count: usize,
        mode: CUstreamCaptureMode,
    ) {
        let stream = here(default.resolve(stream))?;
        plain_edges(edges, count)?;
        let graph = graph(into)?;
        let behind = ids(&graph, &behind.get_all(count)?)?;
        capture::begin(&stream, mode, Some((graph, behind)))
    }

    /// Ends a capture and returns its graph, if the client wants it: it has it where it has captured into its own.
    fn cuStreamEndCapture, cuStreamEndCapture_ptsz |default| (stream: CUstream, graph: Out<CUgraph>) {
        let stream = here(default.resolve(stream))?;
        let ended = capture::end(&stream, !graph.is_null());
        graph.set_if(*ended.as_ref().unwrap_or(&CUgraph::NULL));
        ended.map(drop)
    }

    /// Returns the capture status of a stream.
    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz |default| (stream: CUstream, status: Out<CUstreamCaptureStatus>) {
        let stream = here(default.resolve(stream))?;
        status.set(capture::info(&stream)?.status)
    }

    /// Returns the capture status of a stream and the id of the capture.
    fn cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz |default| (
        stream: CUstream,
        status: Out<CUstreamCaptureStatus>,
        id: Out<u64>,
    ) {
        let stream = here(default.resolve(stream))?;
        let info = capture::info(&stream)?;
        id.set_if(info.id);
        status.set(info.status)
    }

    /// The same, with the graph and the dependencies of the next node. Each is written if the client wants it.
    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz |default| (
        stream: CUstream,
        status: Out<CUstreamCaptureStatus>,
        id: Out<u64>,
        graph: Out<CUgraph>,
        behind: Out<*const CUgraphNode>,
        count: Out<usize>,
    ) {
        let no_edges = Out::null();
        tell(default.resolve(stream), status, id, graph, behind, no_edges, count)
    }

    /// The same, with annotations of the edges, which are zero.
    fn cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz |default| (
        stream: CUstream,
        status: Out<CUstreamCaptureStatus>,
        id: Out<u64>,
        graph: Out<CUgraph>,
        behind: Out<*const CUgraphNode>,
        edges: Out<*const CUgraphEdgeData>,
        count: Out<usize>,
    ) {
        tell(default.resolve(stream), status, id, graph, behind, edges, count)
    }

    /// Changes the dependencies of the next node. Flags: 0, adds nodes; 1, replaces them.
    fn cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz |default| (
        stream: CUstream,
        behind: In<CUgraphNode>,
        count: usize,
        flags: c_uint,
    ) {
        let no_edges = In::null();
        update(default.resolve(stream), behind, no_edges, count, flags)
    }

    /// The same with annotations of the edges, which must be zero.
    fn cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz |default| (
        stream: CUstream,
        behind: In<CUgraphNode>,
        edges: In<CUgraphEdgeData>,
        count: usize,
        flags: c_uint,
    ) {
        update(default.resolve(stream), behind, edges, count, flags)
    }

    /// Exchanges the thread's capture mode, which decides which captures forbid calls to it.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<CUstreamCaptureMode>) {
        crate::state::state()?;
        mode.set(guard::exchange_mode(mode.given().get()?)?)
    }
}

/// A stream, if the thread may use it.
fn here(stream: CUstream) -> Result<Arc<Stream>> {
    permitted()?;
    Stream::get(stream)
}

/// What the annotations of edges say; `None` where there are none. Programmatic ones lead from either of the ports of a
/// kernel at which dependent launches may begin.
pub(super) fn edges(edges: In<CUgraphEdgeData>, count: usize) -> Result<Vec<Edge>> {
    if edges.is_null() {
        return Ok(vec![Edge::Plain; count]);
    }
    let edge = |edge: &CUgraphEdgeData| match (edge.from_port, edge.to_port, edge.kind, edge.reserved) {
        (0, 0, 0, [0, 0, 0, 0, 0]) => Ok(Edge::Plain),
        (1 | 2, 0, 1, [0, 0, 0, 0, 0]) => Ok(Edge::Programmatic),
        _ => {
            crate::report::log::misuse(&format_args!("{edge:?} is no edge"));
            Err(Status::INVALID_VALUE)
        }
    };
    edges.get_all(count)?.iter().map(edge).collect()
}

/// Checks that the edges to the next node of a capture are plain: those of a captured launch come from its attributes.
pub(super) fn plain_edges(edges: In<CUgraphEdgeData>, count: usize) -> Result<()> {
    match self::edges(edges, count)?.iter().all(|edge| *edge == Edge::Plain) {
        true => Ok(()),
        false => {
            crate::report::log::misuse(&"programmatic edges to the next node of a capture are not supported");
            Err(Status::NOT_SUPPORTED)
        }
    }
}

fn tell(
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    id: Out<u64>,
    graph: Out<CUgraph>,
    behind: Out<*const CUgraphNode>,
    edges: Out<*const CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    let stream = here(stream)?;
    if behind.is_null() && !edges.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let info = capture::info(&stream)?;
    if info.status == CUstreamCaptureStatus::ACTIVE {
        graph.set_if(info.graph);
        behind.set_if(info.behind);
        edges.set_if(std::ptr::null());
        count.set_if(info.count);
    }
    id.set_if(info.id);
    status.set(info.status)
}

fn update(
    stream: CUstream,
    behind: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
    flags: c_uint,
) -> Result<()> {
    let stream = here(stream)?;
    plain_edges(edges, count)?;
    let instead = match flags {
        0 => false,
        1 => true,
        _ => return Err(Status::INVALID_VALUE),
    };
    capture::set_behind(&stream, &behind.get_all(count)?, instead)
}
