"""Specifications: what is refused, where it is, and what values and comparisons are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from problems import SCALE, SUM, Problem, array, judged, write
from warpwright.referee.compare import compare
from warpwright.referee.dtypes import DTYPES
from warpwright.referee.expressions import Expression, ExpressionError
from warpwright.referee.judge import judge
from warpwright.referee.spec import Argument, SpecError, read
from warpwright.referee.values import Values, poison
from warpwright.referee.verdict import to_json

RIGHT = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("ceil_div(n, 4) * m", 9),
        ("-(n - m) // 4", -2),
        ("min(n, m, 5) + max(n, 1)", 12),
        ("n % 4", 1),
        ("next_power_of_2(n)", 16),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert Expression.read(text, ["n", "m"]).value({"n": 9, "m": 3}) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n +",
        "k",
        "n ** n",
        "n / 2",
        "n.real",
        "(lambda: 1)()",
        "__import__('os')",
        "[n]",
        "1.5",
        "True",
        "n if n else 1",
    ]
    + ["ceil_div(n)", "min(n)", "max(n, key=n)", "n < 2", "'n'", "n" + " + n" * 100_000],
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.read(text, ["n"])


def test_expressions_without_a_value() -> None:
    for text in ("1 // (n - 3)", "n % 0", "9223372036854775807 * n"):
        with pytest.raises(ExpressionError):
            Expression.read(text, ["n"]).value({"n": 3})


WRONG = [
    ("shapes = [{ n = 1 }, { n = 300 }, { n = 257 }]", "", "shapes"),
    ("{ n = 257 }]", "{ n = 256 }]", "shapes"),
    ("{ n = 257 }]", "{ m = 257 }]", "shapes[2]"),
    ("{ n = 257 }]", "{ n = 0 }]", "shapes[2].n"),
    ("{ n = 257 }]", '{ n = "257" }]', "shapes[2].n"),
    ("[launch]", "[multiples]\nn = 2\n[launch]", "shapes[0].n"),
    ("[launch]", "[multiples]\nk = 2\n[launch]", "multiples.k"),
    ('name = "y"', 'name = "x"', "argument[1].name"),
    ('name = "y"', 'name = "1"', "argument[1].name"),
    ('role = "out"', 'role = "output"', "argument[1].role"),
    ('role = "out"', 'role = "in"', "argument"),
    ('role = "out"\n', "", "argument[1].role"),
    ('dtype = "float32"', 'dtype = "fp8"', "argument[0].dtype"),
    ('shape = "n"', 'shape = "k"', "argument[0].shape"),
    ('shape = "n"', 'shape = "n - 1"', "argument[0].shape, for shapes[0]"),
    ('shape = "n"', "shape = []", "argument[0].shape"),
    ('shape = "n"', "shape = [1.5]", "argument[0].shape"),
    ('value = "n"', 'value = "n // 0"', "argument[3].value, for shapes[0]"),
    ('value = "n"', "", "argument[3].value"),
    ('role = "in"', 'role = "in"\nvalues = "gaussian"', "argument[0].values.kind"),
    ('role = "in"', 'role = "in"\nvalues = { kind = "normal", low = 1 }', "argument[0].values.low"),
    ('role = "in"', 'role = "in"\nvalues = { kind = "normal", scale = [2, 1] }', "argument[0].values.scale"),
    ('role = "in"', 'role = "in"\nvalues = { kind = "integers" }', "argument[0].values.high"),
    ('role = "in"', 'role = "in"\nrtol = 1', "argument[0].rtol"),
    ('role = "in"', 'role = "in"\nalign = 24', "argument[0].align"),
    ('role = "out"', 'role = "out"\natol = -1', "argument[1].atol"),
    ('role = "out"', 'role = "out"\natol = inf', "argument[1].atol"),
    ('role = "out"', 'role = "out"\natol = true', "argument[1].atol"),
    ("block = 128", "block = [1, 1, 1, 1]", "launch.block"),
    ("block = 128", 'block = "n - 1"', "launch.block, for shapes[0]"),
    ("block = 128", "block = 99999", "launch.block, for shapes[0]"),
    ("block = 128", "block = [32, 33]", "launch.block, for shapes[0]"),
    ("block = 128", "block = [1, 1, 65]", "launch.block, for shapes[0]"),
    ('grid = "ceil_div(n, 128)"', 'grid = [1, "220 * n"]', "launch.grid, for shapes[1]"),
    ('dtype = "int32"\nvalue = "n"', 'dtype = "int8"\nvalue = "n"', "argument[3].value, for shapes[1]"),
    ('dtype = "int32"\nvalue = "n"', 'dtype = "bool"\nvalue = "n"', "argument[3].value, for shapes[1]"),
    ('dtype = "int32"\nvalue = "n"', 'dtype = "float16"\nvalue = "300 * n"', "argument[3].value, for shapes[1]"),
    (
        'role = "in"\nshape = "n"\ndtype = "float32"',
        'role = "in"\nshape = "n"\ndtype = "int8"\nvalues = { kind = "integers", low = -128, high = 129 }',
        "argument[0].values, for shapes[0]",
    ),
    (
        'role = "in"\nshape = "n"\ndtype = "float32"',
        'role = "in"\nshape = "n"\ndtype = "uint8"\nvalues = "permutation"',
        "argument[0].values, for shapes[1]",
    ),
    ("block = 128", "blocks = 128", "launch.block"),
    ("block = 128", "block = 128\nblocks = 128", "launch.blocks"),
    ('file = "reference.py"', 'file = "other.py"', "reference.file"),
    ('file = "reference.py"', 'file = "spec.toml"', "reference.file"),
    ('file = "reference.py"', 'file = "."', "reference.file"),
    ('file = "reference.py"', "", "reference.file"),
    ('file = "reference.py"', 'file = "reference.py"\ngrid = 1', "reference.grid"),
    ("[launch]", '[run]\norders = ["sideways"]\n[launch]', "run.orders"),
    ("[launch]", '[run]\norders = ["random:x"]\n[launch]', "run.orders"),
    ("[launch]", "[run]\norders = []\n[launch]", "run.orders"),
    ("[launch]", '[run]\ncheck = "everything"\n[launch]', "run.check"),
    ("[launch]", "[run]\nseeds = 0\n[launch]", "run.seeds"),
    ("[launch]", "[run]\nseconds = 0\n[launch]", "run.seconds"),
    ("[launch]", "[limits]\nbytes = 2\n[launch]", "limits"),
    ("[launch]", '[baseline]\nfile = "reference.py"\n[launch]', "baseline.file"),
    ("[launch]", "[lunch]\ngrid = 1\n[launch]", "lunch"),
]


@pytest.mark.parametrize(("old", "new", "key"), WRONG)
def test_what_is_wrong_with_a_specification_is_named(old: str, new: str, key: str, tmp_path: Path) -> None:
    spec = write(tmp_path, SCALE)
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        read(spec)
    assert str(error.value).startswith(f"{spec}: {key}: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("block = 128", "block = [32, 32]"),
        ("block = 128", "block = [1, 1, 64]"),
        ('dtype = "int32"\nvalue = "n"', 'dtype = "uint8"\nvalue = "n % 256"'),
        ('dtype = "int32"\nvalue = "n"', 'dtype = "int8"\nvalue = "-128"'),
        ('dtype = "int32"\nvalue = "n"', 'dtype = "uint64"\nvalue = "9223372036854775807"'),
        (
            'role = "in"\nshape = "n"\ndtype = "float32"',
            'role = "in"\nshape = "n"\ndtype = "int8"\nvalues = { kind = "integers", low = -128, high = 128 }',
        ),
    ],
)
def test_what_fits_exactly_is_right(old: str, new: str, tmp_path: Path) -> None:
    spec = write(tmp_path, SCALE)
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))
    read(spec)


def test_a_file_that_is_no_specification(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        read(tmp_path / "none.toml")
    for text in (b"shapes = [", b"\xff\xfe", b""):
        (tmp_path / "spec.toml").write_bytes(text)
        with pytest.raises(SpecError):
            read(tmp_path / "spec.toml")


CONSTANT = "def reference(x, a):\n    return 0 * x"
NEVER = Problem(SCALE.shapes, SCALE.arguments, CONSTANT)
LOOSE = Problem(SUM.shapes, SUM.arguments.replace('role = "out"', 'role = "out"\natol = 1e9'), SUM.reference)
UNCHANGED = Problem(
    SCALE.shapes,
    array("x", "in", '"n"') + array("y", "inout", '"n"'),
    "def reference(x, y):\n    return y + 1e-9 * x",
)


@pytest.mark.parametrize(
    ("problem", "candidate"),
    [
        (NEVER, RIGHT.replace("a * x", "0 * x")),
        (LOOSE, 'extern "C" __global__ void sum(const float *x, float *y, int n) { *y = 0; }'),
        (UNCHANGED, 'extern "C" __global__ void add(const float *x, float *y) { }'),
        (Problem(SCALE.shapes, SCALE.arguments, "def reference(x, a):\n    return x[1:]"), RIGHT),
        (Problem(SCALE.shapes, SCALE.arguments, "def reference(x, a):\n    return x, x"), RIGHT),
        (Problem(SCALE.shapes, SCALE.arguments, "def reference(x, a):\n    return x / none"), RIGHT),
        (Problem(SCALE.shapes, SCALE.arguments, "def reference(x, b):\n    return b * x"), RIGHT),
        (Problem(SCALE.shapes, SCALE.arguments, "def other(x, a):\n    return a * x"), RIGHT),
        (Problem(SCALE.shapes, SCALE.arguments, "import none"), RIGHT),
    ],
)
def test_references_and_tolerances_that_say_nothing(problem: Problem, candidate: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        judged(tmp_path, problem, candidate, ".cu")


def test_a_kernel_as_the_reference_and_limits_against_it(tmp_path: Path) -> None:
    (tmp_path / "reference.cu").write_text(RIGHT)
    spec = write(tmp_path, SCALE, "[limits]\ninstructions = 1.5\nbytes = 1.5")
    named = 'file = "reference.cu"\ngrid = "ceil_div(n, 64)"\nblock = 64'
    spec.write_text(spec.read_text().replace('file = "reference.py"', named))
    wasteful = RIGHT.replace("y[i] = a * x[i]", "for (int k = 0; k < 4; k++) ((volatile float *)y)[i] = a * x[i]")
    for candidate, reasons in ((RIGHT, set()), (RIGHT.replace("a *", "1 +"), {"wrong-values"}), (wasteful, {"bytes"})):
        (tmp_path / "candidate.cu").write_text(candidate)
        verdict = judge(read(spec), tmp_path / "candidate.cu")
        assert {reason.kind for reason in verdict.reasons} - {"instructions"} == reasons
        assert all(cost.baseline_instructions and cost.baseline_bytes for cost in verdict.costs)
    # A reference that is wrong itself.
    (tmp_path / "reference.cu").write_text(RIGHT.replace("if (i < n)", ""))
    with pytest.raises(SpecError):
        judge(read(spec), tmp_path / "candidate.cu")


TYPES = [
    ("float32", "float", True),
    ("float32", "int", False),
    ("float32", "double", False),
    ("int32", "int", True),
    ("int32", "unsigned", True),
    ("int32", "float", False),
    ("int32", "long long", False),
    ("int32", "short", False),
    ("int32", "struct S", True),
    ("int64", "long long", True),
    ("int64", "double", False),
    ("float64", "double", True),
    ("float64", "long long", False),
    ("uint8", "unsigned char", True),
    ("bool", "bool", True),
    ("bool", "int", False),
    ("int16", "short", True),
    ("float16", "__half", True),
    ("float16", "short", False),
]


@pytest.mark.parametrize(("dtype", "parameter", "is_right"), TYPES)
def test_parameters_are_of_the_types_of_arguments(dtype: str, parameter: str, is_right: bool, tmp_path: Path) -> None:
    scalar = f'[[argument]]\nname = "a"\nrole = "scalar"\ndtype = "{dtype}"\nvalue = "n % 2"\n'
    arguments = array("x", "in", '"n"') + array("y", "out", '"n"') + scalar
    problem = Problem("[{ n = 1 }, { n = 33 }]", arguments, "def reference(x):\n    return x", "1", '"n"')
    candidate = (
        f"{'#include <cuda_fp16.h>' if parameter == '__half' else 'struct S { int i; };'}\n"
        f'extern "C" __global__ void copy(const float *x, float *y, {parameter} a) '
        "{ y[threadIdx.x] = x[threadIdx.x]; }"
    )
    verdict = judged(tmp_path, problem, candidate, ".cu", '[run]\nseeds = 1\norders = ["issue"]')
    assert [reason.kind for reason in verdict.reasons] == ([] if is_right else ["refused"])


def test_arrays_are_pointers(tmp_path: Path) -> None:
    problem = Problem(
        "[{ n = 3 }]",
        array("x", "in", '"n"') + array("y", "out", '"n"'),
        "def reference(x):\n    return x",
        "1",
        '"n"',
    )
    for first in ("float x", "int x", "double x"):
        candidate = f'extern "C" __global__ void copy({first}, float *y) {{ y[threadIdx.x] = x; }}'
        verdict = judged(tmp_path, problem, candidate, ".cu")
        assert [reason.kind for reason in verdict.reasons] == ["refused"]


# Odd launches read much, even ones compute much.
TURNS = """
__device__ unsigned launches;
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    int i = threadIdx.x;
    bool odd = atomicAdd(&launches, 0u) & 1;
    if (odd) for (int k = 0; k < 30; k++) { if (i < n) ((volatile float *)y)[i] = 0; }
    else for (volatile int k = 0; k < 600; k++) { }
    if (i < n) y[i] = a * x[i];
    __syncthreads();
    if (i == 0) atomicAdd(&launches, 1u);
}
"""


@pytest.mark.parametrize("limits", ["instructions = 8\nbytes = 8", "instructions = 8", "bytes = 8"])
def test_one_run_must_keep_all_limits(limits: str, tmp_path: Path) -> None:
    (tmp_path / "base.cu").write_text(RIGHT)
    (tmp_path / "candidate.cu").write_text(TURNS)
    problem = Problem("[{ n = 255 }]", SCALE.arguments, SCALE.reference, "1", "256")
    baseline = '[baseline]\nfile = "base.cu"\ngrid = 1\nblock = 256\n'
    verdict = judge(read(write(tmp_path, problem, f"{baseline}[limits]\n{limits}")), tmp_path / "candidate.cu")
    (cost,) = verdict.costs
    assert cost.baseline_instructions and cost.baseline_bytes
    many = cost.instructions > 8 * cost.baseline_instructions, cost.bytes > 8 * cost.baseline_bytes
    # Either limit is kept by every other run.
    assert verdict.accepted == ("\n" not in limits)
    assert many.count(True) == 1 and {reason.kind for reason in verdict.reasons} <= {"instructions", "bytes"}


def test_a_seed_repeats_a_verdict(tmp_path: Path) -> None:
    wrong = RIGHT.replace("a * x[i]", "x[i]")
    first = json.loads(to_json(judged(tmp_path, SCALE, wrong, ".cu")))
    again = json.loads(to_json(judged(tmp_path, SCALE, wrong, ".cu", seed=first["seed"])))
    other = json.loads(to_json(judged(tmp_path, SCALE, wrong, ".cu")))
    assert first == again and first["reasons"][0]["got"] != other["reasons"][0]["got"]


def test_the_program_and_its_exit_status(tmp_path: Path) -> None:
    spec = write(tmp_path, SCALE)
    (tmp_path / "right.cu").write_text(RIGHT)
    (tmp_path / "wrong.cu").write_text(RIGHT.replace("a * x[i]", "x[i] / 0"))
    cases = [
        ("right.cu", [], 0),
        ("wrong.cu", [], 1),
        ("none.cu", [], 2),
        ("spec.toml", [], 2),
        ("right.cu", ["--seed=-1"], 2),
    ]
    for candidate, more, status in cases:
        asked = [str(spec), str(tmp_path / candidate), "--json", str(tmp_path / "verdict.json"), *more]
        result = subprocess.run([sys.executable, "-m", "warpwright.referee", *asked], capture_output=True, text=True)
        assert result.returncode == status, result.stderr
        if status == 2:
            assert not result.stdout and len(result.stderr.splitlines()) == 1
        else:
            verdict = json.loads((tmp_path / "verdict.json").read_text())
            assert verdict["accepted"] == (status == 0) == (not verdict["reasons"])


def argument(dtype: str, rtol: float = 0.0, atol: float = 0.0) -> Argument:
    return Argument("y", "out", DTYPES[dtype], (), None, None, rtol, atol, 256)


@pytest.mark.parametrize(
    ("got", "expected", "is_right"),
    [
        (1.0, 1.0, True),
        (1.1, 1.0, True),
        (1.2, 1.0, False),
        (-1.0, 1.0, False),
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, 1e30, False),
        (1e30, np.inf, False),
    ],
)
def test_when_a_value_is_right(got: float, expected: float, is_right: bool) -> None:
    stored = np.array([0.0, got], np.float32)
    found = compare(argument("float32", rtol=0.05, atol=0.06), stored, np.array([0.0, expected]))
    assert (found is None) == is_right
    assert found is None or (found.index == (1,) and found.wrong == 1)


def test_integers_are_exact_unless_an_error_is_allowed() -> None:
    large = np.array([2**53 + 1], np.int64)
    assert compare(argument("int64"), large, large) is None
    assert compare(argument("int64"), large, large - 1) is not None
    assert compare(argument("int64", atol=1), large, large - 1) is None


@pytest.mark.parametrize("name", DTYPES)
def test_stored_elements_have_their_values(name: str) -> None:
    dtype, random = DTYPES[name], np.random.default_rng(5)
    stored = poison(dtype, (4096,), random)
    again = dtype.encode(dtype.decode(stored))
    if dtype.is_float:
        number = ~np.isnan(dtype.decode(stored))
        assert (again[number] == stored[number]).all() and np.isnan(dtype.decode(again[~number])).all()
        assert np.isnan(dtype.decode(dtype.encode(np.array([np.nan])))).all()
    else:
        assert (again == stored).all()


def test_values_are_never_centred() -> None:
    """A kernel that takes the mean for 0, or for that of another run, is wrong."""
    for kind in ("normal", "uniform"):
        means, scales = [], []
        for seed in range(64):
            drawn = Values(kind).draw(DTYPES["float64"], (4096,), {}, np.random.default_rng(seed))
            means.append(drawn.mean())
            scales.append(drawn.std())
        assert min(np.abs(means)) > 0.2 and min(means) < 0 < max(means) and max(scales) > 2 * min(scales)
