//! Programmatic dependent launches: what clients say of them in graphs and in streams.

use crate::*;

/// `add` adds to a word, and `twice` doubles it, both behind their waits.
const PTX: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry add(.param .u64 to, .param .u64 more)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [more];
    cvta.to.global.u64 %rd1, %rd1;
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}

.visible .entry twice(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd1, %rd1;
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    ld.global.u32 %r1, [%rd1];
    shl.b32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

const PLAIN: CUgraphEdgeData = CUgraphEdgeData { from_port: 0, to_port: 0, kind: 0, reserved: [0; 5] };
/// From where a kernel has released its dependents, which is the default of captures.
const PROGRAMMATIC: CUgraphEdgeData = CUgraphEdgeData { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };
/// From where all of its blocks have begun.
const BEGUN: CUgraphEdgeData = CUgraphEdgeData { from_port: 2, ..PROGRAMMATIC };

fn functions() -> [CUfunction; 2] {
    let module = load(PTX).unwrap();
    ["add", "twice"].map(|name| function(module, name).unwrap())
}

fn add_kernel(graph: CUgraph, function: CUfunction, params: &[u64]) -> CUgraphNode {
    let params = Params::of(params);
    let params = kernel_params(function, &params);
    out(|node| call!(cuGraphAddKernelNode(node, graph, null(), 0, input(&params)))).unwrap()
}

fn connect(graph: CUgraph, from: CUgraphNode, to: CUgraphNode, edge: CUgraphEdgeData) -> Status {
    call!(cuGraphAddDependencies_v2(graph, input(&from), input(&to), input(&edge), 1))
}

/// What the edges of a graph are, and what the older function says.
fn kinds(graph: CUgraph) -> (Vec<CUgraphEdgeData>, Status) {
    let mut count = 0;
    ok!(cuGraphGetEdges_v2(graph, nowhere(), nowhere(), nowhere(), output(&mut count)));
    let (mut from, mut to) = (vec![CUgraphNode::NULL; count], vec![CUgraphNode::NULL; count]);
    let mut kinds = vec![PLAIN; count];
    let (from, to) = (output(from.as_mut_ptr()), output(to.as_mut_ptr()));
    ok!(cuGraphGetEdges_v2(graph, from, to, output(kinds.as_mut_ptr()), output(&mut count)));
    (kinds, call!(cuGraphGetEdges(graph, from, to, output(&mut count))))
}

fn launch_with(
    function: CUfunction,
    stream: CUstream,
    params: &[u64],
    attributes: &[CUlaunchAttribute],
) -> Status {
    let params = Params::of(params);
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: input(attributes.as_ptr()),
        numAttrs: attributes.len() as u32,
    };
    call!(cuLaunchKernelEx(input(&config), function, params.get(), null()))
}

fn attribute(id: CUlaunchAttributeID, value: CUlaunchAttributeValue) -> CUlaunchAttribute {
    CUlaunchAttribute { id, pad: [0; 4], value }
}

#[test]
fn edges_are_what_they_were_made() {
    let _context = Ctx::new();
    let ([add, twice], graph, a) =
        (functions(), out(|graph| call!(cuGraphCreate(graph, 0))).unwrap(), words(1));
    let first = add_kernel(graph, add, &[a, 3]);
    let second = add_kernel(graph, twice, &[a]);
    let third = add_kernel(graph, add, &[a, 1]);
    let empty = out(|node| call!(cuGraphAddEmptyNode(node, graph, null(), 0))).unwrap();
    assert_eq!(connect(graph, first, second, PROGRAMMATIC), OK);
    assert_eq!(kinds(graph), (vec![PROGRAMMATIC], Status::LOSSY_QUERY));
    for (edge, to, status) in [
        // There is one already.
        (PROGRAMMATIC, second, Status::INVALID_VALUE),
        (PLAIN, second, Status::INVALID_VALUE),
        // What is no kernel waits for the end.
        (PROGRAMMATIC, empty, Status::INVALID_VALUE),
        (BEGUN, empty, Status::INVALID_VALUE),
        (PLAIN, empty, OK),
        // No such edges.
        (CUgraphEdgeData { from_port: 3, ..PROGRAMMATIC }, third, Status::INVALID_VALUE),
        (CUgraphEdgeData { from_port: 1, ..PLAIN }, third, Status::INVALID_VALUE),
        (CUgraphEdgeData { to_port: 1, ..PROGRAMMATIC }, third, Status::INVALID_VALUE),
        (CUgraphEdgeData { kind: 2, ..PLAIN }, third, Status::INVALID_VALUE),
        (CUgraphEdgeData { reserved: [0, 0, 1, 0, 0], ..PLAIN }, third, Status::INVALID_VALUE),
    ] {
        assert_eq!(connect(graph, first, to, edge), status, "{edge:?}");
    }
    assert_eq!(connect(graph, second, third, BEGUN), OK);
    for graph in [graph, out(|clone| call!(cuGraphClone(clone, graph))).unwrap()] {
        ok!(cuMemsetD32_v2(a, 0, 1));
        ok!(cuStreamSynchronize(CUstream::LEGACY));
        ok!(cuGraphLaunch(ready(graph), stream()));
        assert_eq!(read(a, 1), [7]);
        let (mut found, lossy) = kinds(graph);
        found.sort_unstable_by_key(|edge| edge.kind);
        assert_eq!((found, lossy), (vec![PLAIN, PROGRAMMATIC, PROGRAMMATIC], Status::LOSSY_QUERY));
    }
}

#[test]
fn captured_launches_have_the_edges_of_their_attributes() {
    let _context = Ctx::new();
    let ([add, twice], s, a) = (functions(), stream(), words(1));
    let overlaps = |yes: i32| {
        [attribute(CUlaunchAttributeID::PROGRAMMATIC_STREAM_SERIALIZATION, CUlaunchAttributeValue::of(yes))]
    };
    begin(s);
    // The first has nothing in front, the third a fill.
    assert_eq!(launch_with(add, s, &[a, 1], &overlaps(1)), OK);
    assert_eq!(launch_with(twice, s, &[a], &overlaps(1)), OK);
    assert_eq!(launch_with(twice, s, &[a], &overlaps(0)), OK);
    ok!(cuMemsetD32Async(a, 5, 1, s));
    assert_eq!(launch_with(twice, s, &[a], &overlaps(1)), OK);
    let graph = end(s).unwrap();
    assert_eq!(kinds(graph), (vec![PROGRAMMATIC, PLAIN, PLAIN, PLAIN], Status::LOSSY_QUERY));
    ok!(cuGraphLaunch(ready(graph), s));
    assert_eq!(read(a, 1), [10]);
}

/// By the documentation of the attributes: the events are recorded no sooner than the blocks have released dependent
/// launches, or have begun.
#[test]
fn events_of_launches_are_recorded() {
    let _context = Ctx::new();
    let ([add, _], s, a) = (functions(), stream(), words(1));
    for id in [CUlaunchAttributeID::PROGRAMMATIC_EVENT, CUlaunchAttributeID::LAUNCH_COMPLETION_EVENT] {
        let (event, other) = (event(), stream());
        let mut value = CUlaunchAttributeValue::of(0);
        value.event = event;
        assert_eq!(launch_with(add, s, &[a, 2], &[attribute(id, value)]), OK);
        ok!(cuStreamWaitEvent(other, event, 0));
        ok!(cuStreamSynchronize(other));
        assert_eq!(call!(cuEventQuery(event)), OK, "{id:?}");
        value.event = CUevent(77);
        assert_eq!(launch_with(add, s, &[a, 100], &[attribute(id, value)]), Status::INVALID_HANDLE);
    }
    // What was refused was not launched.
    assert_eq!(read(a, 1), [4]);
}
