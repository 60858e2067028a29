"""Compiles examples of CUTLASS for Hopper and Blackwell, runs them on virtual GPUs with all checks, and prints what became
of each.

    cutlass.py WARPWRIGHT FOLDER quick|all [NAME...]

WARPWRIGHT is the program, FOLDER where programs go; names choose examples (the last part of a path is one, too), and
`quick` is what CI runs. It prints `ok NAME` or `failed NAME: why`. nvcc and the examples are those of this Python's
packages.
"""

import json
import multiprocessing.pool
import pathlib
import sys

import nvcc

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900
# Programs that are compiled at once: each takes up to 6 GB.
AT_ONCE = 2


def build(name, architecture, defines, work, libraries):
    """The example's program, whose PTX `planted.py` can read. An error says what the compiler has said."""
    root = nvcc.packages() / "cutlass_library/source"
    source = root / f"examples/{name}.cu"
    program = work / source.stem
    if not program.exists():
        includes = ["include", "tools/util/include", "examples/common"]
        includes = [root / include for include in includes] + [source.parent, nvcc.toolkit() / "include/cccl"]
        nvcc.compile(architecture, ["--expt-relaxed-constexpr", "-w", *defines, *(f"-I{include}" for include in includes),
                                    "-no-compress", "-cudart", "shared", "-o", program, source, f"-L{libraries}", "-lcuda"])
    return program


def run(warpwright, program, architecture, arguments, expected):
    """An error says how it failed, or what was found besides what is to be found, which must be."""
    log = program.with_suffix(".findings")
    log.unlink(missing_ok=True)
    options = ["--check", "all", "--sm", architecture.rstrip("a"), "--findings", log]
    said = nvcc.run(warpwright, options, program, arguments, SECONDS, nvcc.FOUND if expected else 0)
    events = map(json.loads, log.read_text().splitlines()) if log.exists() else []
    found = {event["kind"] for event in events if event["event"] == "finding"}
    if found != expected:
        raise RuntimeError(f"{sorted(found)} are found, and not {sorted(expected)}: {said[-1000:]}")


def main():
    warpwright, work = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    quick, names = sys.argv[3] == "quick", sys.argv[4:]
    lines = (HERE / "cutlass.list").read_text().splitlines()
    entries = [[field.strip() for field in line.split("|")] for line in lines if line and not line.startswith("#")]
    named = {name: entry for entry in entries for name in (entry[0], pathlib.PurePath(entry[0]).name)}
    if unknown := set(names) - set(named):
        raise SystemExit(f"cutlass.list has no {', '.join(sorted(unknown))}, but {', '.join(entry[0] for entry in entries)}")
    if names:
        entries = [named[name] for name in names]
    elif quick:
        entries = [entry for entry in entries if entry[4] == "quick"]
    libraries = nvcc.libraries(warpwright, work)

    def check(entry):
        name, architecture, arguments, finds, _ = entry
        try:
            defines = [argument for argument in arguments.split() if argument.startswith("-D")]
            program = build(name, architecture, defines, work, libraries)
            arguments = [argument for argument in arguments.split() if argument not in defines]
            run(warpwright, program, architecture, arguments, set(finds.split()))
        except RuntimeError as error:
            return f"failed {name}: {error}"
        return f"ok {name}"

    failed = False
    with multiprocessing.pool.ThreadPool(AT_ONCE) as pool:
        for line in pool.imap(check, entries):
            print(line, flush=True)
            failed |= line.startswith("failed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
