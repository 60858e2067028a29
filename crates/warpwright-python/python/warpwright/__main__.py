"""The program `warpwright`, which the package carries: `python -m warpwright`, or `warpwright`."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> Path:
    """The program's file."""
    return Path(__file__).parent / "bin" / "warpwright"


def main() -> None:
    """Becomes the program, with the arguments of this one."""
    file = program()
    if not file.is_file():
        sys.exit(f"warpwright: {file} is not there: the package was not installed with its program")
    # Where the program needs Python, it is this one, which has the package.
    os.environ["WARPWRIGHT_PYTHON"] = sys.executable
    os.execv(file, ["warpwright", *sys.argv[1:]])


if __name__ == "__main__":
    main()
