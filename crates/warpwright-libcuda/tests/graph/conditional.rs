//! Conditional nodes: what runs depends on values that kernels set.

use crate::by_hand::{add_empty, add_kernel, graph};
use crate::*;
use std::ffi::c_void;

const INVALID: Status = Status::INVALID_VALUE;

const SETTERS: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

// Sets the value to the word at `from`.
.visible .entry choose(.param .u64 from, .param .u64 handle)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [handle];
    ld.global.u32 %r1, [%rd1];
    {
    .param .b64 a;
    st.param.b64 [a], %rd2;
    .param .b32 b;
    st.param.b32 [b], %r1;
    call.uni cudaGraphSetConditional, (a, b);
    }
    ret;
}

// Takes one from the word at `from`, and sets the value to what is left.
.visible .entry down(.param .u64 from, .param .u64 handle)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [handle];
    ld.global.u32 %r1, [%rd1];
    sub.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    {
    .param .b64 a;
    st.param.b64 [a], %rd2;
    .param .b32 b;
    st.param.b32 [b], %r1;
    call.uni cudaGraphSetConditional, (a, b);
    }
    ret;
}
";

struct Setters {
    choose: CUfunction,
    down: CUfunction,
}

impl Setters {
    /// Kernels that are linked with the device runtime.
    fn load() -> Setters {
        let none = std::ptr::null_mut::<c_void>;
        let link = out(|link| call!(cuLinkCreate_v2(0, null(), nowhere(), link))).unwrap();
        let (ptx, name) = (text(SETTERS), text("setters"));
        let data = input(ptx.as_ptr().cast::<u8>());
        let size = SETTERS.len() + 1;
        ok!(cuLinkAddData_v2(link, CUjitInputType::PTX, data, size, chars(&name), 0, null(), nowhere()));
        let (mut image, mut bytes) = (none(), 0usize);
        ok!(cuLinkComplete(link, output((&raw mut image).cast()), output(&mut bytes)));
        let module = out(|module| call!(cuModuleLoadData(module, input(image.cast::<u8>())))).unwrap();
        ok!(cuLinkDestroy(link));
        let of = |name| function(module, name).unwrap();
        Setters { choose: of("choose"), down: of("down") }
    }
}

fn handle(graph: CUgraph, default: Option<u32>) -> u64 {
    let (value, flags) = (default.unwrap_or(0), default.is_some().into());
    out(|handle| call!(cuGraphConditionalHandleCreate(handle, graph, CUcontext::NULL, value, flags))).unwrap()
}

type Kind = CUgraphConditionalNodeType;

/// A conditional node behind another one, and its bodies.
fn conditional(
    graph: CUgraph,
    behind: &[CUgraphNode],
    (handle, kind, size): (u64, Kind, u32),
) -> Result<(CUgraphNode, Vec<CUgraph>)> {
    let mut params = NodeParams::new(CUgraphNodeType::CONDITIONAL);
    params.body =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, kind, size, phGraph_out: null(), ctx: CUcontext::NULL };
    let before = input(behind.as_ptr());
    let place = params.place();
    let node = out(|n| call!(cuGraphAddNode_v2(n, graph, before, null(), behind.len(), place)))?;
    let bodies = params.body.phGraph_out;
    // SAFETY: the list that the call has returned.
    let bodies = (0..size as usize).map(|body| unsafe { *bodies_at(bodies).add(body) });
    Ok((node, bodies.collect()))
}

/// A conditional node behind another one, with a body for each of some numbers, which adds it to a word.
fn adding(
    graph: CUgraph,
    behind: &[CUgraphNode],
    (handle, kind): (u64, Kind),
    (add, to): (CUfunction, CUdeviceptr),
    numbers: &[u64],
) -> (CUgraphNode, Vec<CUgraph>) {
    let (node, bodies) = conditional(graph, behind, (handle, kind, numbers.len() as u32)).unwrap();
    for (body, number) in bodies.iter().zip(numbers) {
        add_kernel(*body, &[], add, &[to, *number]).unwrap();
    }
    (node, bodies)
}

fn bodies_at(bodies: In<CUgraph>) -> *const CUgraph {
    // SAFETY: the type is the pointer.
    unsafe { std::mem::transmute::<In<CUgraph>, *const CUgraph>(bodies) }
}

/// The parameters of a node of any kind with the structure of its kind.
#[repr(C)]
pub(crate) struct NodeParams<T> {
    pub(crate) kind: CUgraphNodeType,
    pub(crate) reserved: [i32; 3],
    pub(crate) body: T,
    pub(crate) rest: [u64; 32],
}

impl<T> NodeParams<T> {
    pub(crate) fn new(kind: CUgraphNodeType) -> Self {
        // SAFETY: the structures of the interface are integers, and pointers that may be null.
        NodeParams { kind, ..unsafe { std::mem::zeroed() } }
    }

    pub(crate) fn place(&mut self) -> Out<CUgraphNodeParams> {
        output(std::ptr::from_mut(self).cast())
    }
}

#[test]
fn values_choose_among_bodies() {
    let context = Ctx::new();
    let (f, set, word) = (Functions::load(), Setters::load(), words(2));
    let (from, to) = (word, word + 4);
    for (kind, size, expected) in [
        (Kind::IF, 1, [0, 1, 1, 1]),
        (Kind::IF, 2, [10, 1, 1, 1]),
        (Kind::SWITCH, 1, [1, 0, 0, 0]),
        (Kind::SWITCH, 3, [1, 10, 100, 0]),
    ] {
        let graph = graph();
        let handle = handle(graph, None);
        let chosen = add_kernel(graph, &[], set.choose, &[from, handle]).unwrap();
        let (node, bodies) = adding(graph, &[chosen], (handle, kind), (f.add, to), &[1, 10, 100][..size]);
        // What comes behind comes behind the body.
        add_kernel(graph, &[node], f.multiply, &[to, 3]).unwrap();
        assert_eq!(self::kind(node), Ok(CUgraphNodeType::CONDITIONAL));
        let exec = ready(graph);
        for (value, expected) in (0..).zip(expected) {
            write(word, &[value, 0]);
            ok!(cuGraphLaunch(exec, CUstream::NULL));
            assert_eq!(read(to, 1), [3 * expected], "{kind:?} with {size}: {value}");
        }
        ok!(cuGraphExecDestroy(exec));
        ok!(cuGraphDestroy(graph));
        fails!(INVALID_VALUE, cuGraphGetNodes(bodies[0], nowhere(), output(&mut 0)));
    }
    drop(context);
}

#[test]
fn a_loop_runs_until_its_value_is_zero() {
    let _context = Ctx::new();
    let (f, set, word, stream) = (Functions::load(), Setters::load(), words(2), stream());
    let (from, to) = (word, word + 4);
    let graph = graph();
    let handle = handle(graph, Some(1));
    let (_, bodies) = conditional(graph, &[], (handle, Kind::WHILE, 1)).unwrap();
    // The body is captured.
    ok!(cuStreamBeginCaptureToGraph(stream, bodies[0], null(), null(), 0, LOCAL));
    assert_eq!(launch(f.add, stream, &[to, 1]), OK);
    assert_eq!(launch(set.down, stream, &[from, handle]), OK);
    ok!(cuStreamEndCapture(stream, nowhere()));
    let exec = ready(graph);
    for count in [1, 7, 2500] {
        write(word, &[count, 0]);
        ok!(cuGraphLaunch(exec, stream));
        assert_eq!(read(word, 2), [0, count]);
    }
    // Others go on meanwhile, and two launches follow one another.
    write(word, &[3, 0]);
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    write(word, &[4]);
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!(read(word, 2), [0, 7]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn conditional_nodes_are_in_one_another() {
    let _context = Ctx::new();
    let (f, set, word) = (Functions::load(), Setters::load(), words(3));
    let (from, which, to) = (word, word + 4, word + 8);
    let graph = graph();
    let (outer, inner) = (handle(graph, Some(1)), handle(graph, None));
    let (_, loops) = conditional(graph, &[], (outer, Kind::WHILE, 1)).unwrap();
    let lowered = add_kernel(loops[0], &[], set.down, &[from, outer]).unwrap();
    let chosen = add_kernel(loops[0], &[lowered], set.choose, &[which, inner]).unwrap();
    adding(loops[0], &[chosen], (inner, Kind::IF), (f.add, to), &[1, 100]);
    let exec = ready(graph);
    for (value, expected) in [(0, 500), (1, 5)] {
        write(word, &[5, value, 0]);
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!(read(word, 3), [0, value, expected]);
    }
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

/// Without initcheck, a value that nobody has set counts as 0.
#[test]
fn a_launch_forgets_what_an_earlier_one_has_set() {
    let _context = Ctx::new();
    let (f, set, word) = (Functions::load(), Setters::load(), words(2));
    let graph = graph();
    let handle = handle(graph, None);
    let setter = add_kernel(graph, &[], set.choose, &[word, handle]).unwrap();
    adding(graph, &[setter], (handle, Kind::SWITCH), (f.add, word + 4), &[1, 10]);
    write(word, &[1, 0]);
    let exec = ready(graph);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(word + 4, 1), [10]);
    ok!(cuGraphNodeSetEnabled(exec, setter, 0));
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(word + 4, 1), [11]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn a_launch_begins_with_the_default() {
    let _context = Ctx::new();
    let (f, set, word) = (Functions::load(), Setters::load(), words(2));
    let graph = graph();
    let handle = handle(graph, Some(2));
    let (node, _) = adding(graph, &[], (handle, Kind::SWITCH), (f.add, word + 4), &[1, 10, 100]);
    // It sets what no node asks for any more.
    add_kernel(graph, &[node], set.choose, &[word, handle]).unwrap();
    let exec = ready(graph);
    for round in 1..4 {
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!(read(word + 4, 1), [100 * round]);
    }
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn a_loop_that_nothing_ends_is_a_failure() {
    let _context = Ctx::new();
    let word = words(1);
    let graph = graph();
    let handle = handle(graph, Some(1));
    let (_, bodies) = conditional(graph, &[], (handle, Kind::WHILE, 1)).unwrap();
    let filling = by_hand::fill(word, 1, 1);
    let context = by_hand::context_handle();
    out(|n| call!(cuGraphAddMemsetNode(n, bodies[0], null(), 0, input(&filling), context))).unwrap();
    let exec = ready(graph);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    fails!(LAUNCH_FAILED, cuCtxSynchronize());
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn handles_and_bodies_that_do_not_fit_are_refused() {
    let _context = Ctx::new();
    let (graph, other) = (graph(), graph());
    let own = handle(graph, None);
    for (what, given) in [
        ("no handle", (own + 8, Kind::IF, 1)),
        ("too many", (own, Kind::IF, 3)),
        ("two loops", (own, Kind::WHILE, 2)),
        ("nothing to choose", (own, Kind::SWITCH, 0)),
        ("no kind", (own, CUgraphConditionalNodeType(3), 1)),
        ("another graph's", (handle(other, None), Kind::IF, 1)),
    ] {
        assert_eq!(conditional(graph, &[], given).err(), Some(INVALID), "{what}");
    }
    let (_, bodies) = conditional(graph, &[], (own, Kind::IF, 1)).unwrap();
    assert_eq!(conditional(graph, &[], (own, Kind::IF, 1)).err(), Some(INVALID), "twice");
    let mut made = 0;
    fails!(INVALID_VALUE, cuGraphConditionalHandleCreate(output(&mut made), graph, CUcontext::NULL, 1, 2));
    fails!(NOT_SUPPORTED, cuGraphClone(output(&mut CUgraph::default()), graph));
    fails!(INVALID_VALUE, cuGraphDestroy(bodies[0]));
    // Events, and functions of the host, are not in bodies.
    add_empty(bodies[0], &[]);
    ready(graph);
    let (event, mut node) = (event(), CUgraphNode::NULL);
    ok!(cuGraphAddEventRecordNode(output(&mut node), bodies[0], null(), 0, event));
    fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(output(&mut CUgraphExec::default()), graph, 0));
    fails!(NOT_SUPPORTED, cuGraphAddMemFreeNode(output(&mut node), bodies[0], null(), 0, words(1)));
}
