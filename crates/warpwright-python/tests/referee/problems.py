"""Problems for the referee's tests: what kernels shall compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpwright.referee.judge import Verdict, judge
from warpwright.referee.spec import read


def array(name: str, role: str, shape: str, dtype: str = "float32", more: str = "") -> str:
    return f'[[argument]]\nname = "{name}"\nrole = "{role}"\nshape = {shape}\ndtype = "{dtype}"\n{more}\n'


def size(name: str) -> str:
    return f'[[argument]]\nname = "{name}"\nrole = "scalar"\ndtype = "int32"\nvalue = "{name}"\n'


@dataclass(frozen=True)
class Problem:
    """What a kernel shall compute, and the launch of kernels that have no program."""

    shapes: str
    arguments: str
    reference: str
    grid: str = '"ceil_div(n, 128)"'
    block: str = "128"


def write(folder: Path, problem: Problem, more: str = "", launch: str = "") -> Path:
    """Writes the specification and the reference into a folder."""
    (folder / "reference.py").write_text(f"import numpy as np\n\n{problem.reference}\n")
    spec = folder / "spec.toml"
    launch = launch or f"grid = {problem.grid}\nblock = {problem.block}"
    parts = [f"shapes = {problem.shapes}", problem.arguments, "[launch]", launch]
    spec.write_text("\n".join([*parts, "[reference]", 'file = "reference.py"', more, ""]))
    return spec


def judged(
    folder: Path,
    problem: Problem,
    candidate: str,
    suffix: str,
    more: str = "",
    launch: str = "",
    seed: int | None = None,
) -> Verdict:
    """The verdict on a candidate of that text, with values of a seed, or any."""
    file = folder / f"candidate{suffix}"
    file.write_text(candidate)
    return judge(read(write(folder, problem, more, launch)), file, seed)


LINES = "[{ n = 1 }, { n = 300 }, { n = 257 }]"

SCALE = Problem(
    LINES,
    array("x", "in", '"n"')
    + array("y", "out", '"n"')
    + '[[argument]]\nname = "a"\nrole = "scalar"\ndtype = "float32"\n'
    + size("n"),
    "def reference(x, a):\n    return a * x",
)

SUM = Problem(
    LINES, array("x", "in", '"n"') + array("y", "out", "1") + size("n"), "def reference(x):\n    return x.sum()"
)

MEAN = Problem(
    "[{ n = 999 }, { n = 2048 }]",
    array("x", "in", '"n"', more="values = { kind = 'normal', scale = 1 }")
    + array("y", "out", "1", more="atol = 0.2")
    + size("n"),
    "def reference(x):\n    return x.mean()",
)

SQUARE = "[{ m = 3, n = 1 }, { m = 1, n = 64 }, { m = 37, n = 45 }]"

SOFTMAX = Problem(
    SQUARE,
    array("x", "in", '["m", "n"]', more='values = { kind = "normal", scale = 10, offset = [-200, 200] }')
    + array("y", "out", '["m", "n"]')
    + size("n"),
    "def reference(x):\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
    '"m"',
    "32",
)

TRANSPOSE = Problem(
    SQUARE,
    array("x", "in", '["m", "n"]') + array("y", "out", '["n", "m"]') + size("m") + size("n"),
    "def reference(x):\n    return x.T",
    '["ceil_div(n, 16)", "ceil_div(m, 16)"]',
    "[16, 16]",
)

MATMUL = Problem(
    "[{ m = 1, n = 3, k = 1 }, { m = 17, n = 33, k = 21 }]",
    array("a", "in", '["m", "k"]') + array("b", "in", '["k", "n"]') + array("c", "out", '["m", "n"]')
    + size("m") + size("n") + size("k"),
    "def reference(a, b):\n    return a @ b",
    '["ceil_div(n, 16)", "ceil_div(m, 16)"]',
    "[16, 16]",
)  # fmt: skip

SCAN = Problem(
    "[{ n = 1 }, { n = 255 }, { n = 256 }]",
    array("x", "inout", '"n"', "int32", 'values = { kind = "integers", low = -9, high = 10 }') + size("n"),
    "def reference(x):\n    return np.cumsum(x)",
    "1",
    "256",
)

HISTOGRAM = Problem(
    "[{ n = 5000, bins = 7 }, { n = 333, bins = 64 }]",
    array("x", "in", '"n"', "int32", 'values = { kind = "integers", low = 0, high = "bins" }')
    + array("y", "out", '"bins"', "int32")
    + size("n")
    + size("bins"),
    "def reference(x, bins):\n    return np.bincount(x, minlength=bins)",
    '"ceil_div(bins, 128)"',
)

HALF = Problem(
    LINES,
    array("x", "in", '"n"', "float16")
    + array("z", "in", '"n"', "float16")
    + array("y", "out", '"n"', "float16")
    + size("n"),
    "def reference(x, z):\n    return x + z",
)
