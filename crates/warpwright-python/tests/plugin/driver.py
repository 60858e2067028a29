"""Launches by the CUDA driver's own functions, as a client of it makes them: without any package."""

import ctypes

import pytest
import warpwright.cuda

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry write(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64        %rd1, [x];
    cvta.to.global.u64  %rd1, %rd1;
    mov.u32             %r1, %tid.x;
    mad.wide.u32        %rd2, %r1, 4, %rd1;
    st.global.u32       [%rd2], %r1;
    ret;
}
.visible .entry read(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64        %rd1, [x];
    ld.global.u32       %r1, [%rd1];
    st.global.u32       [%rd1+4], %r1;
    ret;
}
.visible .entry endless(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64        %rd1, [x];
$again:
    atom.global.add.u32 %r1, [%rd1], 1;
    bra                 $again;
}
"""


@pytest.fixture(scope="session")
def driver():
    warpwright.cuda.enable()
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    return driver


class Program:
    def __init__(self, driver):
        self.driver = driver
        self.module = ctypes.c_void_p()
        assert driver.cuModuleLoadData(ctypes.byref(self.module), PTX) == 0
        self.x = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(self.x), ctypes.c_size_t(16)) == 0

    def launch(self, name, threads):
        function = ctypes.c_void_p()
        assert self.driver.cuModuleGetFunction(ctypes.byref(function), self.module, name) == 0
        params = (ctypes.c_void_p * 1)(ctypes.addressof(self.x))
        assert self.driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, params, None) == 0


@pytest.fixture
def program(driver):
    return Program(driver)


def test_right(program):
    program.launch(b"write", 4)
    assert program.driver.cuCtxSynchronize() == 0


def test_out_of_bounds(program):
    program.launch(b"write", 5)


def test_out_of_bounds_again(program):
    program.launch(b"write", 5)


def test_behind_an_error(program):
    program.launch(b"write", 4)
    assert program.driver.cuCtxSynchronize() == 0


def test_use_after_free(program):
    assert program.driver.cuMemFree_v2(program.x) == 0
    program.launch(b"write", 4)


def test_uninitialised(program):
    program.launch(b"read", 1)


def test_that_fails_by_itself(program):
    program.launch(b"write", 5)
    assert program.driver.cuCtxSynchronize() == 0


# By default it would take hours.
@pytest.mark.skipif(warpwright.settings.max_instructions > 1 << 30, reason="it does not end")
def test_endless(program):
    program.launch(b"endless", 1)


@pytest.mark.gpu_findings("out-of-bounds")
def test_expected(program):
    program.launch(b"write", 5)
    assert program.driver.cuCtxSynchronize() == 700
