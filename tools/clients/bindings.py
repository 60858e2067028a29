"""NVIDIA's own Python bindings of the CUDA driver API, on whatever driver they find.

Each check prints `ok NAME` or `failed NAME: why`; the exit status is 0 if all are ok. With the argument `end` the
program ends while the driver calls a function of its own.
"""

import ctypes
import sys
import time

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__constant__ float weights[4];

extern "C" __global__ void sum_of_block(const float *x, float *sums) {
    __shared__ float part[128];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] * weights[blockIdx.x % 4];
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
"""

COUNT = 1000


def call(function, *arguments):
    """What a function returns beside its status, which must be success."""
    status, *results = function(*arguments)
    if status.value != 0:
        raise RuntimeError(f"{function.__name__}: {status!r}")
    return results[0] if len(results) == 1 else tuple(results)


def compile_ptx(source, arch):
    program = call(nvrtc.nvrtcCreateProgram, source, b"kernels.cu", 0, [], [])
    options = [f"--gpu-architecture=compute_{arch}".encode()]
    call(nvrtc.nvrtcCompileProgram, program, len(options), options)
    text = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, text)
    call(nvrtc.nvrtcDestroyProgram, program)
    return text


class Device:
    """A context with the kernels."""

    def __init__(self):
        call(driver.cuInit, 0)
        self.device = call(driver.cuDeviceGet, 0)
        self.context = call(driver.cuDevicePrimaryCtxRetain, self.device)
        call(driver.cuCtxSetCurrent, self.context)
        attribute = driver.CUdevice_attribute
        major = call(driver.cuDeviceGetAttribute, attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device)
        minor = call(driver.cuDeviceGetAttribute, attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device)
        self.ptx = np.frombuffer(compile_ptx(SOURCE, f"{major}{minor}"), np.uint8)
        self.module = call(driver.cuModuleLoadData, self.ptx.ctypes.data)
        self.stream = call(driver.cuStreamCreate, 0)

    def function(self, name):
        return call(driver.cuModuleGetFunction, self.module, name)

    def upload(self, array):
        memory = call(driver.cuMemAlloc, array.nbytes)
        call(driver.cuMemcpyHtoDAsync, memory, array.ctypes.data, array.nbytes, self.stream)
        return memory

    def download(self, memory, array):
        call(driver.cuMemcpyDtoHAsync, array.ctypes.data, memory, array.nbytes, self.stream)
        call(driver.cuStreamSynchronize, self.stream)
        return array

    def launch(self, function, grid, block, values):
        """Values are numpy arrays of one element."""
        addresses = np.array([value.ctypes.data for value in values], dtype=np.uint64)
        call(driver.cuLaunchKernel, function, grid, 1, 1, block, 1, 1, 0, self.stream, addresses.ctypes.data, 0)


def pointer(memory):
    return np.array([int(memory)], dtype=np.uint64)


def saxpy(device):
    x = np.arange(COUNT, dtype=np.float32)
    y = np.ones(COUNT, dtype=np.float32)
    there, other = device.upload(x), device.upload(y)
    values = [np.array([2.0], np.float32), pointer(there), pointer(other), np.array([COUNT], np.uint32)]
    device.launch(device.function(b"saxpy"), 8, 128, values)
    assert np.array_equal(device.download(other, np.empty_like(y)), 2.0 * x + y)
    call(driver.cuMemFree, there)
    call(driver.cuMemFree, other)


def shared_memory_and_constants(device):
    x = np.arange(8 * 128, dtype=np.float32) % 16
    weights = np.array([1.0, 0.5, 2.0, -1.0], dtype=np.float32)
    address, size = call(driver.cuModuleGetGlobal, device.module, b"weights")
    assert size == weights.nbytes
    call(driver.cuMemcpyHtoD, address, weights.ctypes.data, weights.nbytes)
    there, sums = device.upload(x), device.upload(np.zeros(8, np.float32))
    device.launch(device.function(b"sum_of_block"), 8, 128, [pointer(there), pointer(sums)])
    expected = x.reshape(8, 128).sum(axis=1) * np.tile(weights, 2)
    assert np.array_equal(device.download(sums, np.empty(8, np.float32)), expected)
    call(driver.cuMemFree, there)
    call(driver.cuMemFree, sums)


def a_graph_is_replayed(device):
    x = np.ones(COUNT, dtype=np.float32)
    there, other = device.upload(x), device.upload(np.zeros(COUNT, np.float32))
    values = [np.array([3.0], np.float32), pointer(there), pointer(other), np.array([COUNT], np.uint32)]
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    call(driver.cuStreamBeginCapture, device.stream, mode)
    device.launch(device.function(b"saxpy"), 8, 128, values)
    device.launch(device.function(b"saxpy"), 8, 128, values)
    graph = call(driver.cuStreamEndCapture, device.stream)
    ready = call(driver.cuGraphInstantiate, graph, 0)
    before, after = call(driver.cuEventCreate, 0), call(driver.cuEventCreate, 0)
    call(driver.cuEventRecord, before, device.stream)
    for _ in range(5):
        call(driver.cuGraphLaunch, ready, device.stream)
    call(driver.cuEventRecord, after, device.stream)
    assert np.array_equal(device.download(other, np.empty_like(x)), np.full(COUNT, 30.0, np.float32))
    assert call(driver.cuEventElapsedTime, before, after) >= 0
    call(driver.cuEventDestroy, before)
    call(driver.cuEventDestroy, after)
    call(driver.cuGraphExecDestroy, ready)
    call(driver.cuGraphDestroy, graph)
    call(driver.cuMemFree, there)
    call(driver.cuMemFree, other)


def memory_in_the_order_of_streams(device):
    y = np.arange(COUNT, dtype=np.uint32)
    memory = call(driver.cuMemAllocAsync, y.nbytes, device.stream)
    call(driver.cuMemsetD32Async, memory, 7, COUNT, device.stream)
    assert np.array_equal(device.download(memory, np.empty_like(y)), np.full(COUNT, 7, np.uint32))
    call(driver.cuMemFreeAsync, memory, device.stream)
    call(driver.cuStreamSynchronize, device.stream)


def functions_of_the_host(device):
    """They are called by a thread of the driver's, which asks for the interpreter's lock."""
    called = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def append(argument):
        called.append(argument)

    function = driver.CUhostFn(_ptr=ctypes.addressof(append))
    for number in range(1, 4):
        call(driver.cuLaunchHostFunc, device.stream, function, number)
    call(driver.cuStreamSynchronize, device.stream)
    assert called == [1, 2, 3]


def what_is_wrong_is_refused(device):
    error = driver.CUresult
    status, _ = driver.cuModuleGetFunction(device.module, b"no_such_kernel")
    assert status == error.CUDA_ERROR_NOT_FOUND
    status, _ = driver.cuDeviceGet(4096)
    assert status == error.CUDA_ERROR_INVALID_DEVICE
    (status,) = driver.cuMemFree(12345)
    assert status == error.CUDA_ERROR_INVALID_VALUE
    assert call(driver.cuGetErrorName, error.CUDA_ERROR_NOT_FOUND) == b"CUDA_ERROR_NOT_FOUND"


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def never_returns(_):
    while True:
        time.sleep(0.001)


def end_beside_a_function():
    """The interpreter is taken down, and ends the thread that calls the function, or stops it for good."""
    device = Device()
    call(driver.cuLaunchHostFunc, device.stream, driver.CUhostFn(_ptr=ctypes.addressof(never_returns)), 0)
    time.sleep(0.01)
    print("ok end_beside_a_function")
    return 0


def main():
    device = Device()
    name = call(driver.cuDeviceGetName, 128, device.device).split(b"\0")[0].decode()
    print(f"driver {call(driver.cuDriverGetVersion)}, {name}")
    failed = 0
    checks = [
        saxpy,
        shared_memory_and_constants,
        a_graph_is_replayed,
        memory_in_the_order_of_streams,
        functions_of_the_host,
        what_is_wrong_is_refused,
    ]
    for check in checks:
        try:
            check(device)
            print(f"ok {check.__name__}")
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"failed {check.__name__}: {error!r}")
    call(driver.cuStreamDestroy, device.stream)
    call(driver.cuModuleUnload, device.module)
    call(driver.cuDevicePrimaryCtxRelease, device.device)
    return 1 if failed else 0


sys.exit(end_beside_a_function() if sys.argv[1:] == ["end"] else main())
