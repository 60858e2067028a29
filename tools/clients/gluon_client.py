"""A plugin for pytest, for Triton's Gluon tutorials on a virtual GPU: every launch is checked, and the sizes are smaller.

`GLUON_SM` is the target. Results are compared as the tutorials do; sizes for a GPU are cut, since what a kernel does at its
masks and between its buffers does not depend on how often it does it.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

# The largest sizes of parameters with these names.
LARGEST = {"M": 256, "N": 256, "K": 512, "xnumel": 400, "ynumel": 300, "B": 2, "H": 16, "W": 16}


def pytest_configure() -> None:
    import warpwright.triton

    warpwright.triton.enable(check="all", sm=int(os.environ["GLUON_SM"]), cuda=True)
    # A library of NVIDIA's for comparison, which asks for a device of its own.
    from triton._C.libtriton import nvidia

    nvidia.cublas.CublasLt = lambda _: None


def smaller(names: str, values: Any) -> list[Any]:
    """The values of parameters, none of them too large, each once."""
    limits = [LARGEST.get(name.strip()) for name in names.split(",")]

    def cut(value: Any, limit: int | None) -> Any:
        return min(value, limit) if limit and isinstance(value, int) else value

    def one(value: Any) -> Any:
        return tuple(map(cut, value, limits)) if isinstance(value, tuple) else cut(value, limits[0])

    kept: list[Any] = []
    for value in map(one, values):
        if not any(value is other or value == other for other in kept):
            kept.append(value)
    return kept


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = metafunc.definition.own_markers
    for at, mark in enumerate(marks):
        names = mark.args[0] if mark.name == "parametrize" else ""
        if isinstance(names, str) and any(name.strip() in LARGEST for name in names.split(",")):
            marks[at] = pytest.mark.parametrize(names, smaller(names, mark.args[1]), **mark.kwargs).mark
