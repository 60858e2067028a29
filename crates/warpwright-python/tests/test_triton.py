"""Triton's kernels on arrays of NumPy: right ones, and bugs at their lines. `triton/` has the tests with PyTorch."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


@triton.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


OTHER_TYPES = ["O", "U3", "S4", "M8[s]", "m8[s]", "g", "c8", "c16", "G", "V4", ">f4"]


@pytest.mark.parametrize("dtype", [*OTHER_TYPES, [("a", "f4")]], ids=str)
def test_elements_that_triton_does_not_have_are_refused_by_the_name_of_the_argument(dtype: object) -> None:
    x = np.zeros(8, dtype)
    told = rf"^argument x_ptr of `add_one`: Triton has no elements of {re.escape(str(x.dtype))}: "
    with pytest.raises(TypeError, match=told):
        add_one[(1,)](x, 8, 16)
    with pytest.raises(TypeError, match=told):
        add_one[(1,)](x_ptr=x, n=8, BLOCK=16)


# What the message says.
INSTEAD = {
    "c8": lambda x: x.view(x.real.dtype), "c16": lambda x: x.view(x.real.dtype), ">f4": lambda x: x.astype("=f4"),
    "O": lambda x: x.astype(np.float32), "g": lambda x: x.astype(np.float64), "M8[s]": lambda x: x.view(np.int64),
    "G": lambda x: x.astype(np.complex128).view(np.float64), "S4": lambda x: x.view(np.uint8),
    "U3": lambda x: x.view(np.uint32), "V4": lambda x: x.view(np.uint8), "m8[s]": lambda x: x.view(np.int64),
}  # fmt: skip


@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_what_is_to_be_given_instead_of_them(dtype: str) -> None:
    x = INSTEAD[dtype](np.zeros(8, dtype))
    add_one[(1,)](x, x.size, 64)
    assert (x == 1).all()


CONFIGS = [triton.Config({"BLOCK": block}) for block in (64, 128, 256)]


@triton.autotune(configs=CONFIGS, key=["n"], restore_value=["x_ptr"], reset_to_zero=["sum_ptr"])
@triton.jit
def add_to_both(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(sum_ptr, tl.sum(x))
    tl.store(x_ptr + i, x + 1, mask=i < n)


@triton.autotune(configs=CONFIGS, key=["n"], reset_to_zero=["x_ptr"], pre_hook=lambda args, **_: zeroed(args["x_ptr"]))
@triton.jit
def with_a_hook(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + i, i, mask=i < n)


def zeroed(x: Any) -> None:
    assert isinstance(x, np.ndarray)
    x[:] = 0


def test_hooks_of_a_program_get_what_it_gave() -> None:
    x = np.ones(N, np.int32)
    with_a_hook[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, N)
    assert (x == np.arange(N)).all()


def test_autotuning_resets_and_restores_arrays() -> None:
    x, total = np.arange(N, dtype=np.int32), np.full(1, 7, np.int32)
    add_to_both[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, total, N)
    assert (x == np.arange(N) + 1).all() and total.tolist() == [N * (N - 1) // 2]
    # It is tuned by now, and nothing is reset any more.
    add_to_both[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, total, N)
    assert (x == np.arange(N) + 2).all() and total.tolist() == [N * N]


class Pair(NamedTuple):
    from_ptr: Any
    to_ptr: Any


@triton.jit
def copy_pair(pair, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(pair[1] + i, tl.load(pair[0] + i))


@pytest.mark.parametrize("make", [Pair, lambda *pair: pair], ids=["named", "plain"])
def test_arrays_in_tuples(make: Callable[..., Any]) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    copy_pair[(1,)](make(x, y), 64)
    assert (y == x).all()


@triton.jit
def count_for_ever(x_ptr):
    while tl.atomic_add(x_ptr, 1) >= 0:  # bug
        pass


def test_a_kernel_that_does_not_end_is_ended() -> None:
    before = warpwright.settings.max_instructions
    warpwright.triton.disable()
    warpwright.triton.enable(sm=80, max_instructions=100_000)
    with pytest.raises(warpwright.FindingsError) as caught:
        count_for_ever[(1,)](np.zeros(1, np.int64))
    trap = caught.value.report.trap
    assert trap is not None and trap.kind == "budget"
    warpwright.triton.disable()
    assert warpwright.settings.max_instructions == before


WRONG = {
    "check": ("--check foo s.py", "check='foo'"),
    "check of the driver": ("--check api s.py", "check='api'"),
    "order": ("--order backwards s.py", "order='backwards'"),
    "target": ("--sm 81 s.py", 'sm="81"'),
    "no script": ("nowhere.py", "there is no file nowhere.py"),
    "folder": (".", ". is a folder"),
    "module": ("-m nowhere.at.all", "there is no module nowhere.at.all"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_the_program_cannot_do_is_one_line(what: str, tmp_path: Path) -> None:
    options, told = WRONG[what]
    (tmp_path / "s.py").write_text("print('it ran')")
    command = [sys.executable, "-m", "warpwright.triton", *options.split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout, line.split(": ")[:2]) == (2, "", ["warpwright.triton", told])


def test_the_program_ends_a_kernel_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(ENDLESS)
    command = [sys.executable, "-m", "warpwright.triton", "--max-instructions"]
    for limit, expected in (("100000", "budget"), ("0", None)):
        ended = subprocess.run(
            [*command, limit, "s.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stdout) == ((0, f"{expected}\n") if expected else (2, ""))


BEYOND = """import sys
import numpy as np, triton, triton.language as tl, warpwright.triton


@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0, mask=i < n)


if "enable" in sys.argv:
    warpwright.triton.enable(on_findings="continue")
for n in (4, 5, 6):
    fill[(1,)](np.zeros(4, np.float32), n, BLOCK=8)
print("it went on")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("before", "arguments", "status"),
    [
        ("-m warpwright.triton --on-findings continue", "0", 1),
        ("-m warpwright.triton --on-findings continue", "3", 3),
        ("", "0 enable", 0),
        ("-m warpwright.triton", "0 enable", 0),
    ],
)
def test_what_is_not_raised_is_shown_once(before: str, arguments: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(BEYOND)
    command = [sys.executable, *before.split(), "s.py", *arguments.split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (status, "it went on\n")
    assert ended.stderr.count("error[memcheck]") == 1


def test_what_enable_refuses_changes_nothing() -> None:
    before = dict(vars(warpwright.settings)), triton.runtime.driver._active
    for wrong in ({"check": "everything"}, {"order": "backwards"}, {"race": "lax"}, {"max_instructions": 0}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}="):
            warpwright.triton.enable(**wrong)
    assert (dict(vars(warpwright.settings)), triton.runtime.driver._active) == before


ENDLESS = """import numpy as np, triton, triton.language as tl, warpwright


@triton.jit
def count(x_ptr):
    while tl.atomic_add(x_ptr, 1) >= 0:
        pass


try:
    count[(1,)](np.zeros(1, np.int64))
except warpwright.FindingsError as error:
    print(error.report.trap.kind)
"""

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
