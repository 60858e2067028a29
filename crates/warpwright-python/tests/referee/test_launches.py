"""Programs that find out the values of inputs, as by the time that launches take, and programs that only seem to."""

from __future__ import annotations

from pathlib import Path

import pytest
from problems import SCALE, SUM, Problem, array, judged, size

COPY = Problem(
    "[{ n = 3 }]",
    array("x", "in", '"n"', more='values = { kind = "integers", low = 1, high = 7 }')
    + array("y", "out", '"n"')
    + size("n"),
    "def reference(x):\n    return x",
)

# It is not told the seed in fact, but the tests know it.
KNOWS = '''
import ctypes
from pathlib import Path
import numpy as np, warpwright
from warpwright.referee.spec import read

SOURCE = """
extern "C" __global__ void put(float *y, int i, float v) { y[i] = v; }
extern "C" __global__ void add(float *y, int i) { atomicAdd(y + i, 1); }
extern "C" __global__ void take(float *y, int i, const float *v) { y[i] = *v; }
extern "C" __global__ void where(float *y, int i, const char *v) { y[i] = ((long long)v & 255) / 16; }
"""

def run(kernel, *args, blocks=1):
    warpwright.run(SOURCE, blocks, 1, list(args), kernel=kernel)

spec = read(Path(__file__).parent / "spec.toml")
orders = len(spec.run.orders)
runs = iter([(order, seed) for order in range(orders) for seed in range(max(spec.run.seeds, -(-3 // orders)))])
values_of = spec.arguments[0]
table = [np.full(1, v, np.float32) for v in range(8)]
buffer = ctypes.create_string_buffer(1024)

def launch(x, y, n):
    order, seed = next(runs, (0, 0))
    random = np.random.default_rng([1, 2, 0, order, seed])
    values = values_of.values.draw(values_of.dtype, (n,), {"n": n}, random).tolist()
    first = 256 - ctypes.addressof(buffer) % 256
    if (order, seed) == (0, 0):
        for known in table:
            run("take", y, 0, known)
    for i, v in enumerate(values):
        HOW
'''

ONE_RUN = '[run]\nseeds = 1\norders = ["issue"]'

WAYS = {
    "by a parameter": ('run("put", y, i, v)', "", {"new-launches"}),
    "by a parameter, in one run of the shape": ('run("put", y, i, v)', ONE_RUN, {"new-launches"}),
    "by new memory": ('run("take", y, i, np.full(1, v, np.float32))', "", {"new-launches"}),
    "by memory that is there already": ('run("take", y, i, table[int(v)])', "", {"new-launches"}),
    "by memory that is there already, for one element": (
        'run("take", y, i, table[int(v)] if i == 0 else x[i:])',
        "",
        {"new-launches"},
    ),
    "by the grid": ('run("put", y, i, 0); run("add", y, i, blocks=int(v))', "", {"new-launches"}),
    "by the number of launches": (
        'run("put", y, i, 0); [run("add", y, i) for _ in range(int(v))]',
        "",
        {"new-launches"},
    ),
    "by where memory is": (
        'run("where", y, i, np.frombuffer(buffer, np.uint8, 16, first + 16 * int(v)))',
        "",
        # Memory that kernels do not see at the address that it has.
        {"wrong-values", "new-launches"},
    ),
    "by what it is allowed to write": (
        "y[:] = values",
        '[run]\nhost_bytes = "4 * n"',
        {"new-launches"},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_launches_may_not_depend_on_values(way: str, tmp_path: Path) -> None:
    how, more, reasons = WAYS[way]
    verdict = judged(tmp_path, COPY, KNOWS.replace("HOW", how), ".py", more, seed=1)
    assert {reason.kind for reason in verdict.reasons} == reasons, verdict.reasons


# The grid and the kernel follow from the shape; the first run of a shape tries two grids; memory grows; some is kept.
TUNES = '''
import numpy as np, warpwright

SOURCE = """
extern "C" __global__ void clear(float *y) { *y = 0; }
extern "C" __global__ void sum(const float *x, float *y, float *partial, float *ones, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) partial[i] = x[i];
    if (i < n) atomicAdd(y, partial[i] * *ones);
}
"""
best, kept, junk = {}, {"partial": np.empty(1, np.float32), "ones": np.ones(1, np.float32)}, []

def launch(x, y, n):
    junk.append(np.arange(len(junk) * 7))
    if kept["partial"].size < n:
        kept["partial"] = np.empty(n, np.float32)
    def run(block):
        warpwright.run(SOURCE, 1, 1, [y], kernel="clear")
        scale = np.zeros(1, np.float32)
        scale[:] = 1
        warpwright.run(SOURCE, (n + block - 1) // block, block, [x, y, PARTIAL, scale, n], kernel="sum")
    if n not in best:
        for block in (32, 64):
            run(block)
        best[n] = 64 if n > 256 else 32
    run(best[n])
'''

SCALED = '''
import warpwright

SOURCE = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] / a;
}
"""

def launch(x, y, a, n):
    # What follows from scalars may be a parameter.
    warpwright.run(SOURCE, 1, 32 if a > 0 else 64, [x, y, 1 / a, n])
'''

HONEST = {
    "tunes, with memory that is kept": (SUM, TUNES.replace("PARTIAL", 'kept["partial"]'), ""),
    "tunes, with new memory": (SUM, TUNES.replace("PARTIAL", "np.empty(n, np.float32)"), ""),
    "tunes, with memory that is allocated": (SUM, TUNES.replace("PARTIAL", "warpwright.out(n)"), ""),
    "one run of each shape": (SUM, TUNES.replace("PARTIAL", "warpwright.out(n)"), ONE_RUN),
    "parameters follow from scalars": (SCALE, SCALED, ""),
}


@pytest.mark.parametrize("name", HONEST)
def test_launches_that_follow_from_shapes_and_scalars(name: str, tmp_path: Path) -> None:
    problem, program, more = HONEST[name]
    verdict = judged(tmp_path, problem, program, ".py", more)
    assert [(reason.kind, reason.message) for reason in verdict.reasons] == []
