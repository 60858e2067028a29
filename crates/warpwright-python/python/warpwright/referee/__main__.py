"""`warpwright referee spec.toml candidate`: judges a kernel."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from ..errors import WarpwrightError
from .candidates import Unusable
from .judge import judge
from .spec import SpecError, read
from .verdict import to_json, to_markdown


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warpwright referee",
        description="Judges a kernel by a specification: its results against a reference, over shapes, values, orders "
        "and all checks. The exit status is 0 if it is accepted, 1 if it is rejected, 2 if it cannot be judged.",
    )
    parser.add_argument("spec", type=Path, help="the specification, in TOML")
    parser.add_argument("candidate", type=Path, help="the kernel: .ptx, .cu, or .py with a function that launches it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdict as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the verdict there, and not to stdout")
    parser.add_argument("--seed", type=int, help="the values of an earlier verdict: a candidate may not know it")
    return parser


def main() -> int:
    """Judges, and returns the exit status."""
    asked = _parser().parse_args()
    try:
        if asked.seed is not None and not 0 <= asked.seed < 1 << 63:
            raise SpecError(f"--seed {asked.seed}: it is a number from 0 to 2^63 - 1, as a verdict has it")
        verdict = judge(read(asked.spec), asked.candidate, asked.seed)
        text = to_markdown(verdict)
        if asked.json:
            asked.json.write_text(to_json(verdict) + "\n", encoding="utf-8")
        if asked.markdown:
            asked.markdown.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    except (SpecError, Unusable, WarpwrightError, OSError) as error:
        print(f"warpwright referee: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"warpwright referee: a shape needs more memory than there is: {error}", file=sys.stderr)
        return 2
    except Exception:
        # A mistake of ours, or of a reference: no verdict.
        traceback.print_exc()
        return 2
    return 0 if verdict.accepted else 1


if __name__ == "__main__":
    sys.exit(main())
