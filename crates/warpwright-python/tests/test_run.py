"""`warpwright.run`: arrays, numbers, outputs, what is refused, and what is found."""

from __future__ import annotations

import copy
import doctest
import multiprocessing
import os
import pickle
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import warpwright
from warpwright import WarpwrightError, out, run
from warpwright._signatures import parameters, signatures


def ptx(parameters: str, body: str, registers: str = "") -> str:
    """A kernel `k` with parameters, and with registers; `%i` is the index of the thread in the grid."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k({parameters})
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<4>;
    .reg .b32 %i;
    {registers}
    mov.u32     %r1, %ctaid.x;
    mov.u32     %r2, %ntid.x;
    mov.u32     %r3, %tid.x;
    mad.lo.s32  %i, %r1, %r2, %r3;
{body}
    ret;
}}
"""


ADD = ptx(
    ".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n",
    """
    ld.param.u64    %rd1, [x];
    ld.param.u64    %rd2, [y];
    ld.param.f32    %f2, [a];
    ld.param.u32    %r4, [n];
    setp.ge.u32     %p1, %i, %r4;
    @%p1 bra        $end;
    mul.wide.u32    %rd3, %i, 4;
    add.u64         %rd1, %rd1, %rd3;
    add.u64         %rd2, %rd2, %rd3;
    ld.global.f32   %f1, [%rd1];
    add.f32         %f1, %f1, %f2;
    st.global.f32   [%rd2], %f1;
$end:
""",
)


def kinds(report: warpwright.Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def test_arrays_are_read_and_written_where_they_are() -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    outputs, report = run(ADD, 2, 64, [x, y, 0.5, 100], check="all")
    assert report.is_clean and report.ok and not outputs and report.findings == [] and report.trap is None
    assert (y == x + 0.5).all()


def test_outputs_are_allocated_and_must_be_written() -> None:
    x = np.ones((10, 10), np.float32)
    (y, z), report = run(
        ptx(".param .u64 y, .param .u64 z", "    ld.param.u64 %rd1, [y];\n    st.global.u32 [%rd1+8], %i;"),
        1,
        1,
        {"y": out(4, np.int32), "z": out((2, 3), np.int16, partial=True)},
        check="all",
    )
    assert y.tolist() == [-1, -1, 0, -1] and z.shape == (2, 3) and z.dtype == np.int16
    assert kinds(report) == ["unwritten-output"] and not report.ok
    (y,), report = run(ADD, 2, 64, {"x": x, "y": out(x.shape), "a": 1, "n": 100}, check="all")
    assert report.is_clean and (y == 2).all()
    # What is read before it is written.
    (y,), report = run(ADD, 2, 64, {"x": out(100), "y": x, "a": 1.0, "n": 100}, check="all")
    assert kinds(report) == ["uninitialized", "unwritten-output"]


def test_views_share_the_memory_of_their_array() -> None:
    both = np.arange(200, dtype=np.float32)
    _, report = run(ADD, 2, 64, [both[:100], both[100:], 1.0, 100], check="all")
    assert report.is_clean and (both[100:] == both[:100] + 1).all()
    # The kernel goes on behind the view, within the array.
    _, report = run(ADD, 1, 64, [both[190:], both[:20], 1.0, 11], check="all")
    assert kinds(report) == ["out-of-bounds"]


@pytest.mark.parametrize("made", ["flag", "bytes", "broadcast"])
def test_what_is_not_writeable_is_read_only(made: str) -> None:
    x = np.zeros(4, np.float32)
    if made == "bytes":
        x = np.frombuffer(bytes(16), np.float32)
    elif made == "broadcast":
        x = np.broadcast_to(np.zeros(4, np.float32), (2, 4))[0]
    else:
        x.flags.writeable = False
    y = np.ones(4, np.float32)
    _, report = run(ADD, 1, 4, [x, y, 3.0, 4])
    assert report.is_clean and (y == 3).all()
    _, report = run(ADD, 1, 4, [y, x, 3.0, 4])
    assert not report.ok and len(report.findings) == 1 and (x == 0).all()
    # The same memory through an array that is.
    if made == "flag":
        whole = np.zeros(4, np.float32)
        view = whole[:]
        view.flags.writeable = False
        _, report = run(ADD, 1, 4, [view, whole, 3.0, 4])
        assert report.is_clean and (whole == 3).all()


VIEWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], bool]] = {
    "all": (lambda x: x, True),
    "steps": (lambda x: x.ravel()[::2], False),
    "backwards": (lambda x: x.ravel()[::-1], False),
    "one for all": (lambda x: np.broadcast_to(x[0, 0, :1], (8,)), False),
    "columns": (lambda x: x[:, :, :2], False),
    "other axes": (lambda x: x.transpose(1, 0, 2), False),
    "order of Fortran": (lambda x: x.T, True),
    "rows": (lambda x: x[1:], True),
    "one of each": (lambda x: x.ravel()[::2][:1], True),
    "nothing": (lambda x: x[:, :0, ::2], True),
    "a number": (lambda x: x[0, 0, ::2][0:1].reshape(()), True),
    "a field": (lambda x: np.zeros(8, [("a", np.float32), ("b", np.int32)])["a"], False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_elements_follow_each_other(name: str) -> None:
    view, is_dense = VIEWS[name]
    x = view(np.zeros((4, 4, 4), np.float32))
    launch = [ADD, 1, 1, [x, np.zeros(4, np.float32), 1.0, 0]]
    if is_dense:
        assert run(*launch)[1].is_clean
        return
    with pytest.raises(WarpwrightError, match="argument 0 .*ascontiguousarray"):
        run(*launch)
    launch[3] = [np.ascontiguousarray(x), *launch[3][1:]]
    assert run(*launch)[1].is_clean


@pytest.mark.torch
@pytest.mark.parametrize("name", ["all", "steps", "columns", "other axes", "order of Fortran", "rows", "nothing"])
def test_elements_of_tensors_follow_each_other(name: str) -> None:
    torch = pytest.importorskip("torch")
    view, is_dense = VIEWS[name]
    x = torch.from_numpy(view(np.zeros((4, 4, 4), np.float32)))
    launch = [ADD, 1, 1, [np.zeros(4, np.float32), x, 1.0, 0]]
    if is_dense:
        assert run(*launch)[1].is_clean
        return
    with pytest.raises(WarpwrightError, match=r"argument 1 .*x.contiguous\(\)"):
        run(*launch)
    with pytest.raises(WarpwrightError, match="sparse"):
        run(ADD, 1, 1, [x.to_sparse(), x, 1.0, 0])


def test_arguments_by_name() -> None:
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    _, report = run(ADD, 1, 4, {"n": 4, "y": y, "x": x, "a": 2.0})
    assert report.is_clean and y.tolist() == [3.0] * 4
    # Outputs are in the order of the parameters.
    (first, second), _ = run(ADD, 1, 4, {"y": out(2, partial=True), "x": out(3), "a": 0.0, "n": 0})
    assert (first.size, second.size) == (3, 2)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ({"x": 0, "y": 0, "a": 1.0}, "are x, y, a, n; n: not given$"),
        ({"x": 0, "z": 0, "a": 1.0, "n": 0}, "are x, y, a, n; it has no z; y: not given$"),
        ({"x": 0, "y": 0, "a": 1.0, "n": 0, "m": 0, 5: 0}, "are x, y, a, n; it has no m, 5$"),
        ({}, "are x, y, a, n; x, y, a, n: not given$"),
    ],
)
def test_names_are_those_of_the_kernel(args: dict[str, object], match: str) -> None:
    with pytest.raises(WarpwrightError, match=match):
        run(ADD, 1, 1, args)


def test_names_of_compiled_ptx_are_those_of_the_caller() -> None:
    compiled = ADD
    for number, name in enumerate("xyan"):
        compiled = re.sub(rf"\[{name}\]|(?<=[ufr]\d\d ){name}\b", lambda found, number=number: (
            f"[k_param_{number}]" if found[0][0] == "[" else f"k_param_{number}"), compiled)  # fmt: skip
    _, report = run(
        compiled, 1, 5, {"first": np.zeros(4, np.float32), "second": np.zeros(5, np.float32), "": 1.0, "n": 5}
    )
    assert [finding.allocation.arguments for finding in report.findings if finding.allocation] == [("k_param_0",)]
    with pytest.raises(WarpwrightError, match="4 parameters"):
        run(compiled, 1, 5, {"first": 1})


STORE = {
    "u8": "    .reg .b16 %h;\n    ld.param.u8 %h, [v];\n    st.global.u8 [%rd1], %h;",
    "u16": "    .reg .b16 %h;\n    ld.param.u16 %h, [v];\n    st.global.u16 [%rd1], %h;",
    "u32": "    ld.param.u32 %r5, [v];\n    st.global.u32 [%rd1], %r5;",
    "s32": "    ld.param.s32 %r5, [v];\n    st.global.u32 [%rd1], %r5;",
    "b32": "    ld.param.b32 %r5, [v];\n    st.global.b32 [%rd1], %r5;",
    "u64": "    ld.param.u64 %rd2, [v];\n    st.global.u64 [%rd1], %rd2;",
    "f32": "    ld.param.f32 %f1, [v];\n    st.global.f32 [%rd1], %f1;",
    "f64": "    .reg .f64 %d;\n    ld.param.f64 %d, [v];\n    st.global.f64 [%rd1], %d;",
}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("u8", 255, np.uint8(255)),
        ("u8", True, np.uint8(1)),
        ("u8", 256, None),
        ("u16", np.int16(-2), np.int16(-2)),
        ("u16", np.float16(1.5), None),
        ("u16", np.int64(70000), None),
        ("u32", 2**32 - 1, np.uint32(2**32 - 1)),
        ("u32", -1, np.int32(-1)),
        ("u32", 2**32, None),
        ("u32", -(2**31) - 1, None),
        ("u32", 1.0, None),
        ("u32", np.int64(1), np.uint32(1)),
        ("u32", np.float32(1), None),
        ("s32", np.uint32(7), np.uint32(7)),
        ("b32", np.float32(1.5), np.float32(1.5)),
        ("b32", 1.5, None),
        ("b32", b"abcd", np.frombuffer(b"abcd", np.uint32)[0]),
        ("b32", b"abc", None),
        ("u64", 2**64 - 1, np.uint64(2**64 - 1)),
        ("u64", None, np.uint64(0)),
        ("u64", "x", None),
        ("f32", 0.1, np.float32(0.1)),
        ("f32", 3, np.float32(3)),
        ("f32", 1e300, None),
        ("f32", None, None),
        ("f32", np.ones(1), None),
        ("u32", np.ones(1, np.int32), None),
        ("u32", np.int64(-1), np.int32(-1)),
        ("f32", np.float64(0.1), np.float32(0.1)),
        ("f32", np.int32(1), np.float32(1)),
        ("f64", 0.1, np.float64(0.1)),
    ],
)
def test_numbers_are_what_the_parameter_says(kind: str, value: object, expected: np.generic | None) -> None:
    kernel = ptx(f".param .u64 y, .param .{kind} v", "    ld.param.u64 %rd1, [y];\n" + STORE[kind])
    y = np.zeros(16, np.uint8)
    if expected is None:
        with pytest.raises(WarpwrightError, match=r"`v`"):
            run(kernel, 1, 1, [y, value])
        return
    _, report = run(kernel, 1, 1, [y, value])
    assert report.is_clean and y[: expected.nbytes].tobytes() == expected.tobytes()


def test_structures_are_bytes() -> None:
    kernel = ptx(
        ".param .u64 y, .param .align 4 .b8 s[8]",
        "    ld.param.u64 %rd1, [y];\n    ld.param.u32 %r5, [s+4];\n    st.global.u32 [%rd1], %r5;",
    )
    y = np.zeros(1, np.uint32)
    _, report = run(kernel, 1, 1, [y, np.array([5, 6], np.uint32).tobytes()])
    assert report.is_clean and y[0] == 6
    for wrong in (5, b"123"):
        with pytest.raises(WarpwrightError, match="8 bytes"):
            run(kernel, 1, 1, [y, wrong])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"args": [1, 2]}, "4 parameters"),
        ({"grid": 0}, "grid"),
        ({"grid": (1, 2, 3, 4)}, "4 extents"),
        ({"grid": -1}, "grid=-1"),
        ({"block": 2048}, "block"),
        ({"check": "everything"}, "everything"),
        ({"order": "random"}, "random"),
        ({"race": "letter"}, "race="),
        ({"sm": "81"}, "81"),
        ({"sm": "70"}, "sm_80"),
        ({"kernel": "l"}, "`l`"),
        ({"shared": 1 << 30}, "shared"),
        ({"max_instructions": 0}, "max_instructions=0"),
        ({"grid": True}, "grid=True"),
        ({"shared": True}, "shared=True"),
        ({"cooperative": "no"}, "cooperative='no'"),
        ({"check": ""}, "check=''"),
        ({"check": "racecheck,,initcheck"}, "check=''"),
        ({"check": ["racecheck"]}, r"check=\['racecheck'\]"),
        ({"order": 5}, "order=5"),
        ({"source": "nowhere.ptx"}, "nowhere.ptx"),
    ],
)
def test_what_cannot_be_done_is_refused(change: dict[str, object], match: str) -> None:
    x = np.zeros(4, np.float32)
    call = {"source": ADD, "grid": 1, "block": 4, "args": [x, x, 1.0, 4]} | change
    with pytest.raises(WarpwrightError, match=match):
        run(**call)


def test_a_text_that_is_no_ptx_says_where() -> None:
    with pytest.raises(warpwright.PtxError, match=r"PTX:1\d:"):
        run(ADD.replace("ld.param.u64    %rd1", "ld.param.u64    %q1"), 1, 1, [])


def test_findings_are_objects_and_documents() -> None:
    x, y = np.zeros(4, np.float32), np.zeros(5, np.float32)
    _, report = run(ADD, 1, 5, {"x": x, "y": y, "a": 1.0, "n": 5}, counters=True)
    (finding,) = report.findings
    access, memory = finding.accesses[0], finding.allocation
    assert (finding.tool, finding.kind, finding.severity, finding.count) == ("memcheck", "out-of-bounds", "error", 1)
    assert (access.thread, access.block, access.bytes, access.space) == ((4, 0, 0), (0, 0, 0), 4, "global")
    assert access.ptx_line is not None and ADD.splitlines()[access.ptx_line - 1].split()[0] == "ld.global.f32"
    assert memory is not None and (memory.address, memory.bytes, memory.offset) == (x.ctypes.data, 16, 16)
    assert report.counters["memory"]["global"]["stores"]["bytes"] == 20
    assert sum(line["lanes"] for line in report.profile) == report.counters["instructions"]["lanes"]
    with pytest.raises(warpwright.FindingsError) as raised:
        report.raise_for_findings()
    assert raised.value.report is report


def test_a_trap_is_no_finding() -> None:
    _, report = run(ptx("", "    trap;"), 1, 32)
    assert report.findings == [] and report.trap is not None and not report.ok
    assert (report.trap.kind, report.trap.thread) == ("instruction", (0, 0, 0))


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "twice": lambda value: copy.deepcopy(pickle.loads(pickle.dumps(value))),
}


def said(report: warpwright.Report) -> list[object]:
    """All that a report says."""
    return [
        report.kernel, report.ok, report.is_clean, report.output, report.text, report.findings, report.trap,
        report.counters, report.profile, report.to_json(), report.to_sarif(), report.to_junit(), repr(report),
    ]  # fmt: skip


@pytest.mark.parametrize("how", COPIES)
def test_reports_are_copied_and_pickled(how: str) -> None:
    x = np.zeros(4, np.float32)
    launches = [
        run(ADD, 1, 4, [x, x, 1.0, 4], counters=True),
        run(ADD, 1, 5, {"x": x, "y": x, "a": 1.0, "n": 5}, counters=True),
        run(ptx("", "    trap;"), 1, 32),
    ]
    for _, report in launches:
        copied = COPIES[how](report)
        assert isinstance(copied, warpwright.Report) and said(copied) == said(report)
        for part in (*report.findings, report.trap, report.counters):
            assert COPIES[how](part) == part
    error = COPIES[how](warpwright.FindingsError(launches[1][1]))
    assert isinstance(error, warpwright.FindingsError)
    assert said(error.report) == said(launches[1][1]) and str(error) == str(warpwright.FindingsError(launches[1][1]))


def test_reports_come_from_other_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        report, error = pool.apply(launch_past_the_end), None
        try:
            pool.apply(raise_past_the_end)
        except warpwright.FindingsError as caught:
            error = caught
    assert kinds(report) == ["out-of-bounds", "out-of-bounds"]
    assert error is not None and kinds(error.report) == kinds(report)


def launch_past_the_end() -> warpwright.Report:
    x = np.zeros(4, np.float32)
    return run(ADD, 1, 5, [x, x, 1.0, 5])[1]


def raise_past_the_end() -> None:
    launch_past_the_end().raise_for_findings()


def test_orders() -> None:
    ticket = ptx(
        ".param .u64 y",
        """
    ld.param.u64        %rd1, [y];
    atom.global.add.u32 %r5, [%rd1], 1;
    mul.wide.u32        %rd2, %r5, 4;
    add.u64             %rd1, %rd1, %rd2;
    st.global.u32       [%rd1+4], %i;
""",
    )

    def blocks(order: str) -> list[int]:
        y = np.zeros(41, np.int32)
        _, report = run(ticket, 40, 1, [y], order=order)
        assert report.is_clean and sorted(y[1:]) == list(range(40))
        return y[1:].tolist()

    assert blocks("reverse")[0] > 30 and blocks("random:1") != blocks("random:2")
    assert blocks("random:1") == blocks("random:1")


def test_settings_and_callbacks() -> None:
    x = np.zeros(4, np.float32)
    reports: list[warpwright.Report] = []
    remove = warpwright.on_report(reports.append)
    before = warpwright.settings.check
    try:
        warpwright.settings.check = "initcheck"
        (_,), report = run(ADD, 1, 4, [x, out(5), 1.0, 4])
        assert reports == [report] and kinds(report) == ["unwritten-output"]
    finally:
        warpwright.settings.check = before
        remove()
    run(ADD, 1, 4, [x, x, 1.0, 4])
    assert len(reports) == 1


def test_threads_launch_at_once() -> None:
    results: list[bool] = []

    def work() -> None:
        for _ in range(20):
            (y,), report = run(ADD, 4, 64, [np.zeros(256, np.float32), out(256), 2.0, 256], check="all")
            results.append(report.is_clean and bool((y == 2).all()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_an_interrupt_ends_a_launch() -> None:
    endless = ptx(
        ".param .u64 y",
        "$trip:\n    ld.param.u64 %rd1, [y];\n    st.global.u32 [%rd1], %r1;\n    add.u32 %r1, %r1, 1;\n    bra $trip;",
    )
    y = np.zeros(1, np.uint32)
    # What runs in the background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(endless, 1, 1, [y])
    timer.join()
    signal.signal(signal.SIGINT, before)
    _, report = run(endless, 1, 1, [y], max_instructions=10_000)
    assert report.trap is not None and report.trap.kind == "budget"
    usual = warpwright.settings.max_instructions
    try:
        warpwright.settings.max_instructions = 10_000
        _, report = run(endless, 1, 1, [y])
        assert report.trap is not None and report.trap.kind == "budget"
    finally:
        warpwright.settings.max_instructions = usual


CUDA = """
template <typename T> __device__ T twice(T x) { return x + x; }
template <typename T> __global__ void scale(const T *x, T *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = twice(x[i]);
}
template __global__ void scale<float>(const float *, float *, int);
extern "C" __global__ void other(int *y) { *y = 1; }
"""


def test_cuda_is_compiled() -> None:
    x = np.arange(64, dtype=np.float32)
    (y,), report = run(CUDA, 1, 64, [x, out(64), 64], kernel="scale<float>", check="all")
    assert report.is_clean and (y == 2 * x).all()
    (y,), report = run(CUDA, 1, 64, [x, out(60), 60], kernel="scale<float>", check="all")
    (finding,) = report.findings
    source = finding.accesses[0].source
    assert source is not None and CUDA.splitlines()[source.line - 1].strip() == "y[i] = twice(x[i]);"
    with pytest.raises(warpwright.CompileError, match=r"kernel.cu\(1\)"):
        run("__global__ void k() { x = 1; }", 1, 1)


@pytest.mark.parametrize(
    ("source", "name", "lines"),
    [
        (CUDA, "scale<flot>", 1),
        (CUDA, "sclae", 1),
        ("__global__ void k() { x = 1; }", "other", 7),
    ],
)
def test_a_kernel_that_is_not_there(source: str, name: str, lines: int) -> None:
    with pytest.raises(warpwright.CompileError) as error:
        run(source, 1, 1, kernel=name)
    said = str(error.value).splitlines()
    assert said[0].startswith(f"kernel.cu has no kernel `{name}`: ") and len(said) == lines
    assert all(not line.startswith("__nv_name_map") for line in said)


SIGNATURES = """
#define NAMED(name) __global__ void name(int *made) { *made = 1; }
// __global__ void commented(int *x);
template <typename T, int N = (3 > 2)> __global__ void __launch_bounds__(64, (2)) scale(
    const T *__restrict__ x,  // The input, "(", of
    T* const y, int n = f(1, 2)) { printf("__global__ void text(int)"); }
namespace inner {
static __global__ void sizes(const float (&list)[3], unsigned long long b[4][4], Pair<int, float> c); }
extern "C" __global__ void nothing(void);
extern "C" void __global__ empty() {}
template __global__ void scale<float>(const float *, float *, int);
__global__ void unnamed(int, const float *);
__global__ void unsigned_too(const unsigned, int n);
NAMED(made)
__global__ void either(int *a);
__global__ void either(float *b);
"""


def test_names_of_parameters_in_a_source() -> None:
    found = {signature.name: signature.params for signature in signatures(SIGNATURES)}
    assert found == {
        "scale": ("x", "y", "n"),
        "sizes": None,
        "nothing": (),
        "empty": (),
        "unnamed": None,
        "unsigned_too": None,
        "either": ("b",),
    }
    assert [signature.name for signature in signatures(SIGNATURES) if signature.is_template] == ["scale"]
    for symbol, count, names in [
        ("_Z5scaleIfLi1EEvPKT_PS0_i", 3, ("x", "y", "n")),
        ("_ZN5inner5scaleIfEEvPKT_PS1_i", 3, ("x", "y", "n")),
        ("_ZL5scalePf", 3, ("x", "y", "n")),
        ("_Z5scaleIfEvPKT_PS0_i", 2, None),
        ("_Z11rescale5scalei", 3, None),
        ("nothing", 0, ()),
        ("_Z6eitherPi", 1, None),
        ("made", 1, None),
    ]:
        assert parameters(SIGNATURES, symbol, count) == names, symbol


def test_arguments_of_cuda_by_name() -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    _, report = run(CUDA, 1, 64, {"n": 64, "y": y, "x": x}, kernel="scale<float>")
    assert report.is_clean and (y == 2).all()
    with pytest.raises(WarpwrightError, match="are x, y, n; it has no z; x: not given"):
        run(CUDA, 1, 64, {"n": 64, "y": y, "z": x}, kernel="scale<float>")


@pytest.mark.parametrize("name", ["nope", "scale", "scale<floot>", "other<int>", None])
def test_kernels_that_there_are_not(name: str | None) -> None:
    with pytest.raises(WarpwrightError) as caught:
        run(CUDA, 1, 1, [], kernel=name)
    assert "__nv" not in str(caught.value) and "scale<…>, other" in str(caught.value)
    # It is the source that is wrong.
    with pytest.raises(warpwright.CompileError, match=r"(?m)^kernel.cu\(1\): error"):
        run("__global__ void k() { x = 1; }", 1, 1, kernel=name)


def test_the_drivers_own_check_is_of_no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    for check, found in (
        ("api", []),
        ("api,initcheck", ["unwritten-output"]),
        ("initcheck, api", ["unwritten-output"]),
    ):
        monkeypatch.setattr(warpwright.settings, "check", check)
        _, report = run(ptx(".param .u64 y", ""), 1, 1, {"y": out(1)})
        assert [finding.kind for finding in report.findings] == found


PADDED = np.dtype([("flag", "u1"), ("value", "f8"), ("parts", [("low", "u2"), ("high", "u4")], 2)], align=True)


@pytest.mark.parametrize("forgotten", [None, 0, 8, 16, 20, 24, 28])
def test_padding_of_structures_need_not_be_written(forgotten: int | None) -> None:
    stores = [(0, "u8", "%r3"), (8, "f64", "%fd1"), (16, "u16", "%r3"), (20, "u32", "%r3")]
    stores += [(24, "u16", "%r3"), (28, "u32", "%r3")]
    body = "".join(f"st.global.{ty} [%rd1+{at}], {value};\n" for at, ty, value in stores if at != forgotten)
    text = ptx(
        ".param .u64 y",
        f"ld.param.u64 %rd1, [y];\n mad.wide.u32 %rd1, %i, {PADDED.itemsize}, %rd1;\n cvt.rn.f64.u32 %fd1, %r3;\n"
        + body,
        ".reg .f64 %fd<2>;",
    )
    (y,), report = run(text, 1, 3, {"y": out(3, PADDED)}, check="all")
    assert [finding.kind for finding in report.findings] == ([] if forgotten is None else ["unwritten-output"])
    if forgotten is None:
        assert y["value"].tolist() == [0, 1, 2] and y["parts"]["high"].tolist() == [[0, 0], [1, 1], [2, 2]]


def test_variables_begin_anew_in_each_run() -> None:
    text = ptx(
        ".param .u64 y",
        "ld.param.u64 %rd1, [y];\n atom.global.add.u32 %r4, [count], 1;\n st.global.u32 [%rd1], %r4;",
    ).replace(".visible", ".global .u32 count = 7;\n.visible")

    def count(_: int) -> int:
        (y,), _report = run(text, 1, 1, [out(1, np.int32)])
        return int(y[0])

    assert list(map(count, range(3))) == [7] * 3
    # Whatever other kernels of the program did before.
    other = text[text.index(".visible") :].replace(" k(", " l(")
    both = text + other
    assert [run(both, 1, 1, [out(1, np.int32)], kernel=name)[0][0].item() for name in "kkllk"] == [7] * 5
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(400))) == [7] * 400


def test_blocks_run_in_clusters() -> None:
    text = ptx(
        ".param .u64 y",
        """
    .shared .align 4 .u32 given;
    mov.u32     %r4, %cluster_ctarank;
    mov.u32     %r5, %cluster_nctarank;
    add.u32     %r4, %r4, 1;
    rem.u32     %r4, %r4, %r5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mapa.shared::cluster.u32 %r4, given, %r4;
    st.shared::cluster.u32 [%r4], %r1;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r6, [given];
    ld.param.u64 %rd1, [y];
    mad.wide.u32 %rd1, %i, 4, %rd1;
    st.global.u32 [%rd1], %r6;
""",
    ).replace("sm_80", "sm_90")

    def given(text: str, **how: Any) -> list[int]:
        (y,), report = run(text, 6, 1, [out(6, np.int32)], check="all", sm=90, **how)
        assert report.is_clean
        return [int(one) for one in y]

    assert given(text) == [0, 1, 2, 3, 4, 5]
    assert given(text, cluster=2) == [1, 0, 3, 2, 5, 4]
    assert given(text, cluster=(3, 1, 1), order="reverse") == [2, 0, 1, 5, 3, 4]
    required = text.replace("y)", "y) .reqnctapercluster 2")
    assert given(required) == [1, 0, 3, 2, 5, 4]
    for how, why in [
        ({"sm": 90, "cluster": 4}, "the grid must be a multiple of that along each axis, and has [6, 1, 1] blocks"),
        ({"sm": 90, "cluster": 3}, "they must have [2, 1, 1] (`.reqnctapercluster`)"),
    ]:
        with pytest.raises(WarpwrightError) as refused:
            run(required if how["cluster"] == 3 else text, 6, 1, [out(6, np.int32)], **how)
        assert str(refused.value) == f"kernel `k` in clusters of [{how['cluster']}, 1, 1] blocks: {why}"
    with pytest.raises(WarpwrightError, match="devices have them from sm_90 on"):
        run(ptx("", ""), 2, 1, cluster=2)


def test_a_device_has_the_multiprocessors_of_its_architecture() -> None:
    # 32 blocks on each: 108 of an A100.
    assert not run(ptx("", ""), 108 * 32, 1, cooperative=True)[1].findings
    with pytest.raises(WarpwrightError, match="3456"):
        run(ptx("", ""), 108 * 32 + 1, 1, cooperative=True)


@pytest.mark.parametrize("module", ["warpwright", "warpwright.run", "warpwright.settings"])
def test_examples_of_the_documentation(module: str) -> None:
    import importlib

    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("dtype", [object, "U3", ">f4"])
def test_what_a_gpu_has_no_type_for_is_refused(dtype: object) -> None:
    array = np.zeros(4, dtype)
    with pytest.raises(WarpwrightError, match="elements"):
        run(ADD, 1, 4, [array, np.zeros(4, np.float32), 1.0, 4])
    with pytest.raises(WarpwrightError, match="elements"):
        out(4, dtype)


@pytest.mark.parametrize(("shape", "dtype"), [(64.0, "f4"), (True, "f4"), ("64", "f4"), (64, "floaty"), (64, [1])])
def test_outputs_that_no_array_can_be_are_refused(shape: Any, dtype: object) -> None:
    with pytest.raises(WarpwrightError, match=rf"^out\({re.escape(repr(shape))}"):
        out(shape, dtype)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on_findings", "riase"),
        ("check", ["racecheck", "initcheck"]),
        ("check", ""),
        ("race", None),
        ("workers", True),
        ("max_instructions", True),
        ("workers", -1),
        ("chekc", "all"),
        ("workers", None),
        ("check", "everything"),
        ("order", "random"),
        ("race", "lax"),
        ("max_instructions", 0),
        ("max_instructions", 1.5),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, value: object) -> None:
    before = repr(warpwright.settings)
    with pytest.raises((AttributeError, ValueError), match=name):
        setattr(warpwright.settings, name, value)
    assert repr(warpwright.settings) == before


def test_a_forked_process_has_a_device_of_its_own() -> None:
    def launch() -> bool:
        (y,), report = run(ADD, 8, 32, [np.ones(256, np.float32), out(256), 1.0, 256])
        return report.is_clean and bool((y == 2).all())

    assert launch()
    child = os.fork()
    if child == 0:
        os._exit(0 if launch() else 1)
    assert os.waitpid(child, 0)[1] == 0 and launch()


def test_headers_of_cuda_are_found() -> None:
    source = """
    #include <cooperative_groups.h>
    #include <cuda/std/limits>
    extern "C" __global__ void k(int *y) {
        cooperative_groups::this_thread_block().sync();
        *y = cuda::std::numeric_limits<short>::max();
    }"""
    y = np.zeros(1, np.int32)
    _, report = run(source, 1, 1, [y])
    assert report.is_clean and y[0] == 32767
