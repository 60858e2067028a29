"""The example of the page *A referee for kernels*, as a reader has it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "referee.md"

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pattern(lines: list[str]) -> str:
    """What output looks like: a line `…` stands for any lines, `…` within a line for any text."""
    return "".join("(?:.*\n)*?" if line == "…" else f"{'.*'.join(map(re.escape, line.split('…')))}\n" for line in lines)


def test_a_reader_gets_what_the_page_shows(tmp_path: Path) -> None:
    commands = 0
    for language, file, text in BLOCK.findall(PAGE.read_text()):
        if file:
            (tmp_path / file).write_text(text)
        elif language == "console":
            command, *expected = text.splitlines()
            program, subcommand, *arguments = shlex.split(command.removeprefix("$ "))
            assert (program, subcommand) == ("warpwright", "referee")
            # The program becomes this.
            result = subprocess.run(
                [sys.executable, "-m", "warpwright.referee", *arguments],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert re.fullmatch(pattern(expected), result.stdout), result.stdout
            assert result.returncode == ("Rejected" in expected[0])
            commands += 1
    assert commands == 2 and (tmp_path / "verdict.json").is_file()
