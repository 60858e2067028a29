"""Run and check NVIDIA GPU kernels without a GPU.

The virtual GPU executes PTX, what compilers make for NVIDIA's GPUs, on the processor, and finds races, bad accesses,
uninitialised data, missing barriers and hangs. `run` launches a kernel on NumPy arrays:

```
>>> import numpy as np, warpwright
>>> x = np.arange(4, dtype=np.float32)
>>> ptx = '''
... .version 8.0
... .target sm_80
... .address_size 64
... .visible .entry double(.param .u64 x)
... {
...     .reg .b32 %r<2>;
...     .reg .b64 %rd<3>;
...     .reg .f32 %f<2>;
...     ld.param.u64        %rd1, [x];
...     cvta.to.global.u64  %rd1, %rd1;
...     mov.u32             %r1, %tid.x;
...     mad.wide.u32        %rd2, %r1, 4, %rd1;
...     ld.global.f32       %f1, [%rd2];
...     add.f32             %f1, %f1, %f1;
...     st.global.f32       [%rd2], %f1;
...     ret;
... }'''
>>> outputs, report = warpwright.run(ptx, grid=1, block=4, args=[x])
>>> x.tolist(), report.ok
([0.0, 2.0, 4.0, 6.0], True)

```

A fifth thread reads, and writes, past the end. It does neither, and both are found:

```
>>> _, report = warpwright.run(ptx, grid=1, block=5, args=[x])
>>> [(finding.kind, finding.accesses[0].thread) for finding in report.findings]
[('out-of-bounds', (4, 0, 0)), ('out-of-bounds', (4, 0, 0))]

```
"""

from ._warpwright import __version__
from .errors import CompileError, FindingsError, PtxError, WarpwrightError
from .report import Access, Allocation, Finding, Report, Source, Trap, Waiting
from .run import Out, out, run
from .settings import on_report, settings

# For `pytest -p warpwright`, which asks a plugin what others it needs.
pytest_plugins = ("warpwright.pytest",)

__all__ = [
    "Access",
    "Allocation",
    "CompileError",
    "Finding",
    "FindingsError",
    "Out",
    "PtxError",
    "Report",
    "Source",
    "Trap",
    "Waiting",
    "WarpwrightError",
    "__version__",
    "on_report",
    "out",
    "run",
    "settings",
]
