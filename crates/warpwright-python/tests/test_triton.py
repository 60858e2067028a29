"""Triton's kernels on arrays of NumPy: right ones, and bugs at their lines. `triton/` has the tests with PyTorch."""

from __future__ import annotations

import gc
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
import warpwright
import warpwright.triton
from triton.language.extra import libdevice

N, BLOCK = 1000, 256
GRID = (triton.cdiv(N, BLOCK),)


@pytest.fixture(autouse=True)
def virtual() -> Iterator[None]:
    warpwright.triton.enable(check="all", sm=80)
    yield
    # Kernels that nobody has any more ask Triton's driver to unload them.
    gc.collect()
    warpwright.triton.disable()


@triton.jit
def add_unmasked(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # bug
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


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
def exponential(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.device_assert(x < 50, "x is too large")
    tl.store(out_ptr + i, libdevice.expm1(x), mask=i < n)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, SIZE: tl.constexpr, TILE: tl.constexpr):
    rows, columns, inner = tl.arange(0, SIZE), tl.arange(0, SIZE), tl.arange(0, TILE)
    sums = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, TILE):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        sums += tl.dot(a, tl.load(b_ptr + (k + inner)[:, None] * SIZE + columns[None, :]))
    tl.store(c_ptr + rows[:, None] * SIZE + columns[None, :], sums)


@triton.jit
def say(x_ptr):
    tl.device_print("value", tl.load(x_ptr))


def numbers() -> np.ndarray:
    return np.arange(N, dtype=np.float32)


BUGS: dict[str, tuple[Callable[[], object], triton.JITFunction, str, str, str]] = {
    "no mask": (
        lambda: add_unmasked[GRID](numbers(), numbers(), numbers(), N, BLOCK),
        add_unmasked, "memcheck", "out-of-bounds", "x_ptr",
    ),
    "no barrier": (
        lambda: copy_reversed[(1,)](numbers(), numbers(), numbers(), BLOCK, False),
        copy_reversed, "racecheck", "race", "scratch_ptr",
    ),
    "update that is not atomic": (
        lambda: count[GRID](np.ones(N, np.int32), np.zeros(1, np.int32), N, BLOCK, False),
        count, "racecheck", "race", "counts_ptr",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found_at_their_lines(name: str) -> None:
    launch, kernel, tool, kind, argument = BUGS[name]
    with pytest.raises(warpwright.FindingsError) as caught:
        launch()
    findings = caught.value.report.findings
    assert {(finding.tool, finding.kind) for finding in findings} == {(tool, kind)}
    source, first = inspect.getsourcelines(kernel.fn)
    bugs = {first + at for at, line in enumerate(source) if line.rstrip().endswith("# bug")}
    sources = [access.source for finding in findings for access in finding.accesses]
    assert {(source.file, source.line) for source in sources if source} == {(__file__, line) for line in bugs}
    assert {finding.allocation.arguments for finding in findings if finding.allocation} == {(argument,)}


def test_the_same_without_the_bug() -> None:
    out, total = np.zeros(BLOCK, np.float32), np.zeros(1, np.int32)
    copy_reversed[(1,)](numbers(), np.zeros(BLOCK, np.float32), out, BLOCK, True)
    assert (out == numbers()[:BLOCK][::-1]).all()
    count[GRID](np.ones(N, np.int32), total, N, BLOCK, True)
    assert total[0] == N


def test_tensor_cores() -> None:
    random = np.random.default_rng(1)
    a, b = random.standard_normal((32, 64)).astype(np.float16), random.standard_normal((64, 32)).astype(np.float16)
    c = np.empty((32, 32), np.float32)
    matmul[(1,)](a, b, c, 64, SIZE=32, TILE=16)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_functions_of_libdevice_and_assertions() -> None:
    x, out = np.linspace(-1, 1, N, dtype=np.float32), np.zeros(N, np.float32)
    exponential[GRID](x, out, N, BLOCK, debug=True)
    np.testing.assert_allclose(out, np.expm1(x.astype(np.float64)), rtol=1e-6)
    x[700] = 60
    with pytest.raises(warpwright.FindingsError) as caught:
        exponential[GRID](x, out, N, BLOCK, debug=True)
    trap = caught.value.report.trap
    assert trap is not None and (trap.kind, trap.block) == ("assertion", (2, 0, 0))


def test_what_kernels_print(capfd: pytest.CaptureFixture[str]) -> None:
    say[(1,)](np.array([42], np.int32))
    assert {line.split()[-1] for line in capfd.readouterr().out.splitlines()} == {"42"}


def test_nothing_is_compiled_with_the_systems_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "no-such-compiler")
    total = np.zeros(1, np.int32)
    count[GRID](np.ones(N, np.int32), total, N, BLOCK, True)
    assert total[0] == N


KERNEL = """import triton
import triton.language as tl


@triton.jit
def store(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""


def test_a_finding_names_the_file_that_was_run(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        file = tmp_path / folder / "moved.py"
        file.parent.mkdir()
        file.write_text(KERNEL)
        spec = importlib.util.spec_from_file_location("moved", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with pytest.raises(warpwright.FindingsError) as caught:
            module.store[(1,)](np.zeros(100, np.float32), BLOCK=128)
        (access,) = caught.value.report.findings[0].accesses
        assert access.source is not None and (access.source.file, access.source.line) == (str(file), 7)
