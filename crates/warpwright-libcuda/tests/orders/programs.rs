//! Programs that say what they need, and the same ones without.
#![allow(unsafe_code, reason = "the functions are C's")]

use crate::common::{call, context, get, input, kernel, ok, output};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

/// How often a program does what it does.
pub(crate) const ROUNDS: u32 = 20;

const WORDS: usize = 256;
const BYTES: usize = 4 * WORDS;

const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.u32 [%rd1], %r2;
    ret;
}
";

pub(crate) fn stream(flags: u32) -> CUstream {
    // SAFETY: a place for a handle.
    get(|stream| unsafe { cuStreamCreate(stream, flags) }).unwrap()
}

pub(crate) fn event() -> CUevent {
    // SAFETY: a place for a handle.
    get(|event| unsafe { cuEventCreate(event, 2) }).unwrap()
}

fn allocate() -> CUdeviceptr {
    // SAFETY: a place for an address.
    get(|at| unsafe { cuMemAlloc_v2(at, BYTES) }).unwrap()
}

fn allocate_on(stream: CUstream) -> CUdeviceptr {
    // SAFETY: a place for an address.
    get(|at| unsafe { cuMemAllocAsync(at, BYTES, stream) }).unwrap()
}

fn fill(at: CUdeviceptr, value: u32, stream: CUstream) {
    ok!(cuMemsetD32Async(at, value, WORDS, stream));
}

fn copy(to: CUdeviceptr, from: CUdeviceptr, stream: CUstream) {
    ok!(cuMemcpyDtoDAsync_v2(to, from, BYTES, stream));
}

/// `second` does nothing more until `first` has done what it was asked for.
fn wait(second: CUstream, first: CUstream) {
    let event = event();
    ok!(cuEventRecord(event, first));
    ok!(cuStreamWaitEvent(second, event, 0));
    ok!(cuEventDestroy_v2(event));
}

/// A word, when a stream has done what it was asked for.
fn word(at: CUdeviceptr, stream: CUstream) -> u32 {
    let mut word = 0u32;
    ok!(cuMemcpyDtoHAsync_v2((&raw mut word).cast::<c_void>(), at, 4, stream));
    ok!(cuStreamSynchronize(stream));
    word
}

fn pinned() -> &'static AtomicU32 {
    let mut pointer: *mut c_void = std::ptr::null_mut();
    ok!(cuMemAllocHost_v2(output(&mut pointer), 4));
    // SAFETY: a word that was just allocated, zeroed, and is not given back.
    unsafe { &*pointer.cast::<AtomicU32>() }
}

fn address(word: &AtomicU32) -> CUdeviceptr {
    std::ptr::from_ref(word).expose_provenance() as u64
}

fn add(function: CUfunction, to: CUdeviceptr, value: u32, stream: CUstream) {
    let byte = |pointer: *const u8| input(pointer);
    let params = [byte((&raw const to).cast()), byte((&raw const value).cast())];
    let (params, extra) = (input(params.as_ptr()), In::null());
    ok!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, extra));
}

/// Plays a program; how many of its rounds came out right, or what it says otherwise.
pub(crate) fn play(part: &str) -> String {
    ok!(cuInit(0));
    context(0);
    if let Some((order, part)) = part.strip_prefix("set ").and_then(|rest| rest.split_once("; ")) {
        let order = std::ffi::CString::new(order).unwrap();
        ok!(Status(warpwrightSet(In::null(), In::null(), input(order.as_ptr()))));
        return play(part);
    }
    match part {
        "event" | "no event" => rounds(|round, a, b| produce(round, a, b, part == "event")),
        "default stream" => rounds(|round, _, _| produce(round, CUstream::NULL, stream(0), false)),
        "no default stream" => rounds(|round, a, _| produce(round, CUstream::NULL, a, false)),
        "waits between" => rounds(produce_and_wait),
        "copies that wait" => rounds(|round, _, _| look(round, CUstream::NULL)),
        "looks too early" => rounds(|round, a, _| look(round, a)),
        "used again too early" => rounds(overwrite),
        "freed behind" => rounds(free_behind),
        "freed too early by a kernel" => freed_too_early(|at, stream| {
            add(kernel(PTX, "add"), at, 1, stream);
        }),
        "freed too early by a copy" => freed_too_early(|at, stream| copy(at, allocate(), stream)),
        "branches" => branches(),
        "never waits" => {
            add(kernel(PTX, "add"), 64, 1, stream(1));
            String::new()
        }
        "waits for another device" => other_device(),
        _ => polls(part),
    }
}

fn rounds(mut round: impl FnMut(u32, CUstream, CUstream) -> bool) -> String {
    let (a, b) = (stream(1), stream(1));
    (1..=ROUNDS).filter(|number| round(*number, a, b)).count().to_string()
}

/// One stream writes, and the other reads.
fn produce(round: u32, first: CUstream, second: CUstream, waits: bool) -> bool {
    let (x, y) = (allocate(), allocate());
    fill(x, round, first);
    if waits {
        wait(second, first);
    }
    copy(y, x, second);
    word(y, second) == round
}

fn produce_and_wait(round: u32, first: CUstream, second: CUstream) -> bool {
    let (x, y) = (allocate(), allocate());
    fill(x, round, first);
    ok!(cuStreamSynchronize(first));
    copy(y, x, second);
    ok!(cuCtxSynchronize());
    let mut word = 0u32;
    ok!(cuMemcpyDtoH_v2((&raw mut word).cast::<c_void>(), y, 4));
    word == round
}

/// A kernel writes where the host looks after a copy has had it wait for the default stream.
fn look(round: u32, on: CUstream) -> bool {
    let (seen, x) = (pinned(), allocate());
    add(kernel(PTX, "add"), address(seen), round, on);
    // From memory of the client's: what the default stream has to do comes first, and the client waits for that.
    ok!(cuMemcpyHtoD_v2(x, (&raw const round).cast::<c_void>(), 4));
    seen.load(SeqCst) == round
}

/// Data is read on one stream, and its memory written on another one.
fn overwrite(round: u32, first: CUstream, second: CUstream) -> bool {
    let (x, y) = (allocate(), allocate());
    fill(x, round, first);
    ok!(cuStreamSynchronize(first));
    copy(y, x, first);
    fill(x, 0, second);
    ok!(cuStreamSynchronize(second));
    word(y, first) == round
}

fn free_behind(round: u32, first: CUstream, second: CUstream) -> bool {
    let (x, y) = (allocate_on(first), allocate());
    fill(x, round, first);
    copy(y, x, first);
    wait(second, first);
    ok!(cuMemFreeAsync(x, second));
    ok!(cuStreamSynchronize(second));
    word(y, first) == round
}

/// Memory that one stream uses, and another one gives back. What the context says at the end.
fn freed_too_early(uses: impl Fn(CUdeviceptr, CUstream)) -> String {
    let (a, b) = (stream(1), stream(1));
    let x = allocate_on(a);
    fill(x, 0, a);
    ok!(cuStreamSynchronize(a));
    // The call that gives it back is the last one, so nothing that comes behind is refused.
    uses(x, a);
    ok!(cuMemFreeAsync(x, b));
    // SAFETY: it takes no pointers.
    unsafe { cuCtxSynchronize() }.0.to_string()
}

/// A graph of two branches that write to the same word, captured and made by hand.
fn branches() -> String {
    let (a, b, x) = (stream(1), stream(1), allocate());
    let mode = CUstreamCaptureMode::THREAD_LOCAL;
    ok!(cuStreamBeginCapture_v2(a, mode));
    wait(b, a);
    fill(x, 1, a);
    fill(x, 2, b);
    wait(a, b);
    // SAFETY: places for handles.
    let captured: CUgraph = get(|graph| unsafe { cuStreamEndCapture(a, graph) }).unwrap();
    let outer: CUgraph = get(|graph| unsafe { cuGraphCreate(graph, 0) }).unwrap();
    // SAFETY: a place for a handle, and no dependencies.
    let inside = get(|node| unsafe { cuGraphAddChildGraphNode(node, outer, In::null(), 0, captured) });
    let _: CUgraphNode = inside.unwrap();
    let results = [captured, outer].map(|graph| {
        // SAFETY: a place for a handle.
        let exec: CUgraphExec = get(|exec| unsafe { cuGraphInstantiateWithFlags(exec, graph, 0) }).unwrap();
        fill(x, 0, a);
        ok!(cuGraphLaunch(exec, a));
        word(x, a).to_string()
    });
    results.join(" ")
}

/// Two devices that wait for each other's events.
fn other_device() -> String {
    let (near, at) = (stream(1), pinned());
    let near_add = kernel(PTX, "add");
    context(1);
    let (far, far_add) = (stream(1), kernel(PTX, "add"));
    let there = event();
    for round in 0..40 {
        add(near_add, address(at), 1, near);
        let here = {
            // SAFETY: a place for a handle.
            let mut of = CUcontext::default();
            ok!(cuStreamGetCtx(near, output(&mut of)));
            ok!(cuCtxPushCurrent_v2(of));
            let here = event();
            ok!(cuEventRecord(here, near));
            ok!(cuCtxPopCurrent_v2(output(&mut of)));
            here
        };
        ok!(cuStreamWaitEvent(far, here, 0));
        add(far_add, address(at), 1, far);
        ok!(cuEventRecord(there, far));
        ok!(cuStreamWaitEvent(near, there, 0));
        if round % 10 == 9 {
            ok!(cuEventSynchronize(there));
            assert_eq!(at.load(SeqCst), 2 * (round + 1));
        }
    }
    "done".into()
}

/// Clients that do not wait, but ask again and again.
fn polls(part: &str) -> String {
    let (a, b, mark, at) = (stream(1), stream(1), event(), pinned());
    let add_one = kernel(PTX, "add");
    let (held, gate) = (stream(1), pinned());
    if part.starts_with("behind one that waits, ") {
        ok!(cuStreamWaitValue32_v2(held, address(gate), 1, 0));
    }
    let until = |what: &dyn Fn() -> Status| loop {
        match what() {
            Status::SUCCESS => break,
            status => assert_eq!(status, Status::NOT_READY),
        }
    };
    for round in 1..=5 {
        let on = if part == "asks for the default stream" { CUstream::NULL } else { a };
        add(add_one, address(at), 1, on);
        ok!(cuEventRecord(mark, on));
        match part.trim_start_matches("behind one that waits, ") {
            // SAFETY: handles.
            "asks for an event" => until(&|| unsafe { cuEventQuery(mark) }),
            // SAFETY: handles.
            "asks for a stream" | "asks for the default stream" => until(&|| unsafe { cuStreamQuery(on) }),
            "looks at memory" => while at.load(SeqCst) != round {},
            "looks at memory while another stream is kept busy" => {
                // Much longer than asking for it.
                const MUCH: usize = 1 << 18;
                // SAFETY: a place for an address.
                let x: CUdeviceptr = get(|at| unsafe { cuMemAlloc_v2(at, MUCH) }).unwrap();
                let seen = (0..1 << 18).any(|count| {
                    ok!(cuMemsetD8Async(x, 1, MUCH, b));
                    if count % 256 == 0 {
                        std::thread::yield_now();
                    }
                    at.load(SeqCst) == round
                });
                assert!(seen, "what was asked for first is never done");
                ok!(cuStreamSynchronize(b));
            }
            other => panic!("no part is called {other}"),
        }
        assert_eq!(at.load(SeqCst), round);
    }
    gate.store(1, SeqCst);
    ok!(cuStreamSynchronize(held));
    "done".into()
}
