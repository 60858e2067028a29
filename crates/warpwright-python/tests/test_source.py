"""CUDA C++: names that its source has, places that have no line, and errors of the compiler, with what they advise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpwright
from warpwright import WarpwrightError, out, run

FILE = Path(__file__)

AXPY = """
__global__ void axpy(const float *x, float *y, float a, int n) {
    int i = threadIdx.x;
    if (i <= n) y[i] = a * x[i];
}"""


def both(*args: Any) -> list[Any]:
    """The arguments in order, and by name."""
    return [list(args), dict(zip(("x", "y", "a", "n"), args))]


@pytest.mark.parametrize("args", both(np.ones(8, np.float32), np.zeros(8, np.float32), 1.0, 8))
def test_findings_and_counters_have_the_names_of_the_source(args: Any) -> None:
    _, report = run(AXPY, 1, 16, args, counters=True)
    assert [finding.allocation.arguments for finding in report.findings if finding.allocation] == [("x",), ("y",)]
    assert {traffic["parameter"] for traffic in report.counters["arguments"]} == {"x", "y"}
    _, report = run(AXPY, 1, 4, args, counters=True)
    assert report.is_clean and {traffic["parameter"] for traffic in report.counters["arguments"]} == {"x", "y"}


@pytest.mark.parametrize("args", both(np.ones(8, np.float32), out(8), 1.0, 3))
def test_outputs_have_the_names_of_the_source_and_the_place_of_the_call(args: Any) -> None:
    _, report = run(AXPY, 1, 8, args, check="initcheck")  # the call
    (finding,) = report.findings
    assert finding.message.split()[:3] == ["the", "output", "`y`"]
    (line,) = [number for number, text in enumerate(FILE.read_text().split("\n"), 1) if text.endswith("# the call")]
    # The place is below the title, and each line of the margin has something beside or around it.
    shown = report.text.splitlines()
    assert re.fullmatch(rf" *--> .*{FILE.name}:{line}", shown[2]) and shown[4].startswith(f"{line} |     _, report")


def test_a_call_in_no_file_has_no_margin() -> None:
    said: dict[str, Any] = {"run": run, "args": [np.ones(8, np.float32), out(8), 1.0, 3], "source": AXPY}
    exec("_, report = run(source, 1, 8, args, check='initcheck')", {"__name__": "nowhere"}, said)
    assert all(line.strip() != "|" for line in said["report"].text.splitlines())


@pytest.mark.parametrize("args", both(np.ones(8, np.float32), np.zeros(8, np.float32), 1.0, 2.5))
def test_refused_arguments_have_the_names_of_the_source(args: Any) -> None:
    with pytest.raises(WarpwrightError, match=r"^(?:n \(u32\)|argument 3 \(`n`, u32\)): 2.5 is a float"):
        run(AXPY, 1, 1, args)


def refused(source: str, **options: Any) -> str:
    """What the compiler says of a source, and we of that."""
    with pytest.raises(warpwright.CompileError) as caught:
        run(source, 1, 1, [np.zeros(4, np.float32)], **options)
    return str(caught.value)


KERNEL = 'extern "C" __global__ void k(float *x) {{ {}; }}'


@pytest.mark.parametrize("header", ["cmath", "math.h", "cstdint", "stdint.h", "limits", "tuple", "type_traits"])
def test_headers_of_the_host_have_others_in_their_place(header: str) -> None:
    kernel = KERNEL.format("x[0] = 1")
    (advised,) = re.findall("`#include <(cuda/std/.*)>`", refused(f"#include <{header}>\n{kernel}"))
    _, report = run(f"#include <{advised}>\n{kernel}", 1, 1, [np.zeros(4, np.float32)])
    assert report.is_clean


@pytest.mark.parametrize("header", ["cstdio", "stdio.h", "cassert", "assert.h"])
def test_what_needs_no_header(header: str) -> None:
    kernel = KERNEL.format('assert(x[0] == 0); printf("%d", 5)')
    advice = refused(f"#include <{header}>\n{kernel}").splitlines()[-1]
    # It is not that something must be installed.
    assert advice.startswith(f"`{header}` belongs to the host") and "pip" not in advice
    _, report = run(kernel, 1, 1, [np.zeros(4, np.float32)])
    assert report.ok and report.output == "5"


@pytest.mark.parametrize("name", ["INFINITY", "NAN", "FLT_MAX", "INT_MAX", "uint8_t(1)"])
def test_names_of_headers_that_are_not_included(name: str) -> None:
    kernel = KERNEL.format(f"x[0] = {name}")
    (advised,) = re.findall("`#include <(.*)>`", refused(kernel))
    _, report = run(f"#include <{advised}>\n{kernel}", 1, 1, [np.zeros(4, np.float32)])
    assert report.is_clean


def test_a_target_that_the_compiler_does_not_know() -> None:
    kernel = KERNEL.format("x[0] = 1")
    known = re.findall(r"sm_(\d+)[,:]", refused(kernel, sm=50).rpartition("but for")[2])
    assert "50" not in known
    _, report = run(kernel, 1, 1, [np.zeros(4, np.float32)], sm=next(one for one in known if int(one) >= 80))
    assert report.is_clean
