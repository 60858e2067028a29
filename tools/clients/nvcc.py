"""Programs that nvcc, of this Python's packages, compiles with a shared runtime and the host's g++, to run under `exec`."""

import pathlib
import re
import subprocess
import sys

# The exit status of `exec` after a finding.
FOUND = 99
FAILED = re.compile(r"\bfailed\b(?! as expected| *[:=] *0)|Result = FAIL|verification error", re.IGNORECASE)


def packages():
    """The folder of this Python's packages that nvcc is in."""
    for folder in map(pathlib.Path, sys.path):
        if (folder / "nvidia/cu13/bin/nvcc").exists():
            return folder
    raise SystemExit("this Python has no package nvidia-cuda-nvcc")


def toolkit():
    return packages() / "nvidia/cu13"


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target.resolve())


def libraries(warpwright, work):
    """A folder with the libraries that programs are linked with: our driver, and NVIDIA's runtime."""
    folder = work / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    link(folder / "libcuda.so", warpwright.parent / "libwarpwright_cuda.so")
    link(folder / "libcudart.so", next((toolkit() / "lib").glob("libcudart.so.*")))
    return folder


def compile(architecture, options):
    """Calls nvcc, which leaves PTX in what it makes. An error says what it has said."""
    target = f"arch=compute_{architecture},code=compute_{architecture}"
    command = [toolkit() / "bin/nvcc", "-gencode", target, "-std=c++17", *options]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace")
    if ended.returncode:
        raise RuntimeError(f"nvcc: {ended.stdout}{ended.stderr}"[-1000:])


def run(warpwright, options, program, arguments, seconds, status=0):
    """What the program and the driver have said. An error says how it failed: its exit status is to be this one."""
    command = [warpwright, "exec", f"--fail={FOUND}", *options, "--", program, *arguments]
    try:
        ended = subprocess.run(list(map(str, command)), cwd=program.parent, capture_output=True, text=True,
                               errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not at its end after {seconds} s") from None
    said = ended.stdout + ended.stderr
    if ended.returncode != status or FAILED.search(ended.stdout):
        raise RuntimeError(f"exit status {ended.returncode}: {said[-1000:]}")
    return said
