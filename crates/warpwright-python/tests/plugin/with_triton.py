"""Kernels of Triton on arrays of NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def without_mask(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n))


def test_right():
    x, y = np.ones(100, np.float32), np.empty(100, np.float32)
    double[(1,)](x, y, 100, BLOCK=128)
    assert (y == 2).all()


def test_out_of_bounds():
    without_mask[(1,)](np.ones(100, np.float32), 100, BLOCK=128)


@pytest.mark.gpu_findings("out-of-bounds")
def test_expected():
    without_mask[(1,)](np.ones(100, np.float32), 100, BLOCK=128)
