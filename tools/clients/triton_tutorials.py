"""Triton's official tutorials and its own core tests, through `warpwright.triton`, from a checkout of its repository.

    triton_tutorials.py CHECKOUT [tutorials] [tests] [NAME…]     both, or one of them; or only what has such a name

The tutorials run as they are, checked, as programs that say `device="cuda"`. What they measure is left out: a speed here
is no GPU's, and the sizes are for one. Each prints `ok NAME`, `failed NAME: why` or `left out NAME: why`.
"""

import os
import pathlib
import subprocess
import sys

from skips import read_skips

HERE = pathlib.Path(__file__).resolve().parent
TUTORIALS = ["01", "02", "03", "04", "05", "06", "08"]
SECONDS_OF_A_TUTORIAL = 3600
SECONDS_OF_THE_TESTS = 7200

# What stands before each tutorial: tables of speeds are not made.
PROGRAM = """
import runpy, sys
import triton.testing
import warpwright.triton
warpwright.triton.enable(check="all", sm=80, cuda=True)
triton.testing.Mark.run = lambda *_, **__: print("no measurements")
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def last_line(text):
    """What a program said last."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "nothing was printed")


def tutorials(checkout, names):
    """Runs the tutorials; whether all passed."""
    passed = True
    folder = checkout / "python/tutorials"
    for number in TUTORIALS:
        file = next(iter(sorted(folder.glob(f"{number}-*.py"))), None)
        if file is None:
            raise SystemExit(f"{folder} has no tutorial {number}: give a checkout of Triton")
        if names and not any(name in file.name for name in names):
            continue
        command = [sys.executable, "-c", PROGRAM, str(file)]
        try:
            ended = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_OF_A_TUTORIAL
            )
            why = "" if ended.returncode == 0 else last_line(ended.stdout)
            if why:
                print(ended.stdout, file=sys.stderr)
        except subprocess.TimeoutExpired:
            why = f"not over after {SECONDS_OF_A_TUTORIAL} s"
        print(f"failed {file.stem}: {why}" if why else f"ok {file.stem}", flush=True)
        passed &= not why
    return passed


def tests(checkout, names):
    """Runs the tests of a list; whether all passed."""
    lines = (HERE / "triton.tests").read_text().splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    folder = checkout / "python/test"
    chosen = [test for test in wanted if not names or any(name in test for name in names)]
    if not chosen:
        return True
    environment = {**os.environ, "TRITON_TESTS": "\n".join(chosen), "PYTHONPATH": os.pathsep.join(
        [str(HERE), str(folder / "unit/language"), os.environ.get("PYTHONPATH", "")])}
    files = sorted({str(folder / "unit" / test.split("::")[0]) for test in chosen})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "triton_client", "-p", "no:cacheprovider", *files]
    return subprocess.run(command, env=environment, timeout=SECONDS_OF_THE_TESTS).returncode == 0


def main(arguments):
    if not arguments:
        raise SystemExit(__doc__)
    checkout, names = pathlib.Path(arguments[0]).resolve(), set(arguments[1:])
    parts = names & {"tutorials", "tests"} or {"tutorials", "tests"}
    names -= parts
    passed = True
    if "tutorials" in parts:
        passed &= tutorials(checkout, names)
    if "tests" in parts:
        passed &= tests(checkout, names)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
