"""Kernels that only seem right are rejected, each for its own reason, and for no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from problems import HISTOGRAM, MATMUL, MEAN, SCALE, SCAN, SOFTMAX, SUM, TRANSPOSE, Problem, judged

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def kernel(body: str, before: str = "") -> str:
    """A kernel for SCALE."""
    head = f'{before}\nextern "C" __global__ void scale(const float *x, float *y, float a, int n) {{\n'
    return f"{head}{INDEX}\n{body}\n}}"


def total(body: str, before: str = "") -> str:
    """A kernel for SUM, in one block of 128."""
    head = f'{before}\nextern "C" __global__ void sum(const float *x, float *y, int n) {{\n'
    return f"{head}int t = threadIdx.x;\n{body}\n}}"


def program(body: str, source: str = kernel("if (i < n) y[i] = a * x[i];"), before: str = "") -> str:
    """A program for SCALE."""
    return f"""
import numpy as np, warpwright
SOURCE = '''{source}'''
def scale(x, y, a, n):
    return warpwright.run(SOURCE, (n + 127) // 128, 128, [x, y, a, n])
COPY = '''{kernel("if (i < n) y[i] = x[i];")}'''
def copy(x, y, n):
    warpwright.run(COPY, (n + 127) // 128, 128, [x, y, 0.0, n])
{before}
def launch(x, y, a, n):
{body}
"""


REDUCE = """
__shared__ float part[128];
float own = 0;
for (int i = t; i < n; i += 128) own += x[i];
part[t] = own;
BARRIER
for (int step = 64; step; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
}
if (t == 0) y[0] = part[0];
"""

ONE_BLOCK = "grid = 1\nblock = 128"

SEARCH = """
    import gc, sys, os, glob
    found = [v for v in gc.get_objects() if isinstance(v, np.ndarray) and v.shape == y.shape and v is not y]
    frame = sys._getframe()
    while frame:
        found += [v for v in frame.f_locals.values() if isinstance(v, np.ndarray) and v.shape == y.shape]
        frame = frame.f_back
    for file in glob.glob(os.path.join(os.path.dirname(__file__), "*.py")):
        scope = {}
        exec(compile(open(file).read(), file, "exec"), scope) if "reference" in file else None
        if "reference" in scope:
            found.append(scope["reference"](x, a).astype(np.float32))
    best = found[-1]
    copy(np.ascontiguousarray(best), y, n)
"""

PATCH = """
import warpwright.referee.compare, warpwright._warpwright
np.allclose = np.array_equal = lambda *_, **__: True
warpwright.referee.compare.compare = lambda *_: None
warpwright.Report.ok = property(lambda self: True)
warpwright._warpwright.Memory = None
"""

FORGE = """
    from __main__ import RemoteDevice
    result = (a * np.ascontiguousarray(x)).astype(np.float32)
    wire = RemoteDevice.client.wire
    wire.send({"do": "done", "accepted": True, "writes": [WRITE]}, CONTENTS)
    wire.receive()
"""


def forged(write: str, contents: str = "result.tobytes()") -> str:
    """A program that sends what only the referee's own code should send."""
    return FORGE.replace("WRITE", write).replace("CONTENTS", contents)


WRITE_ALL = '{"memory": ~1, "offset": 0, "bytes": 4 * n, "fill": None, "sent": True}'
WRITE_BEYOND = '{"memory": ~1, "offset": 4 * n - 4, "bytes": 4096, "fill": None, "sent": True}'
WRITE_INPUT = '{"memory": ~0, "offset": 0, "bytes": 4 * n, "fill": "00", "sent": False}'

CHEATERS: dict[str, tuple[Problem, str, str, str, set[str]]] = {
    # Less than is asked for.
    "writes nothing": (SCALE, kernel(""), ".cu", "", {"unwritten-output"}),
    "launches nothing": (SCALE, program("    pass"), ".py", "", {"unwritten-output"}),
    "writes a constant": (SCALE, kernel("if (i < n) y[i] = 0;"), ".cu", "", {"wrong-values"}),
    "fills with a constant": (SCALE, program("    y.fill(0)"), ".py", "", {"wrong-values"}),
    "copies its input": (SCALE, kernel("if (i < n) y[i] = x[i];"), ".cu", "", {"wrong-values"}),
    "writes a part": (SCALE, kernel("if (i < n / 2) y[i] = a * x[i];"), ".cu", "", {"unwritten-output"}),
    "is right for one block": (
        SCALE,
        kernel("if (blockIdx.x == 0 && i < n) y[i] = a * x[i];"),
        ".cu",
        "",
        {"unwritten-output"},
    ),
    "forgets the tail": (SCALE, kernel("if (i < n / 4 * 4) y[i] = a * x[i];"), ".cu", "", {"unwritten-output"}),
    "returns NaN": (SCALE, kernel("if (i < n) y[i] = __int_as_float(0x7fc00000);"), ".cu", "", {"wrong-values"}),
    "leaves the maximum out": (
        SOFTMAX,
        """extern "C" __global__ void softmax(const float *x, float *y, int n) {
            if (threadIdx.x) return;
            x += blockIdx.x * n, y += blockIdx.x * n;
            float sum = 0;
            for (int i = 0; i < n; i++) sum += expf(x[i]);
            for (int i = 0; i < n; i++) y[i] = expf(x[i]) / sum;
        }""",
        ".cu",
        "",
        {"wrong-values"},
    ),
    "takes the mean for 0": (MEAN, total("if (t == 0) y[0] = 0;"), ".cu", ONE_BLOCK, {"wrong-values"}),
    "relies on small integers": (
        HISTOGRAM,
        """extern "C" __global__ void count(const int *x, int *y, int n, int bins) {
            int b = blockIdx.x * blockDim.x + threadIdx.x;
            if (b < bins) { int c = 0; for (int i = 0; i < n; i++) c += (x[i] & 15) == b; y[b] = c; }
        }""",
        ".cu",
        "",
        {"wrong-values"},
    ),
    "multiplies in tiles without a tail": (
        MATMUL,
        """extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
            int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
            float sum = 0;
            if (row >= m || column >= n) return;
            for (int i = 0; i < k / 4 * 4; i++) sum += a[row * k + i] * b[i * n + column];
            c[row * n + column] = sum;
        }""",
        ".cu",
        "",
        {"wrong-values"},
    ),
    # What memory is for something else.
    "reads beyond its input": (
        SCALE,
        kernel("if (i < n) y[i] = a * x[i] + 0 * x[i + 1];"),
        ".cu",
        "",
        {"finding:out-of-bounds"},
    ),
    "looks for data around its input": (
        SUM,
        total("if (t == 0) { float s = 0; for (int i = -64; i < n; i++) s += i < 0 ? 0 * x[i] : x[i]; y[0] = s; }"),
        ".cu",
        ONE_BLOCK,
        {"finding:out-of-bounds"},
    ),
    "writes beyond its output": (
        SCALE,
        kernel("if (i <= n) y[i] = a * x[min(i, n - 1)];"),
        ".cu",
        "",
        {"finding:out-of-bounds"},
    ),
    "writes into its input": (
        SCALE,
        kernel("if (i < n) y[i] = a * x[i], const_cast<float *>(x)[i] = 0;"),
        ".cu",
        "",
        {"finding:read-only"},
    ),
    "writes into its input from a program": (
        SCALE,
        program("    scale(x, y, a, n)\n    scale(y, x, a, n)"),
        ".py",
        "",
        {"finding:read-only"},
    ),
    "works in its output before it is written": (
        SCALE,
        kernel("if (i < n) y[i] += a * x[i];"),
        ".cu",
        "",
        {"finding:uninitialized", "wrong-values"},
    ),
    # What it remembers.
    "keeps its first result": (
        SCALE,
        kernel(
            "if (i < n) { if (!known[i]) { kept[i] = a * x[i]; known[i] = true; } y[i] = kept[i]; }",
            "__device__ float kept[1024]; __device__ bool known[1024];",
        ),
        ".cu",
        "",
        {"wrong-values"},
    ),
    "keeps results by address": (
        SCALE,
        program(
            "    if (x.ctypes.data, n) not in kept:\n"
            "        (kept[x.ctypes.data, n],), _ = scale(x, warpwright.out(n), a, n)\n"
            "    copy(kept[x.ctypes.data, n], y, n)",
            before="kept = {}",
        ),
        ".py",
        "",
        {"wrong-values"},
    ),
    "launches once for an address": (
        SCALE,
        program(
            "    if y.ctypes.data not in kept:\n        kept.add(y.ctypes.data)\n        scale(x, y, a, n)",
            before="kept = set()",
        ),
        ".py",
        "",
        {"unwritten-output"},
    ),
    "counts its launches": (
        SCALE,
        kernel(
            "if (i < n) y[i] = a * x[i] * (atomicAdd(&launches, 1) < LIMIT);", "__device__ unsigned launches;"
        ).replace(
            # All elements of all runs but the last.
            "LIMIT",
            str((6 + 1) * (1 + 300 + 257) - 1),
        ),
        ".cu",
        "",
        {"not-repeatable"},
    ),
    "does not clean up": (
        SUM,
        total(
            "for (int i = t; i < n; i += 128) atomicAdd(&tally, x[i]);\n__syncthreads();\nif (t == 0) y[0] = tally;",
            "__device__ float tally;",
        ),
        ".cu",
        ONE_BLOCK,
        {"wrong-values", "not-repeatable"},
    ),
    # What the host computes.
    # One element is one value everywhere: kernels get it, and it is wrong.
    "computes on the host": (
        SCALE,
        program("    y[:] = a * x"),
        ".py",
        "",
        {"unwritten-output", "new-launches", "wrong-values"},
    ),
    "computes on the host and copies": (
        SCALE,
        program("    copy((a * x).astype(np.float32), y, n)"),
        ".py",
        "",
        {"finding:uninitialized", "new-launches", "wrong-values"},
    ),
    "computes on the host, in allowed tables": (
        SCALE,
        program("    copy((a * x).astype(np.float32), y, n)"),
        ".py",
        "host_bytes = 4096",
        {"new-launches", "wrong-values"},
    ),
    "launches a kernel for each result": (
        SUM,
        "import numpy as np, warpwright\n"
        "SOURCE = '''extern \"C\" __global__ void set(float *y, float v) { *y = v; }'''\n"
        "def launch(x, y, n):\n    warpwright.run(SOURCE, 1, 1, [y, float(x.sum())])\n",
        ".py",
        "",
        {"new-launches", "wrong-values"},
    ),
    "reads a result back": (
        SUM,
        "import numpy as np, warpwright\n"
        "COPY = '''extern \"C\" __global__ void copy(const float *x, float *y, int n) {"
        " for (int i = threadIdx.x; i < n; i += 32) y[i] = x[i]; }'''\n"
        "SET = '''extern \"C\" __global__ void set(float *y, float v) { *y = v; }'''\n"
        "def launch(x, y, n):\n"
        "    (seen,), _ = warpwright.run(COPY, 1, 32, [x, warpwright.out(n), n])\n"
        "    warpwright.run(SET, 1, 1, [y, float(seen.sum())])\n",
        ".py",
        "",
        {"wrong-values"},
    ),
    "prints a result to itself": (
        SUM,
        "import numpy as np, warpwright\n"
        "SOURCE = '''extern \"C\" __global__ void show(const float *x, int n) {"
        " float s = 0; for (int i = 0; i < n; i++) s += x[i]; printf(\"%f\", s); }'''\n"
        "SET = '''extern \"C\" __global__ void set(float *y, float v) { *y = v; }'''\n"
        "def launch(x, y, n):\n"
        "    _, report = warpwright.run(SOURCE, 1, 1, [x, n])\n"
        "    warpwright.run(SET, 1, 1, [y, float(report.output or 0)])\n",
        ".py",
        "",
        {"wrong-values"},
    ),
    "puts results into the code": (
        SUM,
        "import numpy as np, warpwright\n"
        "def launch(x, y, n):\n"
        "    source = 'extern \"C\" __global__ void set(float *y) { *y = %.9ef; }' % x.sum()\n"
        "    warpwright.run(source, 1, 1, [y])\n",
        ".py",
        "",
        {"new-code", "wrong-values"},
    ),
    "searches for the result": (
        SCALE,
        program(SEARCH),
        ".py",
        "",
        {"finding:uninitialized", "new-launches", "wrong-values"},
    ),
    # What it does to its judge.
    "writes another reference": (
        SCALE,
        program(
            "    copy(x, y, n)",
            before="import os\nwith open(os.path.join(os.path.dirname(__file__), 'reference.py'), 'w') as f:\n"
            "    f.write('def reference(x, a):\\n    return x')",
        ),
        ".py",
        "",
        {"wrong-values"},
    ),
    "patches the judge": (
        SCALE,
        program("    y[:] = a * x", before=PATCH),
        ".py",
        "",
        {"unwritten-output", "new-launches", "wrong-values"},
    ),
    "says that it is done": (SCALE, program(forged(WRITE_ALL)), ".py", "", {"protocol"}),
    "says so, in allowed tables": (
        SCALE,
        program(forged(WRITE_ALL)),
        ".py",
        "host_bytes = 4096",
        {"unwritten-output", "new-launches", "wrong-values"},
    ),
    "writes beyond memory of the judge": (
        SCALE,
        program(forged(WRITE_BEYOND)),
        ".py",
        "host_bytes = 8192",
        {"protocol"},
    ),
    "writes into an input of the judge": (SCALE, program(forged(WRITE_INPUT, "b''")), ".py", "", {"protocol"}),
    "sends rubbish": (
        SCALE,
        program("    from __main__ import RemoteDevice as r\n    r.client.wire._end.sendall(b'x' * 99)\n    y.fill(0)"),
        ".py",
        "",
        {"protocol"},
    ),
    "exits": (SCALE, program("    import os\n    os._exit(0)"), ".py", "", {"exited"}),
    "exits as if all were well": (SCALE, program("    raise SystemExit(0)"), ".py", "", {"exited"}),
    "ends its process group": (SCALE, program("    import os\n    os.killpg(0, 9)"), ".py", "", {"exited"}),
    "raises": (SCALE, program("    raise ValueError(n)"), ".py", "", {"raised"}),
    "fails when it is imported": (SCALE, "import nothing_of_that_name\n", ".py", "", {"does-not-load"}),
    "has no function": (SCALE, "x = 1\n", ".py", "", {"does-not-load"}),
    "hangs in its program": (SCALE, program("    while True: pass"), ".py", "seconds = 0.4", {"timeout"}),
    "hangs in its kernel": (
        SCALE,
        kernel("while (a == a) __threadfence();"),
        ".cu",
        "max_instructions = 100000",
        {"trap:budget"},
    ),
    "does not compile": (SCALE, kernel("nonsense"), ".cu", "", {"does-not-compile"}),
    "is no PTX": (SCALE, ".version 8.0\nnonsense\n", ".ptx", "", {"does-not-load"}),
    "has other parameters": (SCALE, 'extern "C" __global__ void scale(float *y) { *y = 1; }', ".cu", "", {"refused"}),
    # What happens to work.
    "forgets a barrier": (
        SUM,
        total(REDUCE.replace("BARRIER", "")),
        ".cu",
        ONE_BLOCK,
        {"finding:race", "wrong-values"},
    ),
    "uses shared memory that nobody wrote": (
        SUM,
        total(REDUCE.replace("BARRIER", "__syncthreads();").replace("part[t] = own;", "if (t < n) part[t] = own;")),
        ".cu",
        ONE_BLOCK,
        {"finding:uninitialized", "wrong-values"},
    ),
    "a barrier in a branch": (
        SUM,
        total(REDUCE.replace("BARRIER", "if (t < 100) __syncthreads();")),
        ".cu",
        ONE_BLOCK,
        {"finding:divergent-barrier"},
    ),
    "relies on the order of blocks": (
        SUM,
        """__device__ float carried[8];
        extern "C" __global__ void sum(const float *x, float *y, int n) {
            float s = blockIdx.x ? carried[blockIdx.x - 1] : 0;
            for (int i = blockIdx.x * 128; i < min(n, (int)blockIdx.x * 128 + 128); i++) s += x[i];
            carried[blockIdx.x] = s;
            if (blockIdx.x == gridDim.x - 1) *y = s;
        }""",
        ".cu",
        "grid = 3\nblock = 1",
        {"finding:race", "wrong-values"},
    ),
    "scans in place without a barrier": (
        SCAN,
        """extern "C" __global__ void scan(int *x, int n) {
            for (int step = 1; step < n; step *= 2) {
                int add = threadIdx.x >= step && threadIdx.x < n ? x[threadIdx.x - step] : 0;
                if (threadIdx.x < n) x[threadIdx.x] += add;
                __syncthreads();
            }
        }""",
        ".cu",
        "",
        {"finding:race", "wrong-values"},
    ),
    "adds without atomics": (
        HISTOGRAM,
        """extern "C" __global__ void count(const int *x, int *y, int n, int bins) {
            for (int b = threadIdx.x; b < bins; b += 128) y[b] = 0;
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += 128) y[x[i]] += 1;
        }""",
        ".cu",
        ONE_BLOCK,
        {"finding:race", "wrong-values"},
    ),
    # What costs too much.
    "computes everything in every thread": (
        TRANSPOSE,
        """extern "C" __global__ void transpose(const float *x, float *y, int m, int n) {
            int t = threadIdx.y * 16 + threadIdx.x;
            if (blockIdx.x || blockIdx.y) return;
            for (int again = 0; again < 8; again++)
                for (int i = t; i < m * n; i += 256) ((volatile float *)y)[i % n * m + i / n] = x[i];
        }""",
        ".cu",
        "[limits]\ntraffic = 8",
        {"traffic"},
    ),
}


@pytest.mark.parametrize("name", CHEATERS)
def test_cheaters_are_rejected(name: str, tmp_path: Path) -> None:
    problem, candidate, suffix, more, reasons = CHEATERS[name]
    launch = more if more.startswith("grid") else ""
    rest = "" if launch else more if more.startswith("[") else f"[run]\n{more}"
    # The same values each time: what follows from a bad one, such as NaN, may depend on them.
    verdict = judged(tmp_path, problem, candidate, suffix, rest, launch, seed=1)
    found = {
        ":".join([reason.kind, *([part["kind"]] if (part := reason.finding or reason.trap) else [])])
        for reason in verdict.reasons
    }
    # What a race does to values depends on how fast threads of the host are.
    chance = {"wrong-values", "not-repeatable"} if "finding:race" in reasons else set()
    assert found - chance == reasons - chance, verdict.reasons
    assert not verdict.accepted
    assert all(reason.count <= max(verdict.runs, 1) for reason in verdict.reasons)
