"""A test for each kind of failure, by `warpwright.run`; and tests that are right."""

import unittest
from pathlib import Path

import numpy as np
import pytest
import warpwright
from warpwright import out, run

KERNELS = Path(__file__).with_name("kernels.cu")

# One host thread: what comes first is the order's to say.
warpwright.settings.workers = 1


# By default it would take hours.
needs_a_limit = pytest.mark.skipif(warpwright.settings.max_instructions > 1 << 30, reason="it does not end")


def launch(kernel, args=None, grid=1, block=32, **options):
    return run(KERNELS, grid, block, [np.zeros(64, np.int32)] if args is None else args, kernel=kernel, **options)


def test_right():
    launch("right", block=64)


def test_out_of_bounds():
    launch("out_of_bounds", block=64)


def test_misaligned():
    launch("misaligned")


def test_null_pointer():
    launch("null_pointer", [None])


def test_warp_race():
    launch("warp_race")


def test_missing_barrier():
    launch("missing_barrier", block=64)


def test_grid_race():
    launch("grid_race", grid=2, block=1)


def test_uninitialised():
    launch("uninitialised", [out(64, np.int32, partial=True), np.zeros(64, np.int32)])


def test_divergent_barrier():
    launch("divergent_barrier")


def test_divergent_barrier_by_the_letter():
    launch("divergent_barrier", check="synccheck=strict")


def test_deadlock():
    launch("deadlock", block=1)


def test_budget():
    launch("budget", block=1, max_instructions=100_000)


@needs_a_limit
def test_endless():
    launch("budget", block=1)


def test_trap():
    launch("trap")


def test_assertion():
    launch("assertion")


def test_unwritten():
    launch("unwritten", [out(32, np.int32)])


def test_that_fails_by_itself():
    launch("out_of_bounds", block=64)
    raise ValueError("its own")


@pytest.fixture
def wrong_setup():
    launch("out_of_bounds", block=64)


@pytest.fixture
def wrong_teardown():
    yield
    launch("out_of_bounds", block=64)


def test_in_setup(wrong_setup):
    pass


def test_in_teardown(wrong_teardown):
    pass


@pytest.mark.gpu_findings("out-of-bounds")
def test_expected():
    launch("out_of_bounds", block=64)


@pytest.mark.gpu_findings("memcheck")
def test_expected_by_check():
    launch("out_of_bounds", block=64)


@pytest.mark.gpu_findings("race")
def test_expected_in_vain():
    launch("right")


@pytest.mark.gpu_findings("race")
def test_other_than_expected():
    launch("out_of_bounds", block=64)
    launch("missing_barrier", block=64)


@pytest.mark.xfail(strict=True)
def test_known_to_fail():
    launch("out_of_bounds", block=64)


def test_that_skips_itself():
    launch("out_of_bounds", block=64)
    pytest.skip("there is no second device")


@pytest.mark.gpu_findings("out-of-bounds")
def test_expected_that_skips_itself():
    launch("out_of_bounds", block=64)
    pytest.skip("there is no second device")


def test_that_gives_up():
    launch("out_of_bounds", block=64)
    pytest.xfail("it is not finished")


@pytest.mark.xfail(raises=ZeroDivisionError)
def test_known_to_fail_otherwise():
    launch("out_of_bounds", block=64)
    raise ZeroDivisionError


@pytest.mark.xfail
def test_known_to_fail_by_itself():
    launch("out_of_bounds", block=64)
    raise ZeroDivisionError


@pytest.fixture
def skips():
    launch("out_of_bounds", block=64)
    pytest.skip("there is no second device")


def test_of_a_fixture_that_skips(skips):
    pass


class Case(unittest.TestCase):
    def test_case_that_skips_itself(self):
        launch("out_of_bounds", block=64)
        self.skipTest("there is no second device")
