"""`python -m warpwright.triton [options] script.py [arguments]`: a program of Triton on the virtual GPU, unchanged."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from . import enable


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warpwright.triton",
        description="Runs a program whose Triton kernels run on the virtual GPU. An error that it finds in a kernel is "
        "raised at the launch, with its line.",
    )
    parser.add_argument("--check", default="all", metavar="CHECKS", help="all, or names between commas (all)")
    parser.add_argument("--sm", default="80", help="the target that Triton compiles for (80)")
    parser.add_argument("--order", metavar="ORDER", help="of blocks and warps: issue, reverse or random:SEED (issue)")
    parser.add_argument("--race", choices=["normal", "strict"], help="what a race is (normal)")
    parser.add_argument("--on-findings", choices=["raise", "continue"], help="what a launch does about errors (raise)")
    parser.add_argument("--no-device-cuda", action="store_true", help="tensors must be on the CPU: no `cuda` is there")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


def main() -> int:
    """Runs the program. Its exit status is that of Python."""
    asked = _parser().parse_args()
    try:
        enable(asked.check, asked.sm, asked.order, asked.on_findings, race=asked.race, cuda=not asked.no_device_cuda)
    except (ImportError, ValueError) as error:
        print(f"warpwright.triton: {error}", file=sys.stderr)
        return 2
    sys.argv = [asked.script, *asked.arguments]
    if asked.module:
        runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
        return 0
    if not Path(asked.script).is_file():
        print(f"warpwright.triton: there is no file {asked.script}", file=sys.stderr)
        return 2
    sys.path[0] = str(Path(asked.script).resolve().parent)
    runpy.run_path(asked.script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
