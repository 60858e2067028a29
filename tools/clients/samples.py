"""Compiles NVIDIA's CUDA samples with a shared runtime, runs them on virtual GPUs, and prints what became of each.

    samples.py WARPWRIGHT FOLDER CHECKOUT [NAME...]

WARPWRIGHT is the program, FOLDER where programs go, CHECKOUT a checkout of cuda-samples; names choose samples. It prints
`ok NAME`, `failed NAME: why` or `left out NAME: why`. nvcc is that of this Python's packages, and calls the host's g++.
"""

import pathlib
import re
import subprocess
import sys

from skips import read_skips

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900
# Of a sample that is left out: it is run only to see whether it passes.
SECONDS_OF_SKIPPED = 60
# The exit status of `exec` after a finding.
FOUND = 99
FAILED = re.compile(r"\bfailed\b(?! as expected| *[:=] *0)|Result = FAIL|verification error", re.IGNORECASE)


def toolkit():
    for folder in map(pathlib.Path, sys.path):
        if (folder / "nvidia/cu13/bin/nvcc").exists():
            return folder / "nvidia/cu13"
    raise SystemExit("this Python has no package nvidia-cuda-nvcc")


def prepare(warpwright, work, checkout):
    """A folder with the libraries that programs are linked with, and the samples' common files beside the samples."""
    libraries = work / "lib"
    libraries.mkdir(parents=True, exist_ok=True)
    ours = warpwright.parent / "libwarpwright_cuda.so"
    runtime = next((toolkit() / "lib").glob("libcudart.so.*"))
    for name, target in [("libcuda.so", ours), ("libcudart.so", runtime)]:
        link(libraries / name, target)
    link(work / "Common", checkout / "Common")
    return libraries


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target.resolve())


def build(source, folder, libraries, checkout):
    """The sample's program, in a folder with its files. An error says what the compiler has said."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        link(folder / entry.name, entry)
    program = folder / f"{source.name}.program"
    if program.exists():
        return program
    cmake = (source / "CMakeLists.txt").read_text()
    files = [file for place in (source, source / "src") for end in ("*.cu", "*.cpp") for file in sorted(place.glob(end))]
    files = [file for file in files if file.name in cmake] or files
    nvcc = [str(toolkit() / "bin/nvcc"), "-gencode", "arch=compute_80,code=compute_80", "-std=c++17"]
    includes = [f"-I{place}" for place in (checkout / "Common", source, source / "inc", checkout / "Common/UtilNPP")]
    commands = []
    if "-fatbin" in cmake:
        kernels = [file for file in files if file.suffix == ".cu"]
        name = re.search(r"(\w+\.fatbin)", cmake).group(1)
        (folder / name).unlink(missing_ok=True)
        commands.append([*nvcc, *includes, "-fatbin", "-o", str(folder / name), *map(str, kernels)])
        files = [file for file in files if file not in kernels]
    extra = ["-rdc=true"] if "SEPARABLE" in cmake else []
    extra += ["--extended-lambda"] if "extended-lambda" in cmake else []
    commands.append([*nvcc, *includes, *extra, "-cudart", "shared", "-Xcompiler", "-fopenmp", "-o", str(program),
                     *map(str, files), f"-L{libraries}", "-lcuda"])
    for command in commands:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if ended.returncode:
            raise RuntimeError(f"nvcc: {ended.stdout}{ended.stderr}"[-1000:])
    return program


def run(warpwright, program, arguments, finds, seconds=SECONDS):
    """What the sample and the driver have said. An error says how it failed."""
    command = [str(warpwright), "exec", f"--fail={FOUND}", "--", str(program), *arguments]
    try:
        ended = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, errors="replace",
                               timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not at its end after {seconds} s") from None
    said = ended.stdout + ended.stderr
    expected = FOUND if finds else 0
    if ended.returncode != expected or FAILED.search(ended.stdout):
        raise RuntimeError(f"exit status {ended.returncode}: {said[-1000:]}")
    return said


def stale(warpwright, name, work, libraries, checkout):
    """Why the entry of a sample that is left out is stale, if it is: there is none of that name, or it passes, and the
    driver has nothing to say. Some end well where a call has failed."""
    source = next(checkout.glob(f"Samples/*/{name}"), None)
    if source is None:
        return "there is no such sample"
    try:
        program = build(source, work / "Samples" / source.parent.name / name, libraries, checkout)
        said = run(warpwright, program, [], False, SECONDS_OF_SKIPPED)
    except RuntimeError:
        return None
    return None if "warpwright: " in said else "it passes"


def main():
    warpwright, work, checkout = map(lambda path: pathlib.Path(path).resolve(), sys.argv[1:4])
    names = sys.argv[4:]
    lines = (HERE / "samples.list").read_text().splitlines()
    entries = [[field.strip() for field in f"{line}||".split("|")] for line in lines if not line.startswith("#")]
    samples = {name: (arguments.split(), finds == "finds") for name, arguments, finds, *_ in entries if name}
    libraries = prepare(warpwright, work, checkout)
    failed = False
    for name in names or samples:
        try:
            source = next(checkout.glob(f"Samples/*/{name}"), None)
            if source is None:
                raise RuntimeError(f"{checkout} has no such sample")
            folder = work / "Samples" / source.parent.name / name
            arguments, finds = samples.get(name, ([], False))
            run(warpwright, build(source, folder, libraries, checkout), arguments, finds)
            print(f"ok {name}", flush=True)
        except RuntimeError as error:
            failed = True
            print(f"failed {name}: {error}", flush=True)
    for name, why in read_skips(HERE / "samples.skips").items():
        if names:
            continue
        print(f"left out {name}: {why}", flush=True)
        if reason := stale(warpwright, name, work, libraries, checkout):
            failed = True
            print(f"failed {name}: its entry in samples.skips is stale: {reason}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
