"""`python -m warpwright.triton [options] script.py [arguments]`: a program of Triton on the virtual GPU, unchanged."""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from .._told import Log
from ..errors import WarpwrightError
from ..report import Report
from ..settings import on_report, settings
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
    parser.add_argument(
        "--on-findings",
        choices=["raise", "continue"],
        help="what a launch does about errors: raise them; or show them and go on, and the exit status is 1 (raise)",
    )
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


class _Watch:
    """Tells standard error of what launches do not raise."""

    def __init__(self) -> None:
        self._log = Log()
        self.launches = self.errors = 0

    def __call__(self, report: Report) -> None:
        self.launches += 1
        is_raised = not report.ok and settings.on_findings == "raise"
        if not report.is_clean and not is_raised:
            self.errors += not report.ok
            self._log.tell(report)


def main() -> int:
    """Runs the program. The exit status is that of Python, or 1 if that is 0 and errors were not raised as asked."""
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
    watch = _Watch()
    on_report(watch)
    sys.argv = [asked.script, *asked.arguments]
    try:
        if asked.module:
            runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(asked.script).resolve().parent)
            runpy.run_path(asked.script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0) or not watch.errors:
            raise
    finally:
        if watch.errors:
            told = f"{watch.errors} of {watch.launches} launches had errors; of equal ones the first is shown"
            print(f"warpwright.triton: {told}", file=sys.stderr)
    return 1 if watch.errors and asked.on_findings == "continue" else 0


if __name__ == "__main__":
    sys.exit(main())
