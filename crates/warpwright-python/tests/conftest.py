"""What all tests share."""

from __future__ import annotations

import os
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # Triton keeps compiled kernels by their text, with the files' names of the first that compiled them.
    folder = tempfile.TemporaryDirectory(prefix="warpwright-triton-")
    config.add_cleanup(folder.cleanup)
    os.environ["TRITON_CACHE_DIR"] = folder.name
