"""Specifications by which a kernel would pass that computes nothing, for one shape or for all."""

from __future__ import annotations

from pathlib import Path

import pytest
from problems import Problem, array, judged, size
from warpwright.referee.spec import SpecError

COPY = 'extern "C" __global__ void copy(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i]; }'

SMALL = 'values = { kind = "uniform", scale = [0.1, 1] }'
SOFTMAX = "def reference(x):\n    e = np.exp(x - x.max())\n    return e / e.sum()"


def one(reference: str, shapes: str, values: str = "", tolerances: str = "", dtype: str = "float32") -> Problem:
    arguments = array("x", "in", '"n"', dtype, values) + array("y", "out", '"n"', dtype, tolerances) + size("n")
    return Problem(shapes, arguments, reference, "1", "1")


def placed(shape: str, y: str) -> str:
    """A reference that is right but for one shape."""
    return f"def reference(x, n):\n    return {y} if n == {shape} else 2 * x"


UNUSABLE = {
    "a sum of many, in float16": (one(SOFTMAX, "[{ n = 1 }, { n = 7 }, { n = 4097 }]", SMALL, dtype="float16"), 4097),
    "an absolute error above all results": (
        one(placed("9", "1e-6 * x"), "[{ n = 9 }, { n = 33 }]", "values = { kind = 'normal', scale = 1, offset = 1 }"),
        9,
    ),
    "a value that is near to all results": (
        one(placed("9", "1000 + x"), "[{ n = 9 }, { n = 33 }]", SMALL, "atol = 5"),
        9,
    ),
    "NaN": (one(placed("9", "np.log(-np.abs(x) - 1)"), "[{ n = 9 }, { n = 33 }]"), 9),
    "infinity": (one(placed("9", "np.exp(np.abs(x) + 1e3)"), "[{ n = 9 }, { n = 33 }]"), 9),
    "less than any number": (one(placed("9", "-np.exp(np.abs(x) + 1e3)"), "[{ n = 9 }, { n = 33 }]"), 9),
    "overflow of the type": (one(placed("9", "1e39 + x"), "[{ n = 9 }, { n = 33 }]"), 9),
    "NaN in all shapes": (one("def reference(x):\n    return np.nan * x", "[{ n = 9 }]"), 9),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_shape_for_which_a_constant_would_pass_is_refused(name: str, tmp_path: Path) -> None:
    problem, shape = UNUSABLE[name]
    with pytest.raises(SpecError) as error:
        judged(tmp_path, problem, COPY, ".cu")
    where, rule = str(error.value).removeprefix(f"{tmp_path / 'spec.toml'}: argument[1]").split(": for ", 1)
    assert where in ("", ".atol") and rule.startswith(f"n = {shape}, ")


ONE_RUN = '[run]\nseeds = 1\norders = ["issue"]'
SUM = Problem(
    "[{ n = 33 }]",
    array("x", "in", '"n"') + array("y", "out", "1") + size("n"),
    "def reference(x):\n    return x.sum()",
    "1",
    "1",
)

USABLE = {
    "one element": (one("def reference(x):\n    return 2 * x", "[{ n = 1 }, { n = 3 }]"), ""),
    "one element of one run": (SUM, ONE_RUN),
    "one element of two runs, to within much": (
        Problem(SUM.shapes, SUM.arguments.replace('role = "out"', 'role = "out"\nrtol = 0.2'), SUM.reference, "1", "1"),
        '[run]\nseeds = 2\norders = ["issue"]',
    ),
    "1 by definition": (one(SOFTMAX, "[{ n = 1 }, { n = 7 }]", SMALL), ""),
    "0 by definition": (one("def reference(x):\n    return x - x.mean()", "[{ n = 1 }, { n = 7 }]"), ""),
    "1 but for what keeps the root from 0": (
        one(
            "def reference(x):\n    return x / np.sqrt((x * x).mean() + 1e-5)",
            "[{ n = 1 }, { n = 7 }]",
            "values = { kind = 'uniform', scale = 1, offset = 3 }",
        ),
        "",
    ),
    "what was there before": (
        Problem(
            "[{ n = 1 }, { n = 7 }]",
            array("x", "in", '"n"') + array("y", "inout", '"n"') + size("n"),
            "def reference(y):\n    return np.cumsum(y)",
            "1",
            "1",
        ),
        "",
    ),
    "one class": (
        Problem(
            "[{ n = 1 }, { n = 7 }]",
            array("x", "in", '"n"') + array("y", "out", '"n"', "int32") + size("n"),
            "def reference(x):\n    return np.argsort(x)",
            "1",
            "1",
        ),
        "",
    ),
    "some NaN": (
        one("def reference(x):\n    return np.sqrt(x)", "[{ n = 9 }]", "values = { kind = 'normal', offset = 0 }"),
        "",
    ),
}


@pytest.mark.parametrize("name", USABLE)
def test_results_that_are_alike_for_a_reason(name: str, tmp_path: Path) -> None:
    problem, more = USABLE[name]
    for seed in range(5):
        # The kernel is wrong, and a verdict says so.
        assert not judged(tmp_path, problem, COPY, ".cu", more, seed=seed).accepted
