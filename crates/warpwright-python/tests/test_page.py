"""The examples of the page *Test CUDA kernels without a GPU*, as a reader has them: files, commands, what they print.

A block with a name behind its language is a file. In a block of `console`, `$` begins a command; what follows is its
output, in which a line `…` stands for any lines, and `…` within a line for any text. The sections on Rust and on
GitHub's actions have tests of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
SECTIONS = ("NumPy and pytest", "Triton", "numba", "CUDA C++ with CMake")

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(section: str) -> list[tuple[str, str | None, str]]:
    """The blocks of a section: language, file, text."""
    text = PAGE.read_text()
    start = text.index(f"\n## {section}\n")
    end = text.find("\n## ", start + 1)
    return [match.groups() for match in BLOCK.finditer(text[start : end if end >= 0 else len(text)])]


def commands(console: str) -> list[tuple[str, list[str]]]:
    """The commands of a console, with the lines that each prints."""
    found: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(lines: list[str]) -> str:
    """What output looks like."""
    parts = ["(?:.*\n)*?" if line == "…" else f"{'.*'.join(map(re.escape, line.split('…')))}\n" for line in lines]
    return "".join(parts)


def environment(folder: Path) -> dict[str, str]:
    """That of a reader: the package's programs are on the path. What a page says in a block of `sh` comes besides."""
    own = dict(os.environ)
    paths = [str(Path(sys.executable).parent)]
    own["PATH"] = os.pathsep.join([*paths, own["PATH"]])
    own["TRITON_CACHE_DIR"] = str(folder / ".triton")
    return own


@pytest.mark.parametrize("section", SECTIONS)
def test_a_reader_gets_what_the_page_shows(section: str, tmp_path: Path) -> None:
    shown = blocks(section)
    run = 0
    before = "".join(text for language, _, text in shown if language == "sh")
    for language, file, text in shown:
        if file is not None:
            (tmp_path / file).write_text(text)
        elif language == "console":
            for command, expected in commands(text):
                result = subprocess.run(
                    before + command,
                    shell=True,
                    cwd=tmp_path,
                    env=environment(tmp_path),
                    capture_output=True,
                    text=True,
                )
                output = "\n".join(line.rstrip() for line in (result.stdout + result.stderr).splitlines()) + "\n"
                assert re.fullmatch(pattern(expected), output), f"$ {command}\n{output}"
                run += 1
    assert run > 0


def test_the_page_has_every_section() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    assert set(SECTIONS) <= set(headings)
