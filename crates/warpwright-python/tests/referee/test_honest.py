"""Kernels that are right are accepted, of every kind that people write."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from problems import HALF, HISTOGRAM, MATMUL, SCALE, SCAN, SOFTMAX, SUM, TRANSPOSE, Problem, judged

SCALE_PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<3>;
    ld.param.u64    %rd1, [x];
    ld.param.u64    %rd2, [y];
    ld.param.f32    %f1, [a];
    ld.param.u32    %r1, [n];
    mov.u32         %r2, %ctaid.x;
    mov.u32         %r3, %ntid.x;
    mov.u32         %r4, %tid.x;
    mad.lo.u32      %r5, %r2, %r3, %r4;
    setp.ge.u32     %p, %r5, %r1;
    @%p ret;
    mul.wide.u32    %rd3, %r5, 4;
    add.u64         %rd1, %rd1, %rd3;
    add.u64         %rd2, %rd2, %rd3;
    ld.global.f32   %f2, [%rd1];
    mul.f32         %f2, %f2, %f1;
    st.global.f32   [%rd2], %f2;
    ret;
}
"""

GRID_STRIDE = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i];
}
"""

SOFTMAX_WARP = """
__device__ float all(float v, bool largest) {
    for (int step = 16; step; step /= 2) {
        float other = __shfl_xor_sync(~0u, v, step);
        v = largest ? fmaxf(v, other) : v + other;
    }
    return v;
}
extern "C" __global__ void softmax(const float *x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) most = fmaxf(most, x[i]);
    most = all(most, true);
    for (int i = threadIdx.x; i < n; i += 32) sum += expf(x[i] - most);
    sum = all(sum, false);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = expf(x[i] - most) / sum;
}
""".replace("-INFINITY", "__int_as_float(0xff800000)")

SUM_ATOMIC = '''
import warpwright

SOURCE = """
extern "C" __global__ void sum(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y, x[i]);
}
"""

def launch(x, y, n):
    y.fill(0)
    warpwright.run(SOURCE, (n + 63) // 64, 64, [x, y, n])
'''

SUM_TWO_PASSES = '''
import numpy as np, warpwright

SOURCE = """
extern "C" __global__ void sum(const float *x, float *y, int n) {
    __shared__ float part[64];
    float own = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) own += x[i];
    part[threadIdx.x] = own;
    for (int step = 32; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
"""

def launch(x, y, n):
    partial = SCRATCH
    warpwright.run(SOURCE, 5, 64, [x, partial, n])
    warpwright.run(SOURCE, 1, 64, [partial, y, 5])
'''

# The last block adds up, and leaves the counter as it found it.
SUM_COUNTER = '''
import numpy as np, warpwright

SOURCE = """
extern "C" __global__ void sum(const float *x, float *y, float *partial, unsigned *counter, int n) {
    __shared__ bool is_last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 16; step; step /= 2) { }
    float v = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        is_last = atomicAdd(counter, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        __threadfence();
        float total = 0;
        for (int b = 0; b < gridDim.x; b++) total += ((volatile float *)partial)[b];
        *y = total;
        *counter = 0;
    }
}
"""
counter = np.zeros(1, np.uint32)

def launch(x, y, n):
    blocks = (n + 31) // 32
    warpwright.run(SOURCE, blocks, 32, [x, y, warpwright.out(blocks), counter, n])
'''

TRANSPOSE_TILE = """
extern "C" __global__ void transpose(const float *x, float *y, int m, int n) {
    __shared__ float tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < m && column < n) tile[threadIdx.y][threadIdx.x] = x[row * n + column];
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
    if (row < n && column < m) y[row * m + column] = tile[threadIdx.x][threadIdx.y];
}
"""

MATMUL_TILES = """
template <typename T, int TILE>
__global__ void matmul(const T *a, const T *b, T *c, int m, int n, int k) {
    __shared__ T left[TILE][TILE], right[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    T sum = 0;
    for (int first = 0; first < k; first += TILE) {
        int i = first + threadIdx.x, j = first + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && i < k ? a[row * k + i] : T(0);
        right[threadIdx.y][threadIdx.x] = j < k && column < n ? b[j * n + column] : T(0);
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += left[threadIdx.y][t] * right[t][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
"""

SCAN_IN_PLACE = """
extern "C" __global__ void scan(int *x, int n) {
    extern __shared__ int values[];
    int t = threadIdx.x;
    values[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int add = t >= step ? values[t - step] : 0;
        __syncthreads();
        values[t] += add;
        __syncthreads();
    }
    if (t < n) x[t] = values[t];
}
"""

HISTOGRAM_ZEROED = '''
import numpy as np, warpwright

SOURCE = """
extern "C" __global__ void count(const int *x, int *counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(counts + x[i], 1);
}
extern "C" __global__ void copy(const int *counts, int *y, int bins) {
    if (threadIdx.x < bins) y[threadIdx.x] = counts[threadIdx.x];
}
"""

def launch(x, y, n, bins):
    counts = np.zeros(bins, np.int32)
    # Twice, so that the host must be heard when it clears them.
    for _ in range(2):
        counts[:] = 0
        warpwright.run(SOURCE, (n + 127) // 128, 128, [x, counts, n], kernel="count")
    warpwright.run(SOURCE, 1, 64, [counts, y, bins], kernel="copy")
'''

HALF_PAIRS = """
#include <cuda_fp16.h>
extern "C" __global__ void add(const __half *x, const __half *z, __half *y, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 1 < n) *(__half2 *)(y + i) = __hadd2(*(const __half2 *)(x + i), *(const __half2 *)(z + i));
    else if (i < n) y[i] = __hadd(x[i], z[i]);
}
"""

# Two bytes are no word.
HALF_FILLED = '''
import warpwright

SOURCE = """
#include <cuda_fp16.h>
extern "C" __global__ void add(const __half *x, __half *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hadd(y[i], x[i]);
}
"""

def launch(x, z, y, n):
    y.fill(0)
    for term in (x, z):
        warpwright.run(SOURCE, (n + 127) // 128, 128, [term, y, n])
'''

SCAN_SERIAL = '''
import warpwright

SOURCE = """
extern "C" __global__ void scan(int *x, int n) {
    for (int i = 1; i < n; i++) x[i] += x[i - 1];
}
"""

def launch(x, n):
    try:
        warpwright.run(SOURCE, 1, 1, [x, n], shared=1 << 20)
    except warpwright.WarpwrightError:
        warpwright.run(SOURCE, 1, 1, [x, n])
'''

# A table is not the same everywhere: the specification must allow it.
SCALE_TABLE = '''
import numpy as np, warpwright

SOURCE = """
extern "C" __global__ void scale(const float *x, float *y, float a, const int *order, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[order[i]] = a * x[order[i]];
}
"""

def launch(x, y, a, n):
    order = np.arange(n, dtype=np.int32)[::-1].copy()
    warpwright.run(SOURCE, (n + 127) // 128, 128, [x, y, a, order, n])
'''

TRITON = """
import triton, triton.language as tl

@triton.jit
def scale(x, y, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, a * tl.load(x + i, mask=i < n), mask=i < n)

def launch(x, y, a, n):
    scale[(triton.cdiv(n, 128),)](x, y, a, n, BLOCK=128)
"""

TRITON_SUM = """
import torch, triton, triton.language as tl

@triton.jit
def sum(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0)))

def launch(x, y, n):
    assert x.is_cuda
    blocks = triton.cdiv(n, 64)
    partial = torch.empty(blocks, device="cuda")
    sum[(blocks,)](x, partial, n, BLOCK=64)
    sum[(1,)](partial, y, blocks, BLOCK=64)
"""

HONEST: dict[str, tuple[Problem, str, str, str, str]] = {
    "PTX": (SCALE, SCALE_PTX, ".ptx", "", ""),
    "grid stride": (SCALE, GRID_STRIDE, ".cu", "", "grid = 2\nblock = 96"),
    "softmax": (SOFTMAX, SOFTMAX_WARP, ".cu", "", ""),
    "sum by atomics": (SUM, SUM_ATOMIC, ".py", "", ""),
    "sum in two passes, np.empty": (SUM, SUM_TWO_PASSES.replace("SCRATCH", "np.empty(5, np.float32)"), ".py", "", ""),
    "sum in two passes, a view": (
        SUM,
        SUM_TWO_PASSES.replace("SCRATCH", "np.zeros(9, np.float32)[2:7]"),
        ".py",
        "",
        "",
    ),
    "sum by the last block": (SUM, SUM_COUNTER, ".py", "", ""),
    "transpose": (TRANSPOSE, TRANSPOSE_TILE, ".cu", "", ""),
    "matmul, a template": (
        MATMUL,
        MATMUL_TILES,
        ".cu",
        "",
        f'entry = "matmul<float, 16>"\ngrid = {MATMUL.grid}\nblock = {MATMUL.block}',
    ),
    "scan in place, dynamic shared memory": (SCAN, SCAN_IN_PLACE, ".cu", "", "grid = 1\nblock = 256\nshared = 1024"),
    "histogram": (HISTOGRAM, HISTOGRAM_ZEROED, ".py", "", ""),
    "float16": (HALF, HALF_PAIRS, ".cu", "", ""),
    "float16, filled": (HALF, HALF_FILLED, ".py", "", ""),
    "scan in place, after a launch that is refused": (SCAN, SCAN_SERIAL, ".py", "", ""),
    "a table": (SCALE, SCALE_TABLE, ".py", '[run]\nhost_bytes = "4 * n"', ""),
}
if find_spec("triton"):
    HONEST["Triton"] = (SCALE, TRITON, ".py", "", "")
if find_spec("triton") and find_spec("torch"):
    HONEST["Triton and PyTorch"] = (SUM, TRITON_SUM, ".py", "", "")


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_are_accepted(name: str, tmp_path: Path) -> None:
    problem, candidate, suffix, more, launch = HONEST[name]
    verdict = judged(tmp_path, problem, candidate, suffix, more, launch)
    assert [(reason.kind, reason.message) for reason in verdict.reasons] == []
    assert verdict.accepted and verdict.runs == verdict.planned and not verdict.warnings


def test_a_table_that_is_not_allowed_is_explained(tmp_path: Path) -> None:
    verdict = judged(tmp_path, SCALE, SCALE_TABLE, ".py", '[run]\nhost_bytes = "4 * n - 1"')
    # A table of one element is one value everywhere.
    assert all(reason.shape != {"n": 1} for reason in verdict.reasons)
    assert "uninitialized" in {reason.finding["kind"] for reason in verdict.reasons if reason.finding}
    assert len(verdict.notes) == 1
