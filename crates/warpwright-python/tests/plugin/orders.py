"""Tests that depend on the order of blocks, of parameters, and none."""

import unittest
from pathlib import Path

import numpy as np
import pytest
import warpwright

KERNELS = Path(__file__).with_name("kernels.cu")


def flag():
    # One host thread: what comes first is the order's to say. The plugin sets this anew for each test.
    warpwright.settings.workers = 1
    x = np.zeros(64, np.int32)
    warpwright.run(KERNELS, 64, 1, [x], kernel="depends_on_order")
    return x[1]


def test_flag():
    assert flag() == 1


@pytest.mark.parametrize("threads", [1, 64])
def test_right(threads, gpu_order):
    assert warpwright.settings.order == gpu_order
    warpwright.run(KERNELS, 1, threads, [np.zeros(64, np.int32)], kernel="right")


def test_nothing():
    pass


class Case(unittest.TestCase):
    def test_flag(self):
        self.assertEqual(flag(), 1)
