"""Compiles NVIDIA's CUDA samples with a shared runtime, runs them on virtual GPUs, and prints what became of each.

    samples.py WARPWRIGHT FOLDER CHECKOUT [NAME...]

WARPWRIGHT is the program, FOLDER where programs go, CHECKOUT a checkout of cuda-samples; names choose samples. It prints
`ok NAME`, `failed NAME: why` or `left out NAME: why`. nvcc is that of this Python's packages, and calls the host's g++.
"""

import pathlib
import re
import sys

import nvcc
from skips import read_skips

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900
# Of a sample that is left out: it is run only to see whether it passes.
SECONDS_OF_SKIPPED = 60


def prepare(warpwright, work, checkout):
    """A folder with the libraries that programs are linked with, and the samples' common files beside the samples."""
    libraries = nvcc.libraries(warpwright, work)
    nvcc.link(work / "Common", checkout / "Common")
    return libraries


def build(source, folder, libraries, checkout):
    """The sample's program, in a folder with its files. An error says what the compiler has said."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        nvcc.link(folder / entry.name, entry)
    program = folder / f"{source.name}.program"
    if program.exists():
        return program
    cmake = (source / "CMakeLists.txt").read_text()
    files = [file for place in (source, source / "src") for end in ("*.cu", "*.cpp") for file in sorted(place.glob(end))]
    files = [file for file in files if file.name in cmake] or files
    includes = [f"-I{place}" for place in (checkout / "Common", source, source / "inc", checkout / "Common/UtilNPP")]
    if "-fatbin" in cmake:
        kernels = [file for file in files if file.suffix == ".cu"]
        name = re.search(r"(\w+\.fatbin)", cmake).group(1)
        (folder / name).unlink(missing_ok=True)
        nvcc.compile(80, [*includes, "-fatbin", "-o", folder / name, *kernels])
        files = [file for file in files if file not in kernels]
    extra = ["-rdc=true"] if "SEPARABLE" in cmake else []
    extra += ["--extended-lambda"] if "extended-lambda" in cmake else []
    nvcc.compile(80, [*includes, *extra, "-cudart", "shared", "-Xcompiler", "-fopenmp", "-o", program, *files,
                      f"-L{libraries}", "-lcuda"])
    return program


def stale(warpwright, name, work, libraries, checkout):
    """Why the entry of a sample that is left out is stale, if it is: there is none of that name, or it passes, and the
    driver has nothing to say. Some end well where a call has failed."""
    source = next(checkout.glob(f"Samples/*/{name}"), None)
    if source is None:
        return "there is no such sample"
    try:
        program = build(source, work / "Samples" / source.parent.name / name, libraries, checkout)
        said = nvcc.run(warpwright, [], program, [], SECONDS_OF_SKIPPED)
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
            program = build(source, folder, libraries, checkout)
            nvcc.run(warpwright, [], program, arguments, SECONDS, nvcc.FOUND if finds else 0)
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
