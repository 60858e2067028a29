"""Triton's official tutorials and its own core tests, through `warpwright.triton`, from a checkout of its repository.

    triton_tutorials.py CHECKOUT [tutorials] [gluon] [tests] [NAME…]     all, or some of them; or only what has such a name

The checkout is of the version of Triton that is installed; `tabulate` and `pytest` are needed besides. The
tutorials run as they are, checked, as programs that say `device="cuda"`. What they measure is left out: a speed here is
no GPU's, and the sizes are for one. Gluon's tutorials, for Hopper and Blackwell, are tests of pytest, and their sizes are
cut. A line for each says `ok NAME` or `failed NAME: why`.
"""

import os
import pathlib
import runpy
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TUTORIALS = ["01", "02", "03", "04", "05", "06", "08"]
# Gluon's, and their targets.
GLUON = {
    "03": [90], "04": [90, 100], "05": [90], "06": [100], "07": [90, 100], "08": [90, 100], "09": [100], "10": [100],
    "11": [100], "12": [100], "14": [90, 100],
}  # fmt: skip
SECONDS_OF_A_TUTORIAL = 3600
SECONDS_OF_THE_TESTS = 7200

# True races, which do no harm: the kernel, the check, and the argument. In tutorial 05 all warps load `Count` before
# one thread exchanges it, with no barrier between the two. A warp that comes late adds what is there, which is zero.
KNOWN = {("_layer_norm_bwd_dx_fused", "racecheck", ("Lock",))}

# Attention has its test in a function that pytest calls, of sizes for a GPU. These are its arguments but for the mode.
ATTENTION = {"Z": 1, "H": 2, "N_CTX": 128, "HEAD_DIM": 64, "causal": True, "warp_specialize": False}
CASES = {"06": [{"mode": "bwd", "provider": "triton-fp16"}, {"mode": "fwd", "provider": "triton-fp8"}]}


def run_one(file):
    """Runs a tutorial in this process; what was found in its kernels that is not known."""
    import triton.testing

    import warpwright.triton

    warpwright.triton.enable(check="all", sm=80, on_findings="continue", cuda=True)
    triton.testing.Mark.run = lambda *_, **__: print("no measurements")
    unknown, launches = [], [0]

    def note(report):
        launches[0] += 1
        found = [(report.kernel, f.tool, f.allocation.arguments if f.allocation else ()) for f in report.findings]
        if not report.ok and (report.trap or not KNOWN.issuperset(found)):
            unknown.append(report.text)

    warpwright.on_report(note)
    sys.argv, sys.path[0] = [file], str(pathlib.Path(file).parent)
    names = runpy.run_path(file, run_name="__main__")
    for case in CASES.get(pathlib.Path(file).name[:2], []):
        names["test_op"](**ATTENTION, **case)
    print(f"{launches[0]} launches")
    return unknown


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
        command = [sys.executable, __file__, "--one", str(file)]
        try:
            ended = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_OF_A_TUTORIAL
            )
            why = "" if ended.returncode == 0 else last_line(ended.stdout)
            if why:
                print(ended.stdout, file=sys.stderr)
        except subprocess.TimeoutExpired:
            why = f"not over after {SECONDS_OF_A_TUTORIAL} s"
        print(f"failed {file.stem}: {why}" if why else f"ok {file.stem}: {last_line(ended.stdout)}", flush=True)
        passed &= not why
    return passed


def gluon(checkout, names):
    """Runs Gluon's tutorials; whether all passed."""
    passed = True
    folder = checkout / "python/tutorials/gluon"
    for number, targets in GLUON.items():
        file = next(iter(sorted(folder.glob(f"{number}-*.py"))), None)
        if file is None:
            raise SystemExit(f"{folder} has no tutorial {number}: give a checkout of Triton")
        if names and not any(name in file.name for name in names):
            continue
        for sm in targets:
            path = [str(HERE), os.environ.get("PYTHONPATH", "")]
            environment = {**os.environ, "GLUON_SM": str(sm), "PYTHONPATH": os.pathsep.join(path)}
            command = [sys.executable, "-m", "pytest", "-q", "-p", "gluon_client", "-p", "no:cacheprovider", "-W", "ignore"]
            command += [f"--rootdir={folder}", "--tb=short", str(file)]
            ended = subprocess.run(
                command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                timeout=SECONDS_OF_A_TUTORIAL,
            )  # fmt: skip
            result = last_line(ended.stdout)
            if ended.returncode:
                print(ended.stdout, file=sys.stderr)
            print(f"{'failed' if ended.returncode else 'ok'} gluon {file.stem} sm_{sm}: {result}", flush=True)
            passed &= not ended.returncode
    return passed


def tests(checkout, names):
    """Runs the tests of the list; whether all passed."""
    lines = (HERE / "triton.tests").read_text().splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    chosen = [test for test in wanted if not names or any(name in test for name in names)]
    if not chosen:
        return True
    folder = checkout / "python/test/unit"
    path = [str(HERE), str(folder / "language"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TRITON_TESTS": "\n".join(chosen), "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "triton_client", "-p", "no:cacheprovider", "-W", "ignore"]
    command += [f"--rootdir={folder}", f"--confcutdir={folder.parents[1]}"]
    command += sorted({str(folder / test.split("::")[0]) for test in chosen})
    return subprocess.run(command, env=environment, timeout=SECONDS_OF_THE_TESTS, cwd=folder).returncode == 0


def main(arguments):
    if not arguments:
        raise SystemExit(__doc__)
    if arguments[0] == "--one":
        unknown = run_one(arguments[1])
        for text in unknown:
            print(text)
        return int(bool(unknown))
    checkout, names = pathlib.Path(arguments[0]).resolve(), set(arguments[1:])
    parts = names & {"tutorials", "gluon", "tests"} or {"tutorials", "gluon", "tests"}
    names -= parts
    passed = True
    if "tutorials" in parts:
        passed &= tutorials(checkout, names)
    if "gluon" in parts:
        passed &= gluon(checkout, names)
    if "tests" in parts:
        passed &= tests(checkout, names)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
