"""What the package costs: launches a second, a vector add, the import. Run it with the installed package, a release
build: `python crates/warpwright-python/benches/costs.py`. Times are of this machine, the best of several.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import warpwright

TINY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry tiny(.param .u64 x)
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
"""

ADD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<4>;
    ld.param.u64    %rd1, [x];
    ld.param.u64    %rd2, [y];
    ld.param.u64    %rd3, [z];
    mov.u32         %r1, %ctaid.x;
    mov.u32         %r2, %ntid.x;
    mov.u32         %r3, %tid.x;
    mad.lo.u32      %r4, %r1, %r2, %r3;
    mul.wide.u32    %rd4, %r4, 4;
    add.u64         %rd5, %rd1, %rd4;
    add.u64         %rd6, %rd2, %rd4;
    add.u64         %rd7, %rd3, %rd4;
    ld.global.f32   %f1, [%rd5];
    ld.global.f32   %f2, [%rd6];
    add.f32         %f3, %f1, %f2;
    st.global.f32   [%rd7], %f3;
    ret;
}
"""


def best(times: int, body: Callable[[], object]) -> float:
    """The seconds of the fastest call."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        body()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def many(count: int, body: Callable[[], object]) -> None:
    for _ in range(count):
        body()


def launches(check: str) -> None:
    x = np.zeros(32, np.uint32)
    seconds = best(5, lambda: many(1000, lambda: warpwright.run(TINY, 1, 32, [x], check=check)))
    print(f"run, {check}: {1000 / seconds:.0f} launches/s")


def vector_add(check: str) -> None:
    x, y, z = (np.ones(1 << 20, np.float32) for _ in range(3))
    reports: list[warpwright.Report] = []
    seconds = best(5, lambda: reports.append(warpwright.run(ADD, 4096, 256, [x, y, z], check=check)[1]))
    print(f"vector add of 2^20, {check}: {milliseconds(seconds, reports)}")


def milliseconds(seconds: float, reports: list[warpwright.Report]) -> str:
    return f"{1e3 * seconds:.1f} ms, of the kernel {1e3 * min(map(took, reports)):.1f} ms"


def took(report: warpwright.Report) -> float:
    return report._document["seconds"]


def imports() -> None:
    def seconds(module: str) -> float:
        return best(10, lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True))

    numpy, ours = seconds("numpy"), seconds("warpwright")
    print(f"import: numpy {1e3 * numpy:.0f} ms, warpwright {1e3 * (ours - numpy):.0f} ms more")


def triton() -> None:
    try:
        import triton
        import triton.language as tl
    except ImportError:
        print("Triton: not installed")
        return
    import warpwright.triton

    source = compile_kernels(triton, tl)
    warpwright.triton.enable(check="memcheck")
    tiny, add = source
    x = np.zeros(32, np.int32)
    tiny[(1,)](x, BLOCK=32)
    seconds = best(5, lambda: many(1000, lambda: tiny[(1,)](x, BLOCK=32)))
    print(f"Triton {triton.__version__}: {1000 / seconds:.0f} launches/s")
    a, b, c = (np.ones(1 << 20, np.float32) for _ in range(3))
    reports: list[warpwright.Report] = []
    remove = warpwright.on_report(reports.append)
    call = lambda: add[(1024,)](a, b, c, 1 << 20, BLOCK=1024)  # noqa: E731
    call()
    seconds = best(5, call)
    remove()
    print(f"Triton's vector add of 2^20: {milliseconds(seconds, reports)}")


def compile_kernels(triton, tl):  # type: ignore[no-untyped-def]
    @triton.jit
    def tiny(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, i)

    @triton.jit
    def add(x, y, z, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    globals()["tl"] = tl
    return tiny, add


if __name__ == "__main__":
    for chosen in ("memcheck", "all"):
        launches(chosen)
        vector_add(chosen)
    imports()
    triton()
