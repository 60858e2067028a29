"""`python -m warpwright.triton [options] script.py [arguments]`: a program of Triton on the virtual GPU, unchanged."""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from ..errors import WarpwrightError
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
    parser.add_argument(
        "--max-instructions",
        metavar="N",
        type=_number,
        help="ends a kernel that executes more, counted by thread (2^40)",
    )
    parser.add_argument("--no-device-cuda", action="store_true", help="tensors must be on the CPU: no `cuda` is there")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return parser


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,20}", text) or not 0 < int(text) < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _missing(script: str, is_module: bool) -> str | None:
    """Why a program cannot be run, if it cannot."""
    if is_module:
        try:
            return None if find_spec(script) else f"there is no module {script}"
        except (ModuleNotFoundError, ValueError) as error:
            return f"there is no module {script}: {error}"
    if Path(script).is_dir():
        return f"{script} is a folder: name the script in it"
    return None if Path(script).is_file() else f"there is no file {script}"


def main() -> int:
    """Runs the program. Its exit status is that of Python."""
    asked = _parser().parse_args()
    try:
        missing = _missing(asked.script, asked.module)
        if missing:
            raise ValueError(missing)
        enable(
            asked.check, asked.sm, asked.order, asked.on_findings, race=asked.race,
            max_instructions=asked.max_instructions, cuda=not asked.no_device_cuda,
        )  # fmt: skip
    except (ImportError, ValueError, WarpwrightError) as error:
        print(f"warpwright.triton: {error}", file=sys.stderr)
        return 2
    sys.argv = [asked.script, *asked.arguments]
    if asked.module:
        runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
        return 0
    sys.path[0] = str(Path(asked.script).resolve().parent)
    runpy.run_path(asked.script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
