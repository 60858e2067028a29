//! Graphs through the exported functions: captured, made by hand, run, changed.
//!
//! Captures here bind their own thread alone, so that tests do not hinder each other.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the functions are C's")]

mod by_hand;
mod captured;
mod changed;
mod conditional;
mod fork;
mod memory;
mod objects;
mod overlap;
mod parameters;
#[path = "../support/mod.rs"]
mod support;

use support::*;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

pub(crate) const LOCAL: CUstreamCaptureMode = CUstreamCaptureMode::THREAD_LOCAL;

pub(crate) fn begin(stream: CUstream) {
    ok!(cuStreamBeginCapture_v2(stream, LOCAL));
}

pub(crate) fn end(stream: CUstream) -> Result<CUgraph> {
    out(|graph| call!(cuStreamEndCapture(stream, graph)))
}

pub(crate) fn ready(graph: CUgraph) -> CUgraphExec {
    out(|exec| call!(cuGraphInstantiateWithFlags(exec, graph, 0))).unwrap()
}

pub(crate) fn status_of(stream: CUstream) -> CUstreamCaptureStatus {
    out(|status| call!(cuStreamIsCapturing(stream, status))).unwrap()
}

/// The nodes of a graph.
pub(crate) fn nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    ok!(cuGraphGetNodes(graph, nowhere(), output(&mut count)));
    let mut nodes = vec![CUgraphNode::NULL; count];
    ok!(cuGraphGetNodes(graph, output(nodes.as_mut_ptr()), output(&mut count)));
    nodes
}

/// The edges of a graph, by places among its nodes.
pub(crate) fn edges(graph: CUgraph) -> Vec<(usize, usize)> {
    let nodes = nodes(graph);
    let mut count = 0;
    ok!(cuGraphGetEdges(graph, nowhere(), nowhere(), output(&mut count)));
    let (mut from, mut to) = (vec![CUgraphNode::NULL; count], vec![CUgraphNode::NULL; count]);
    let (from_at, to_at) = (output(from.as_mut_ptr()), output(to.as_mut_ptr()));
    ok!(cuGraphGetEdges(graph, from_at, to_at, output(&mut count)));
    let place = |node: &CUgraphNode| nodes.iter().position(|other| other == node).unwrap();
    let mut edges: Vec<_> = from.iter().zip(&to).map(|(from, to)| (place(from), place(to))).collect();
    edges.sort_unstable();
    edges
}

pub(crate) fn kind(node: CUgraphNode) -> Result<CUgraphNodeType> {
    out(|kind| call!(cuGraphNodeGetType(node, kind)))
}

/// The parameters of a node that launches one thread.
pub(crate) fn kernel_params(function: CUfunction, params: &Params) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: params.get(),
        extra: null(),
    }
}

/// The functions that most tests use: adding and multiplying, which do not commute.
pub(crate) struct Functions {
    pub(crate) module: CUmodule,
    pub(crate) add: CUfunction,
    pub(crate) multiply: CUfunction,
}

impl Functions {
    pub(crate) fn load() -> Self {
        let module = load(PTX).unwrap();
        let of = |name| function(module, name).unwrap();
        Functions { module, add: of("add"), multiply: of("multiply") }
    }
}
