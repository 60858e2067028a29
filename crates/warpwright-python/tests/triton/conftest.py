"""Triton's kernels run on the virtual GPU, with all checks, in every test here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def virtual() -> Iterator[None]:
    """The virtual GPU is on, and off again after the test."""
    import warpwright.triton

    warpwright.triton.enable(check="all", sm=80)
    yield
    warpwright.triton.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need PyTorch."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.torch)
