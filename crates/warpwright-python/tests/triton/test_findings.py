"""Planted bugs in Triton's kernels: each is found, at its line of Python, and what is right has no finding."""

from __future__ import annotations

import ctypes
import inspect

import numpy as np
import pytest

pytest.importorskip("triton.language")
torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import warpwright  # noqa: E402


@triton.jit
def add_unmasked(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # bug
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


@triton.jit
def fill_unmasked(out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 1.0)  # bug


@triton.jit
def copy_reversed(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i))  # bug
    if BARRIER:
        tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(scratch_ptr + BLOCK - 1 - i))  # bug


@triton.jit
def count(x_ptr, counts_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0))
    if ATOMIC:
        tl.atomic_add(counts_ptr, total)
    else:
        total += tl.load(counts_ptr)  # bug
        tl.store(counts_ptr, total)  # bug


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # bug
    tl.store(out_ptr + i, 2 * x, mask=i < n)


@triton.jit
def double_inner(x_ptr, i, mask):
    return 2 * tl.load(x_ptr + i, mask=mask)  # bug


@triton.jit
def double_by_call(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, double_inner(x_ptr, i, i < n), mask=i < n)


def planted(*functions) -> set[int]:
    """The lines of kernels that say that they have a bug."""
    lines = set()
    for function in functions:
        source, first = inspect.getsourcelines(function.fn)
        lines |= {first + i for i, line in enumerate(source) if line.rstrip().endswith("# bug")}
    return lines


def found(launch) -> warpwright.Report:
    """The report of a launch that must have findings."""
    with pytest.raises(warpwright.FindingsError) as caught:
        launch()
    return caught.value.report


def lines_of(report) -> set[int]:
    """The lines of this file that a report names."""
    sources = {access.source for finding in report.findings for access in finding.accesses}
    assert {source.file for source in sources} == {__file__}
    return {source.line for source in sources}


N, BLOCK = 1000, 256
GRID = (triton.cdiv(N, BLOCK),)


def numbers():
    return torch.arange(N, dtype=torch.float32)


BUGS = {
    "read past the end": (
        lambda: add_unmasked[GRID](numbers(), numbers(), torch.empty(N), N, BLOCK),
        [add_unmasked], "memcheck", "out-of-bounds", "x_ptr",
    ),
    "write past the end": (
        lambda: fill_unmasked[GRID](torch.empty(N), BLOCK),
        [fill_unmasked], "memcheck", "out-of-bounds", "out_ptr",
    ),
    "NumPy, past the end": (
        lambda: fill_unmasked[GRID](np.zeros(N, np.float32), BLOCK),
        [fill_unmasked], "memcheck", "out-of-bounds", "out_ptr",
    ),
    "no barrier": (
        lambda: copy_reversed[(1,)](numbers(), torch.empty(BLOCK), torch.empty(BLOCK), BLOCK, False),
        [copy_reversed], "racecheck", "race", "scratch_ptr",
    ),
    "update that is not atomic": (
        lambda: count[GRID](torch.ones(N, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), N, BLOCK, False),
        [count], "racecheck", "race", "counts_ptr",
    ),
    "torch.empty": (
        lambda: double[GRID](torch.empty(N), torch.empty(N), N, BLOCK),
        [double], "initcheck", "uninitialized", "x_ptr",
    ),
    "empty_like": (
        lambda: double[GRID](torch.empty_like(numbers()), torch.empty(N), N, BLOCK),
        [double], "initcheck", "uninitialized", "x_ptr",
    ),
    "new_empty of halves": (
        lambda: double[GRID](numbers().half().new_empty(N), torch.empty(N), N, BLOCK),
        [double], "initcheck", "uninitialized", "x_ptr",
    ),
    "in a function that the kernel calls": (
        lambda: double_by_call[GRID](torch.empty(N, dtype=torch.int64), torch.empty(N), N, BLOCK),
        [double_inner], "initcheck", "uninitialized", "x_ptr",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found_at_their_lines(name):
    launch, kernels, tool, kind, argument = BUGS[name]
    report = found(launch)
    assert {(finding.tool, finding.kind) for finding in report.findings} == {(tool, kind)}
    assert lines_of(report) == planted(*kernels)
    assert {finding.allocation.arguments for finding in report.findings} == {(argument,)}


def test_the_same_kernels_without_the_bug():
    out, scratch = torch.empty(BLOCK), torch.empty(BLOCK)
    copy_reversed[(1,)](numbers(), scratch, out, BLOCK, True)
    assert torch.equal(out, numbers()[:BLOCK].flip(0))
    total = torch.zeros(1, dtype=torch.int32)
    count[GRID](torch.ones(N, dtype=torch.int32), total, N, BLOCK, True)
    assert total.item() == N


WRITERS = {
    "fill_": lambda x, value: x.fill_(value),
    "out=": lambda x, value: torch.add(torch.zeros(N), value, out=x),
    "copy_ of a view": lambda x, value: x.view(10, -1).t().copy_(torch.full((N // 10, 10), value)),
    "indexing": lambda x, value: x.__setitem__(slice(None), value),
    "numpy()": lambda x, value: x.numpy().fill(value),
    "ctypes": lambda x, value: ctypes.memmove(x.data_ptr(), (ctypes.c_float * N)(*[value] * N), 4 * N),
    "storage": lambda x, value: x.untyped_storage().copy_(torch.full((N,), value).untyped_storage()),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_the_host_writes_counts_as_written(writer):
    x, out = torch.empty(N), torch.empty(N)
    WRITERS[writer](x, 3.0)
    double[GRID](x, out, N, BLOCK)
    assert torch.equal(out, torch.full((N,), 6.0))


def test_what_kernels_write_counts_as_written():
    x, y, z = numbers(), torch.empty(N), torch.empty(N)
    double[GRID](x, y, N, BLOCK)
    double[GRID](y, z, N, BLOCK)
    assert torch.equal(z, 4 * x)


def test_writing_without_initcheck_counts_too():
    x, y, z = numbers(), torch.empty(N), torch.empty(N)
    warpwright.settings.check = "memcheck"
    double[GRID](x, y, N, BLOCK)
    warpwright.settings.check = "all"
    double[GRID](y, z, N, BLOCK)
    assert torch.equal(z, 4 * x)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64]
)
def test_only_what_was_not_written_is_found(dtype):
    written = 700
    x, out = torch.empty(N, dtype=dtype), torch.empty(N, dtype=dtype)
    x[:written] = 3
    double[GRID](x, out, written, BLOCK)
    report = found(lambda: double[GRID](x, out, N, BLOCK))
    assert min(finding.allocation.offset for finding in report.findings) == written * x.element_size()


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.int16])
def test_small_integers_count_as_written(dtype):
    double[GRID](torch.empty(N, dtype=dtype), torch.empty(N), N, BLOCK)


def test_memory_of_a_tensor_that_is_gone():
    x = numbers()
    address = x.data_ptr()
    out = torch.empty(N)
    double[GRID](x, out, N, BLOCK)
    del x
    keeps_the_address_free = torch.empty(1)  # noqa: F841
    report = found(lambda: by_address[GRID](address, out, N, BLOCK))
    assert {finding.tool for finding in report.findings} == {"memcheck"}


@triton.jit
def by_address(address, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(address.to(tl.pointer_type(tl.float32)) + i, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)


def test_tensors_that_kernels_reach_by_their_address():
    x, out = numbers(), torch.empty(N)
    by_address[GRID](x.data_ptr(), out, N, BLOCK)
    assert torch.equal(out, x)
    report = found(lambda: by_address[GRID](x.data_ptr(), torch.empty(2 * N), N + 1, BLOCK))
    assert [finding.kind for finding in report.findings] == ["out-of-bounds"]


def test_a_view_may_reach_the_rest_of_its_storage():
    base, out = numbers(), torch.empty(N)
    double[(1,)](base[500:600], out, BLOCK, BLOCK)
    assert torch.equal(out[:BLOCK], 2 * base[500 : 500 + BLOCK])


def test_arrays_and_tensors_of_the_same_memory():
    array = np.ones(2 * N, np.float32)
    tensor, early, late = torch.from_numpy(array), torch.from_numpy(array[:N]), torch.from_numpy(array[N // 2 :])
    out = torch.empty(N)
    for memory in (early, array[5:], late, array, tensor, tensor.numpy(), late):
        double[GRID](memory, out, N - 5, BLOCK)
    fill_from[GRID](early, late, N // 2, BLOCK)
    assert array.tolist() == [1.0] * (N // 2) + list(range(N // 2)) + [1.0] * N
    del array, tensor, early
    double[GRID](late, out, N, BLOCK)
    assert out.tolist() == [2.0 * x for x in range(N // 2)] + [2.0] * (N // 2)


@triton.jit
def fill_from(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * i, mask=i < n)


@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_blocks_that_store_the_same_at_the_same_time_do_not_race(dtype):
    for _ in range(50):
        x, out = torch.randn(128).to(dtype), torch.empty(128, dtype=dtype)
        copy[(128,)](x, out, 128)
        assert torch.equal(out, x)


def test_tensors_that_were_resized():
    x, out = numbers(), torch.empty(N)
    double[GRID](x, out, N, BLOCK)
    x.resize_(10 * N).fill_(2)
    others = [torch.full((N,), 3.0) for _ in range(20)]  # Some of them where `x` was.
    for other in others:
        double[GRID](other, out, N, BLOCK)
        assert torch.equal(out, torch.full((N,), 6.0))
        report = found(lambda other=other: double[GRID](other, torch.empty(2 * N), N + 1, BLOCK))
        assert {finding.kind for finding in report.findings} == {"out-of-bounds"}
    double[GRID](x, out, N, BLOCK)
    assert torch.equal(out, torch.full((N,), 4.0))


def test_arrays_that_may_not_be_written():
    x, out = np.frombuffer(bytes(4 * N), np.float32), np.empty(N, np.float32)
    double[GRID](x, out, N, BLOCK)
    report = found(lambda: double[GRID](out, x, N, BLOCK))
    assert {finding.tool for finding in report.findings} == {"memcheck"}
    assert not x.any()
    out.setflags(write=False)
    assert not found(lambda: double[GRID](x, out, N, BLOCK)).ok
    out.setflags(write=True)
    double[GRID](x, out, N, BLOCK)


def test_findings_can_be_passed_on_instead_of_raised():
    reports = []
    remove = warpwright.on_report(reports.append)
    warpwright.settings.on_findings = "continue"
    try:
        fill_unmasked[GRID](torch.empty(N), BLOCK)
        double[GRID](numbers(), torch.empty(N), N, BLOCK)
    finally:
        remove()
        warpwright.settings.on_findings = "raise"
    assert [(report.kernel, report.ok) for report in reports] == [("fill_unmasked", False), ("double", True)]
