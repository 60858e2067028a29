"""Runs the tests of others that pytest runs, file by file, and prints `ok TEST`, `failed TEST: why`, `left out TEST: why`.

    run_tests.py numba [quick]         the tests that the wheel of numba-cuda carries
    run_tests.py numba plugin [quick]  the same with the plugin for pytest and all checks, not under `warpwright exec`
    run_tests.py tinygrad CHECKOUT     forward passes of tinygrad's operators, from a checkout of its repository

Each file is a process of its own, and has its time: what hangs or ends a process is a failure of the test that it was.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from skips import read_skips

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_OF_A_TEST = 900
SECONDS_OF_A_FILE = 7200

# Files of numba-cuda that between them use most of the driver, in a quarter of a minute.
QUICK = """
cudadrv/test_context_stack.py cudadrv/test_cuda_array_slicing.py cudadrv/test_cuda_memory.py
cudadrv/test_cuda_ndarray.py cudadrv/test_events.py cudadrv/test_linker.py
cudadrv/test_nvjitlink.py cudadrv/test_streams.py
cudapy/test_array_args.py cudapy/test_constmem.py cudapy/test_localmem.py cudapy/test_sm.py cudapy/test_sync.py
cudapy/test_warp_ops.py cudapy/test_cooperative_groups.py
""".split()
# Tests of numba-cuda that need no GPU, and those of a simulator, are no tests of a driver.
FOLDERS = ["cudadrv", "cudapy", "doc_examples", "nrt"]


def numba(quick):
    found = importlib.util.find_spec("numba_cuda")
    root = pathlib.Path(found.origin).parent / "numba/cuda/tests"
    if quick:
        return [[root / name for name in QUICK]], {}, HERE / "numba.skips"
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("test_*.py"))]
    return [[file] for file in files], {}, HERE / "numba.skips"


def tinygrad(checkout):
    checkout = pathlib.Path(checkout).resolve()
    places = [checkout / "test/backend/test_ops.py", checkout / "test/test_ops.py"]
    file = next((place for place in places if place.exists()), None)
    if file is None:
        raise SystemExit(f"{checkout} holds no test_ops.py: give a checkout of tinygrad")
    environment = {"DEV": "CUDA", "CUDA": "1", "FORWARD_ONLY": "1", "CACHELEVEL": "0", "PYTHONPATH": str(checkout)}
    # Some operators are computed on the host too, for which tinygrad calls clang by this name.
    names = ["clang", *(f"clang-{version}" for version in range(25, 13, -1))]
    environment["CC"] = next(filter(shutil.which, names), "clang")
    return [[file]], environment, HERE / "tinygrad.skips"


def execute(files, environment, skips, folder, entry=""):
    """Runs files, of which the list leaves tests out, or the tests of one of its entries: how pytest ended and what it
    said, what became of each test, and the entry of each test that the list leaves out."""
    results = pathlib.Path(folder, "results.jsonl")
    results.unlink(missing_ok=True)
    environment = {**os.environ, **environment, "CLIENT_RESULTS": str(results), "CLIENT_SKIPS": str(skips)}
    environment["CLIENT_ENTRY"] = entry
    paths = [str(HERE), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_client", "-p", "no:cacheprovider", "--tb=short",
               "--import-mode=importlib", f"--timeout={SECONDS_OF_A_TEST}", *map(str, files)]
    try:
        ended = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", timeout=SECONDS_OF_A_FILE)
        status, said = f"exit status {ended.returncode}", ended.stdout
    except subprocess.TimeoutExpired as expired:
        status, said = f"not at its end after {SECONDS_OF_A_FILE} s", (expired.stdout or b"").decode(errors="replace")
    outcomes, listed = {}, {}
    for line in results.read_text().splitlines() if results.exists() else []:
        test, outcome, reason = json.loads(line)
        if outcome == "listed":
            listed[test] = reason
        # A test that has failed in one of its parts has failed.
        elif outcomes.get(test, ("begun",))[0] != "failed":
            outcomes[test] = (outcome, reason)
    return status, said, outcomes, listed


def run(files, environment, skips, folder):
    """Runs files and prints what became of their tests: whether one has failed, what the list leaves out, and the files
    whose tests are known."""
    status, said, outcomes, listed = execute(files, environment, skips, folder)
    if not outcomes:
        # A file whose every test the client leaves out by itself, or has none, is none of our business.
        if "exit status 5" not in status and not re.search(r"\d+ skipped in", said):
            print(f"failed {files[0].stem}: {status}\n{said[-3000:]}", flush=True)
    for test, (outcome, reason) in outcomes.items():
        if outcome == "passed":
            print(f"ok {test}")
        elif outcome == "skipped":
            print(f"left out {test}: {' '.join(reason.split())}")
        elif outcome == "failed":
            print(f"failed {test}: {reason}")
        else:
            print(f"failed {test}: the process ended with it, {status}\n{said[-3000:]}")
    sys.stdout.flush()
    failed = any(outcome in ("failed", "begun") for outcome, _ in outcomes.values())
    return failed, listed, files if outcomes else []


def stale(files, environment, skips, folder, listed, whole):
    """The entries of the list that name no test, or tests that all pass, and which of both. Without the whole client,
    entries for files that were not run say nothing."""
    for entry in read_skips(skips):
        of_entry = [file for file in files if file.stem == entry.partition("::")[0]]
        tests = [test for test, other in listed.items() if other == entry]
        if not tests and (whole or of_entry):
            yield entry, "there is no such test"
        elif tests:
            _, _, outcomes, _ = execute(of_entry, environment, skips, folder, entry)
            if all(outcomes.get(test, ("begun",))[0] == "passed" for test in tests):
                yield entry, "it passes"


def main():
    match sys.argv[1:]:
        case ["numba", *rest] if rest in ([], ["quick"], ["plugin"], ["plugin", "quick"]):
            whole = "quick" not in rest
            parts, environment, skips = numba(quick=not whole)
            if "plugin" in rest:
                environment, skips = {"PYTEST_ADDOPTS": "-p warpwright --gpu-check=all"}, HERE / "numba.plugin.skips"
        case ["tinygrad", checkout]:
            whole = True
            parts, environment, skips = tinygrad(checkout)
        case _:
            raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        failed, listed, files = False, {}, []
        for part in parts:
            part_failed, part_listed, part_files = run(part, environment, skips, folder)
            failed |= part_failed
            listed |= part_listed
            files += part_files
        for entry, why in stale(files, environment, skips, folder, listed, whole):
            failed = True
            print(f"failed {entry}: its entry in {skips.name} is stale: {why}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
