"""Kernels of numba-cuda, if it is installed."""

import numpy as np
import warpwright

# Blocks run one after the other, whatever else the machine does. The driver is made where numba's is imported.
warpwright.settings.workers = 1

from numba import cuda  # noqa: E402


@cuda.jit(lineinfo=True)
def double(x, y):
    i = cuda.grid(1)
    y[i] = 2 * x[i]


@cuda.jit(lineinfo=True)
def reverse(x):
    shared = cuda.shared.array(64, np.int32)
    i = cuda.threadIdx.x
    shared[i] = x[i]
    x[i] = shared[63 - i]


@cuda.jit(lineinfo=True)
def last_sees_first(x):
    if cuda.blockIdx.x == 0:
        cuda.atomic.exch(x, 0, 1)
    elif cuda.blockIdx.x == cuda.gridDim.x - 1:
        x[1] = cuda.atomic.add(x, 0, 0)


def test_right():
    x = cuda.to_device(np.arange(64, dtype=np.float32))
    y = cuda.device_array(64, np.float32)
    double[1, 64](x, y)
    assert y.copy_to_host()[5] == 10


def test_out_of_bounds():
    x = cuda.to_device(np.zeros(60, np.float32))
    double[1, 64](x, cuda.device_array(64, np.float32))


def test_uninitialised():
    double[1, 64](cuda.device_array(64, np.float32), cuda.device_array(64, np.float32))


def test_missing_barrier():
    reverse[1, 64](cuda.to_device(np.zeros(64, np.int32)))


def test_order():
    x = cuda.to_device(np.zeros(2, np.int32))
    last_sees_first[64, 1](x)
    assert x.copy_to_host()[1] == (1 if warpwright.settings.order == "issue" else 0)
