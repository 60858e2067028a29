//! What nodes and edges are: asked for, and changed.

use crate::by_hand::{add_empty, add_kernel, context_handle, copy, fill, graph};
use crate::conditional::NodeParams;
use crate::*;
use std::ffi::c_void;

/// Nodes as a function returns them in two calls.
fn listed(ask: impl Fn(Out<CUgraphNode>, Out<usize>) -> Status) -> Result<Vec<CUgraphNode>> {
    let mut count = 0;
    ask(nowhere(), output(&mut count)).into_result()?;
    let mut found = vec![CUgraphNode::NULL; count + 1];
    count += 1;
    ask(output(found.as_mut_ptr()), output(&mut count)).into_result()?;
    assert_eq!((count + 1, found.pop()), (found.len() + 1, Some(CUgraphNode::NULL)));
    Ok(found)
}

fn dependencies(node: CUgraphNode) -> Vec<CUgraphNode> {
    listed(|nodes, count| call!(cuGraphNodeGetDependencies(node, nodes, count))).unwrap()
}

fn dependents(node: CUgraphNode) -> Vec<CUgraphNode> {
    listed(|nodes, count| call!(cuGraphNodeGetDependentNodes_v2(node, nodes, nowhere(), count))).unwrap()
}

#[test]
fn edges_and_nodes_are_found_and_removed() {
    let _context = Ctx::new();
    let graph = graph();
    let a = add_empty(graph, &[]);
    let b = add_empty(graph, &[a]);
    let c = add_empty(graph, &[a]);
    let d = add_empty(graph, &[b, c]);
    let roots = || listed(|nodes, count| call!(cuGraphGetRootNodes(graph, nodes, count))).unwrap();
    assert_eq!((dependencies(d), dependents(a), roots()), (vec![b, c], vec![b, c], vec![a]));
    let clone = out(|clone| call!(cuGraphClone(clone, graph))).unwrap();
    let found = out(|found| call!(cuGraphNodeFindInClone(found, d, clone))).unwrap();
    assert_eq!(nodes(clone)[3], found);
    assert_eq!(out(|of| call!(cuGraphNodeGetContainingGraph(found, of))), Ok(clone));
    fails!(INVALID_VALUE, cuGraphNodeFindInClone(output(&mut CUgraphNode::default()), found, graph));
    ok!(cuGraphRemoveDependencies(graph, input(&b), input(&d), 1));
    fails!(INVALID_VALUE, cuGraphRemoveDependencies(graph, input(&b), input(&d), 1));
    assert_eq!((dependencies(d), dependents(b)), (vec![c], vec![]));
    ok!(cuGraphDestroyNode(c));
    fails!(INVALID_VALUE, cuGraphDestroyNode(c));
    assert_eq!((dependencies(d), nodes(graph), roots()), (vec![], vec![a, b, d], vec![a, d]));
    assert_eq!(edges(clone), [(0, 1), (0, 2), (1, 3), (2, 3)], "the clone is another graph");
    let local = |node| out(|id| call!(cuGraphNodeGetLocalId(node, id))).unwrap();
    assert_ne!(local(a), local(b));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphDestroy(clone));
}

#[test]
fn kernels_tell_their_parameters_and_take_others() {
    let _context = Ctx::new();
    let (f, graph, words) = (Functions::load(), graph(), words(2));
    let node = add_kernel(graph, &[], f.add, &[words, 5]).unwrap();
    // Parameters as they are returned make another node of the same kind.
    let told = |node| {
        let params = Params::of(&[]);
        let mut told = kernel_params(CUfunction::NULL, &params);
        ok!(cuGraphKernelNodeGetParams(node, output(&mut told)));
        told
    };
    let same = told(node);
    assert_eq!((same.func, same.gridDimX, same.blockDimZ), (f.add, 1, 1));
    out(|n| call!(cuGraphAddKernelNode(n, graph, input(&node), 1, input(&same)))).unwrap();
    let run = || {
        write(words, &[0, 0]);
        let exec = ready(graph);
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        let found = read(words, 2);
        ok!(cuGraphExecDestroy(exec));
        found
    };
    assert_eq!(run(), [10, 0]);
    let params = Params::of(&[words + 4, 7]);
    ok!(cuGraphKernelNodeSetParams(node, input(&kernel_params(f.add, &params))));
    assert_eq!(run(), [5, 7]);
    let cooperative = CUlaunchAttributeID::COOPERATIVE;
    ok!(cuGraphKernelNodeSetAttribute(node, cooperative, input(&CUlaunchAttributeValue::of(1))));
    let attribute = |node| {
        let mut value = CUlaunchAttributeValue::of(9);
        ok!(cuGraphKernelNodeGetAttribute(node, cooperative, output(&mut value)));
        value.number()
    };
    let other = nodes(graph)[1];
    assert_eq!((attribute(node), attribute(other)), (1, 0));
    ok!(cuGraphKernelNodeCopyAttributes(other, node));
    assert_eq!(attribute(other), 1);
    ok!(cuGraphDestroy(graph));
}

#[test]
fn copies_fills_and_functions_tell_their_parameters_and_take_others() {
    let _context = Ctx::new();
    let (graph, at, context) = (graph(), words(4), context_handle());
    let filling = fill(at, 6, 2);
    let filled = out(|n| call!(cuGraphAddMemsetNode(n, graph, null(), 0, input(&filling), context))).unwrap();
    let copying = copy(at + 8, at, 8);
    let behind = input(&filled);
    let copied = out(|n| call!(cuGraphAddMemcpyNode(n, graph, behind, 1, input(&copying), context))).unwrap();
    let mut fill_told = fill(0, 0, 0);
    ok!(cuGraphMemsetNodeGetParams(filled, output(&mut fill_told)));
    assert_eq!(CUDA_MEMSET_NODE_PARAMS { pitch: 0, ..fill_told }, filling);
    fill_told.value = 9;
    ok!(cuGraphMemsetNodeSetParams(filled, input(&fill_told)));
    let mut copy_told = copy(0, 0, 0);
    ok!(cuGraphMemcpyNodeGetParams(copied, output(&mut copy_told)));
    assert_eq!((copy_told.srcDevice, copy_told.dstDevice, copy_told.WidthInBytes), (at, at + 8, 8));
    (copy_told.dstDevice, copy_told.WidthInBytes) = (at + 12, 4);
    ok!(cuGraphMemcpyNodeSetParams(copied, input(&copy_told)));
    fails!(INVALID_VALUE, cuGraphMemcpyNodeSetParams(filled, input(&copy_told)));
    let exec = ready(graph);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(at, 4), [9, 9, 0, 9]);
    // Disabled, it does nothing.
    ok!(cuGraphNodeSetEnabled(exec, copied, 0));
    assert_eq!(out(|is| call!(cuGraphNodeGetEnabled(exec, copied, is))), Ok(0));
    write(at, &[0; 4]);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(at, 4), [9, 9, 0, 0]);
    ok!(cuGraphNodeSetEnabled(exec, copied, 1));
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(at, 4), [9, 9, 0, 9]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

unsafe extern "C-unwind" fn count(argument: *mut c_void) {
    // SAFETY: the test keeps it until the launch is complete.
    unsafe { *argument.cast::<u32>() += 1 };
}

#[test]
fn nodes_of_any_kind_come_by_one_structure() {
    let _context = Ctx::new();
    let (graph, inner, event, other_event, at) = (graph(), graph(), event(), event(), words(2));
    add_empty(inner, &[]);
    let mut counts = [0u32; 2];
    let [first, second] = [0, 1].map(|i| CUDA_HOST_NODE_PARAMS {
        function: Some(count),
        userData: counts.as_mut_ptr().wrapping_add(i).cast(),
    });
    type Kind = CUgraphNodeType;
    fn add<T>(graph: CUgraph, kind: Kind, body: T) -> Result<CUgraphNode> {
        let mut params = NodeParams { body, ..NodeParams::new(kind) };
        let place = params.place();
        out(|node| call!(cuGraphAddNode(node, graph, null(), 0, place)))
    }
    let host = add(graph, Kind::HOST, first).unwrap();
    let recorded = add(graph, Kind::EVENT_RECORD, event).unwrap();
    let child = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: inner, ownership: 0 };
    let child = add(graph, Kind::GRAPH, child).unwrap();
    for ownership in [-1, 2] {
        let neither = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: inner, ownership };
        assert_eq!(add(graph, Kind::GRAPH, neither), Err(Status::INVALID_VALUE));
    }
    assert_eq!(add(graph, Kind::EXT_SEMAS_WAIT, [0u64; 4]), Err(Status::NOT_SUPPORTED));
    let values = [CUstreamBatchMemOpParams {
        operation: CUstreamBatchMemOpType::WRITE_VALUE_32,
        padding: 0,
        address: at,
        value: 8,
        flags: 0,
        padding2: 0,
        alias: 0,
        padding3: 0,
    }];
    let batch = |values: &[CUstreamBatchMemOpParams]| CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: CUcontext::NULL,
        count: 1,
        paramArray: input(values.as_ptr()),
        flags: 0,
    };
    let valued = add(graph, Kind::BATCH_MEM_OP, batch(&values)).unwrap();
    let fill = CUDA_MEMSET_NODE_PARAMS_v2 { first: fill(at + 4, 3, 1), ctx: CUcontext::NULL };
    add(graph, Kind::MEMSET, fill).unwrap();
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [Kind::HOST, Kind::EVENT_RECORD, Kind::GRAPH, Kind::BATCH_MEM_OP, Kind::MEMSET]);
    // What they are is returned.
    let mut told = NodeParams::<CUDA_HOST_NODE_PARAMS>::new(Kind::EMPTY);
    ok!(cuGraphNodeGetParams(host, told.place()));
    assert_eq!(told.body.userData, first.userData);
    let mut ops = batch(&[]);
    ok!(cuGraphBatchMemOpNodeGetParams(valued, output(&mut ops)));
    assert_eq!(ops.count, 1);
    ok!(cuGraphBatchMemOpNodeSetParams(valued, input(&ops)));
    let inside = out(|inside| call!(cuGraphChildGraphNodeGetGraph(child, inside))).unwrap();
    assert!(inside != inner && nodes(inside).len() == 1);
    assert_eq!(out(|event| call!(cuGraphEventRecordNodeGetEvent(recorded, event))), Ok(event));
    fails!(INVALID_VALUE, cuGraphEventWaitNodeGetEvent(recorded, output(&mut CUevent::default())));
    ok!(cuGraphEventRecordNodeSetEvent(recorded, other_event));
    let exec = ready(graph);
    // The executable graph has its own parameters.
    let mut changed = NodeParams { body: second, ..NodeParams::new(Kind::HOST) };
    ok!(cuGraphExecNodeSetParams(exec, host, changed.place()));
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    ok!(cuEventSynchronize(other_event));
    assert_eq!(read(at, 2), [8, 3]);
    assert_eq!(counts, [0, 1]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphDestroy(inner));
}

#[test]
fn streams_have_attributes() {
    let _context = Ctx::new();
    let (one, other) = (stream(), stream());
    let get = |stream, id| {
        let mut value = CUlaunchAttributeValue::of(-1);
        call!(cuStreamGetAttribute(stream, id, output(&mut value))).into_result().map(|()| value.number())
    };
    type Id = CUlaunchAttributeID;
    ok!(cuStreamSetAttribute(one, Id::SYNCHRONIZATION_POLICY, input(&CUlaunchAttributeValue::of(2))));
    assert_eq!(
        (get(one, Id::SYNCHRONIZATION_POLICY), get(other, Id::SYNCHRONIZATION_POLICY)),
        (Ok(2), Ok(0))
    );
    ok!(cuStreamCopyAttributes(other, one));
    assert_eq!(get(other, Id::SYNCHRONIZATION_POLICY), Ok(2));
    assert_eq!(get(one, Id::COOPERATIVE), Err(Status::INVALID_VALUE));
}

#[test]
fn edges_may_lead_to_nodes_that_were_made_before() {
    let _context = Ctx::new();
    let (f, graph, word) = (Functions::load(), graph(), words(1));
    // Made in the order 2, 1, 0.
    let [last, middle, first] = [(f.add, 5), (f.multiply, 3), (f.add, 2)]
        .map(|(f, n)| add_kernel(graph, &[], f, &[word, n]).unwrap());
    ok!(cuGraphAddDependencies(graph, input(&middle), input(&last), 1));
    ok!(cuGraphAddDependencies(graph, input(&first), input(&middle), 1));
    let clone = out(|clone| call!(cuGraphClone(clone, graph))).unwrap();
    for graph in [graph, clone] {
        write(word, &[1]);
        let exec = ready(graph);
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!(read(word, 1), [14]);
        ok!(cuGraphExecDestroy(exec));
    }
    // A circle is no order.
    fails!(INVALID_VALUE, cuGraphAddDependencies(graph, input(&last), input(&last), 1));
    ok!(cuGraphAddDependencies(graph, input(&last), input(&first), 1));
    fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(output(&mut CUgraphExec::default()), graph, 0));
    ok!(cuGraphRemoveDependencies(graph, input(&last), input(&first), 1));
    ready(graph);
}
