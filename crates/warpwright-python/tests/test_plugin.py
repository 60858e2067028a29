"""The plugin for pytest: suites of `plugin/`, each test of which launches what it is called, and what comes of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import warpwright
from warpwright._names import python_name
from warpwright.pytest import _UNUSED

SUITES = Path(__file__).parent / "plugin"

# An outcome: that of the test, and the errors that were found, each with the file and the line that it names.
Outcome = tuple[str, list[str]]


def is_there(package: str) -> bool:
    """Whether a package is installed; a folder of that name is none."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def bugs() -> dict[str, list[int]]:
    """The lines of the kernels' marks."""
    kernel, found = "", {}
    for number, line in enumerate((SUITES / "kernels.cu").read_text().splitlines(), 1):
        if match := re.match(r"__global__ void (\w+)", line):
            kernel = match[1]
        if line.endswith("// bug"):
            found.setdefault(kernel, []).append(number)
    return found


BUGS = bugs()


def play(
    folder: Path, suite: str, *options: str, before: Sequence[str] = (), ends: Sequence[int] = (0, 1)
) -> dict[str, list[Outcome]]:
    """Runs a suite, by a program that is `before` pytest. The outcomes by the names of tests; a name may come again."""
    results = folder / "results.xml"
    command = [*before, sys.executable, "-m", "pytest", "-p", "warpwright", "-p", "no:cacheprovider"]
    command += [f"--junitxml={results}", str(SUITES / suite), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in ends, ended.stdout + ended.stderr
    outcomes: dict[str, list[Outcome]] = {}
    for case in ElementTree.parse(results).iter("testcase"):
        parts = [part.tag for part in case if part.tag not in ("properties", "system-out", "system-err")]
        found = [value.get("value", "") for value in case.iter("property")]
        outcomes.setdefault(case.get("name", ""), []).append((parts[0] if parts else "passed", list(map(short, found))))
    return outcomes


def short(found: str) -> str:
    """An error without its kernel, and without the folder of its file."""
    return re.sub(r" in kernel .*", "", found).replace(f"{SUITES}/", "")


def fails(what: str, kernel: str, line: int = 0) -> list[Outcome]:
    """The test fails for one error, at the marked line of that number of a kernel."""
    return [("failure", [f"{what} at kernels.cu:{BUGS[kernel][line]}"])]


PASSED: list[Outcome] = [("passed", [])]
BEYOND = fails("memcheck out-of-bounds", "out_of_bounds")[0][1]


def test_each_kind_of_failure_fails_its_test(tmp_path: Path) -> None:
    assert play(tmp_path, "suite.py", "--gpu-check=all") == {
        "test_right": PASSED,
        "test_out_of_bounds": fails("memcheck out-of-bounds", "out_of_bounds"),
        "test_misaligned": fails("memcheck misaligned", "misaligned"),
        "test_null_pointer": fails("memcheck null", "null_pointer"),
        "test_warp_race": fails("racecheck race", "warp_race"),
        "test_missing_barrier": fails("racecheck race", "missing_barrier"),
        "test_grid_race": fails("racecheck race", "grid_race"),
        "test_uninitialised": fails("initcheck uninitialized", "uninitialised"),
        "test_divergent_barrier": PASSED,
        "test_divergent_barrier_by_the_letter": fails("synccheck exited-lanes", "divergent_barrier"),
        "test_deadlock": fails("trap deadlock", "deadlock"),
        "test_budget": fails("trap budget", "budget"),
        "test_endless": [("skipped", [])],
        "test_trap": fails("trap instruction", "trap"),
        "test_assertion": fails("trap assertion", "assertion"),
        "test_unwritten": [("failure", ["initcheck unwritten-output"])],
        "test_that_fails_by_itself": [("failure", BEYOND)],
        "test_in_setup": [("error", BEYOND)],
        "test_in_teardown": [("error", BEYOND)],
        "test_expected": PASSED,
        "test_expected_by_check": PASSED,
        "test_expected_in_vain": [("failure", [])],
        "test_other_than_expected": [("failure", BEYOND)],
        "test_known_to_fail": [("skipped", BEYOND)],
        "test_that_skips_itself": [("failure", BEYOND)],
        "test_expected_that_skips_itself": [("skipped", [])],
        "test_that_gives_up": [("failure", BEYOND)],
        "test_known_to_fail_otherwise": [("failure", BEYOND)],
        "test_known_to_fail_by_itself": [("skipped", BEYOND)],
        "test_of_a_fixture_that_skips": [("error", BEYOND)],
        "test_case_that_skips_itself": [("failure", BEYOND)],
    }


SEVERAL = """
import numpy as np
from warpwright import run

KERNEL = 'extern "C" __global__ void k(int *x, int at) {{ x[at] = 1; }}'
OTHER = 'extern "C" __global__ void k(int *x, int at) {{ x[at] = 2; }}'

def test_launches():
    for kernel, at in {launches}:
        run(kernel, 1, 1, [np.zeros(4, np.int32), at])
"""


def test_equal_errors_of_several_launches_are_told_once(tmp_path: Path) -> None:
    test = tmp_path / "test_several.py"
    for launches, told in (
        ("[(KERNEL, 4), (KERNEL, 3), (KERNEL, 4), (KERNEL, 5)]", 1),
        ("[(KERNEL, 4), (OTHER, 4), (KERNEL, 4)]", 2),
    ):
        test.write_text(SEVERAL.format(launches=launches))
        lines, status = say(str(test))
        assert status == 1 and sum(line.startswith("error[memcheck]") for line in lines) == told
        assert len(play(tmp_path, str(test))["test_launches"][0][1]) == told


def test_checks_are_chosen(tmp_path: Path) -> None:
    names = ["out_of_bounds", "missing_barrier", "uninitialised", "divergent_barrier"]
    chosen = ["-k", " or ".join(f"test_{name}" for name in names), "-W", "error::warpwright.pytest.GpuWarning"]
    for check, found in [
        ("memcheck", {"out_of_bounds"}),
        ("racecheck", {"out_of_bounds", "missing_barrier"}),
        ("initcheck,racecheck", {"out_of_bounds", "missing_barrier", "uninitialised"}),
        # A warning, which fails where warnings are errors.
        ("synccheck", {"out_of_bounds", "divergent_barrier"}),
    ]:
        outcomes = play(tmp_path, "suite.py", f"--gpu-check={check}", *chosen)
        failed = {name for name in names if outcomes[f"test_{name}"][0][0] != "passed"}
        assert failed == found, check


def test_a_kernel_that_does_not_end_fails_its_test(tmp_path: Path) -> None:
    limit = ("--gpu-max-instructions=100000", "-k", "endless")
    assert play(tmp_path, "suite.py", *limit) == {"test_endless": fails("trap budget", "budget")}
    assert play(tmp_path, "driver.py", *limit) == {"test_endless": [("failure", ["trap budget at line 31 of the PTX"])]}


def test_orders_are_parameters(tmp_path: Path) -> None:
    wrong: list[Outcome] = [("failure", [])]
    skipped: list[Outcome] = [("skipped", [])]
    assert play(tmp_path, "orders.py", "--gpu-orders=issue,reverse,random:1") == {
        "test_flag[issue]": PASSED,
        "test_flag[reverse]": wrong,
        "test_flag[random:1]": wrong,
        **{f"test_right[{n}-{order}]": PASSED for n in (1, 64) for order in ("issue", "reverse", "random:1")},
        "test_nothing[issue]": PASSED,
        "test_nothing[reverse]": skipped,
        "test_nothing[random:1]": skipped,
        # pytest's results call these by their methods alone.
        "test_flag": PASSED + 2 * wrong,
    }
    assert play(tmp_path, "orders.py", "-k", "flag") == {"test_flag": 2 * PASSED}
    assert play(tmp_path, "orders.py::test_flag[reverse]", "--gpu-orders=issue,reverse") == {
        "test_flag[reverse]": wrong
    }


OF_DRIVER = {
    "test_right": PASSED,
    "test_out_of_bounds": [("failure", ["memcheck out-of-bounds at line 13 of the PTX"])],
    "test_out_of_bounds_again": [("failure", ["memcheck out-of-bounds at line 13 of the PTX"])],
    "test_behind_an_error": PASSED,
    "test_use_after_free": [("failure", ["memcheck use-after-free at line 13 of the PTX"])],
    "test_uninitialised": [("failure", ["initcheck uninitialized at line 21 of the PTX"])],
    "test_that_fails_by_itself": [("failure", ["memcheck out-of-bounds at line 13 of the PTX"])],
    "test_endless": [("skipped", [])],
    "test_expected": PASSED,
}


def test_the_driver_works_in_the_process_of_the_tests(tmp_path: Path) -> None:
    assert play(tmp_path, "driver.py", "--gpu-check=all") == OF_DRIVER


@pytest.mark.skipif(not is_there("xdist"), reason="pytest-xdist is not installed")
def test_tests_run_in_several_processes(tmp_path: Path) -> None:
    assert play(tmp_path, "driver.py", "--gpu-check=all", "-n2") == OF_DRIVER


def lines_of(suite: str, *texts: str) -> list[str]:
    """Where these lines are."""
    lines = (SUITES / suite).read_text().splitlines()
    return [f"{suite}:{lines.index(text) + 1}" for text in texts]


@pytest.mark.skipif(not is_there("triton"), reason="Triton is not installed")
def test_kernels_of_triton_are_checked(tmp_path: Path) -> None:
    (store,) = lines_of("with_triton.py", "    tl.store(x + i, 2 * tl.load(x + i, mask=i < n))")
    for order in ("issue", "reverse"):
        assert play(tmp_path, "with_triton.py", "--gpu-check=all", f"--gpu-orders={order}") == {
            "test_right": PASSED,
            "test_out_of_bounds": [("failure", [f"memcheck out-of-bounds at {store}"])],
            "test_expected": PASSED,
        }


@pytest.mark.torch
def test_kernels_of_triton_are_checked_on_tensors(tmp_path: Path) -> None:
    (store,) = lines_of("with_triton.py", "    tl.store(x + i, 2 * tl.load(x + i, mask=i < n))")
    assert play(tmp_path, "with_torch.py", "--gpu-check=all") == {
        "test_right[cpu]": PASSED,
        "test_right[cuda]": PASSED,
        "test_out_of_bounds": [("failure", [f"memcheck out-of-bounds at {store}"])],
    }


CONFTEST = """
import triton
from numba import cuda
"""

OF_ITS_OWN = """
import numpy as np
import pytest
import warpwright.triton
import triton
import triton.language as tl
from numba import cuda

warpwright.triton.enable(check="memcheck")
pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU")


@triton.jit
def last(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + 0 * i, tl.load(x + i))


def test_race():
    warpwright.settings.check = "none"
    last[(1,)](np.arange(128, dtype=np.float32), np.zeros(1, np.float32), BLOCK=128)


def test_race_behind_one_that_turns_checks_off():
    last[(1,)](np.arange(128, dtype=np.float32), np.zeros(1, np.float32), BLOCK=128)
"""


@pytest.mark.skipif(not is_there("triton") or not is_there("numba_cuda"), reason="Triton or numba-cuda is missing")
def test_what_tests_import_and_set_does_not_end_the_checks(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_own.py").write_text(OF_ITS_OWN)
    outcomes = play(tmp_path, str(tmp_path / "test_own.py"), "--gpu-check=all")
    assert [outcomes[name][0][0] for name in ("test_race", "test_race_behind_one_that_turns_checks_off")] == [
        "passed",
        "failure",
    ]


@pytest.mark.skipif(not is_there("numba_cuda"), reason="numba-cuda is not installed")
def test_kernels_of_numba_are_checked(tmp_path: Path) -> None:
    double, store = lines_of("with_numba.py", "    y[i] = 2 * x[i]", "    shared[i] = x[i]")
    for order in ("issue", "reverse"):
        assert play(tmp_path, "with_numba.py", "--gpu-check=all", f"--gpu-orders={order}") == {
            "test_right": PASSED,
            "test_out_of_bounds": [("failure", [f"memcheck out-of-bounds at {double}"])],
            "test_uninitialised": [("failure", [f"initcheck uninitialized at {double}"])],
            "test_missing_barrier": [("failure", [f"racecheck race at {store}"])],
            "test_order": PASSED,
        }


@pytest.mark.skipif(not is_there("numba_cuda"), reason="numba-cuda is not installed")
def test_kernels_of_numba_are_called_as_in_python(tmp_path: Path) -> None:
    play(tmp_path, "with_numba.py", "-k", "out_of_bounds", f"--gpu-sarif={tmp_path / 'found.sarif'}")
    (found,) = [value.get("value", "") for value in ElementTree.parse(tmp_path / "results.xml").iter("property")]
    assert found.split(" in kernel ")[1] == "with_numba.double"
    # For programs it is the symbol.
    (run,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    (place,) = run["results"][0]["locations"][0]["logicalLocations"]
    assert python_name(place["fullyQualifiedName"]) == "with_numba.double" != place["fullyQualifiedName"]


def test_findings_of_all_tests_are_in_one_document(tmp_path: Path) -> None:
    file = tmp_path / "found.sarif"
    for workers in ([], ["-n2"] if is_there("xdist") else []):
        names = "test_out_of_bounds or test_missing_barrier or test_in_setup"
        play(tmp_path, "suite.py", "--gpu-check=all", f"--gpu-sarif={file}", "-k", names, *workers)
        (run,) = json.loads(file.read_text())["runs"]
        found = {
            (
                result["ruleId"],
                result["locations"][0]["physicalLocation"]["region"]["startLine"],
                result["occurrenceCount"],
            )
            for result in run["results"]
        }
        beyond, race = BUGS["out_of_bounds"][0], BUGS["missing_barrier"][0]
        # What several tests have found is one result, also of several processes.
        assert len(run["results"]) == 2
        assert found == {("memcheck/out-of-bounds", beyond, 2), ("racecheck/race", race, 2)}


MARKED = """
import pytest

{mark}
def test_marked():
    pass
"""

OF_ITSELF = """
import pytest

def test_marked(request):
    request.applymarker(pytest.mark.gpu_findings({name}))
"""


@pytest.mark.parametrize("names", ["", "()", "('rcae')", "('race', 'out of bounds')", "(['race'])", "(kind='race')"])
def test_marks_that_name_no_finding_are_errors_of_collection(names: str, tmp_path: Path) -> None:
    test = tmp_path / "test_marked.py"
    test.write_text(MARKED.format(mark=f"@pytest.mark.gpu_findings{names}"))
    for workers in ([], ["-n1"] if is_there("xdist") and not names else []):
        played = play(tmp_path, str(test), *workers, ends=(1, 2))
        # A file that is not collected bears its path from wherever the root is.
        assert {name.rpartition(".")[2]: said for name, said in played.items()} == {"test_marked": [("error", [])]}
    # One that a test gives itself.
    test.write_text(OF_ITSELF.format(name=names.strip("()")))
    assert play(tmp_path, str(test)) == {"test_marked": [("failure", [])]}


def test_marks_may_name_what_there_is(tmp_path: Path) -> None:
    test = tmp_path / "test_marked.py"
    for name in ("synccheck", "unwritten-output", "trap", "deadlock", "api", "CUDA_ERROR_INVALID_VALUE", "condition"):
        test.write_text(MARKED.format(mark=f"@pytest.mark.gpu_findings({name!r})"))
        # It is not found, and the test is collected.
        assert play(tmp_path, str(test)) == {"test_marked": [("failure", [])]}


def test_under_exec_the_driver_is_the_one_that_is_there(tmp_path: Path) -> None:
    program = Path(warpwright.__file__).parent / "bin" / "warpwright"
    before = [str(program), "exec", "--on-error", "continue", "--"]
    assert play(tmp_path, "driver.py", "--gpu-check=all", before=before) == OF_DRIVER


@pytest.mark.parametrize(
    "option",
    [
        "--gpu-check=everything",
        "--gpu-check=",
        "--gpu-orders=backwards",
        "--gpu-orders=random",
        f"--gpu-orders=random:{1 << 64}",
        "--gpu-orders=issue,issue",
        "--gpu-race=lax",
        "--gpu-race=normal,strict",
        "--gpu-max-instructions=0",
        "--gpu-max-instructions=many",
        f"--gpu-max-instructions={1 << 64}",
        "--gpu-sm=eighty",
        "--gpu-sm=81",
        "--gpu-sarif=/nowhere/found.sarif",
        f"--gpu-sarif={SUITES}",
        "--gpu-sarif=/proc/found.sarif",
    ],
)
def test_wrong_options_are_errors_of_usage(option: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "warpwright", option, str(SUITES / "orders.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    first = ended.stderr.splitlines()[0]
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert first.split(":")[:2] == ["ERROR", f" {option.split('=')[0]}"]


REMOVES = """
import shutil

def test_that_removes_the_folder():
    shutil.rmtree({folder!r})
"""


def test_a_document_that_cannot_be_written_any_more_is_told(tmp_path: Path) -> None:
    folder, test = tmp_path / "results", tmp_path / "test_remove.py"
    folder.mkdir()
    test.write_text(REMOVES.format(folder=str(folder)))
    lines, status = say(str(test), f"--gpu-sarif={folder / 'found.sarif'}")
    (told,) = [line for line in lines if line.startswith("ERROR: --gpu-sarif: ")]
    assert status == pytest.ExitCode.USAGE_ERROR and str(folder) in told and lines[-1].startswith("1 passed")


def say(*options: str) -> tuple[list[str], int]:
    """The lines that pytest prints, and how it ends."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "warpwright", "-p", "no:cacheprovider", *options]
    # In continuous integration pytest's summary has each message again.
    at_desk = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=at_desk)
    return ended.stdout.splitlines(), ended.returncode


XDIST = ["-n2"] if is_there("xdist") else []


@pytest.mark.parametrize("workers", [[], XDIST] if XDIST else [[]])
@pytest.mark.parametrize(
    ("suite", "names", "is_unused"),
    [
        ("orders.py", "test_nothing", True),
        ("orders.py", "test_right", False),
        ("driver.py", "test_right", False),
        # Nothing runs, so nothing could launch.
        ("suite.py", "test_endless", False),
    ],
)
def test_runs_without_a_launch_say_so(suite: str, names: str, is_unused: bool, workers: list[str]) -> None:
    lines, status = say(str(SUITES / suite), "-k", names, *workers)
    assert status == 0 and lines.count(_UNUSED) == is_unused
