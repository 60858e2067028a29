"""Where the source of a launch is, if a program has it in itself: for code scanning, which shows lines of files alone.

A source that stands in the file of the call as it is has its lines there; of any other it is the line of the call.
"""

from __future__ import annotations

import json
import linecache
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .report import Told

INLINE = "kernel.cu"
"""What messages call CUDA C++ that has no file."""


def caller() -> tuple[str, int] | None:
    """The file and the line of the call of this package, if that is a file."""
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        frame = frame.f_back
    file = frame.f_code.co_filename
    return (file, frame.f_lineno) if Path(file).is_file() else None


_NOWHERE = re.compile(r"^((?:error|warning)\[.*\n) \|\n((?: = .*\n?)+)", re.MULTILINE)
"""A problem that is at no line: its title and its notes."""


class Worded:
    """A launch that calls its parameters by other names than the PTX, and shows the call where there is no line."""

    def __init__(self, launched: Told, names: Mapping[str, str], call: tuple[str, int] | None) -> None:
        self._launched, self._names, self._call = launched, names, call
        self.kernel, self.is_clean, self.has_errors = launched.kernel, launched.is_clean, launched.has_errors
        self.output = launched.output

    def text(self) -> str:
        """With the call. It has numbers of parameters, and names behind them."""
        return _NOWHERE.sub(self._at_call, self._launched.text())

    def json(self) -> str:
        """With the names and the call."""
        return json.dumps(self._worded(self._launched.json()), indent=2, ensure_ascii=False)

    def documents(self) -> list[str]:
        """With the names and the call."""
        return [json.dumps(self._worded(document)) for document in self._launched.documents()]

    def _worded(self, document: str) -> dict[str, Any]:
        launch: dict[str, Any] = json.loads(document)
        for finding in launch["findings"]:
            finding["rendered"] = _NOWHERE.sub(self._at_call, finding["rendered"])
            if memory := finding["allocation"]:
                memory["arguments"] = [self._names.get(name, name) for name in memory["arguments"]]
        for traffic in launch["counters"].get("arguments", []):
            traffic["parameter"] = self._names.get(traffic["parameter"], traffic["parameter"])
        return launch

    def _at_call(self, found: re.Match[str]) -> str:
        title, notes = found.groups()
        if self._call is None:
            return f"{title}{notes}"
        file, line = self._call
        path, text = Path(file), linecache.getline(file, line).rstrip()
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        margin = " " * len(str(line))
        marked = " " * (len(text) - len(text.lstrip())) + "^" * len(text.lstrip())
        lines = [f"{margin}--> {shown}:{line}", f"{margin} |", f"{line} | {text}", f"{margin} | {marked} launched here"]
        return "\n".join([title.rstrip(), *lines, f"{margin} |", re.sub("^ ", f"{margin} ", notes, flags=re.MULTILINE)])


class Inline:
    """A launch whose documents have places in files: of its source, which has the language as its name, or a path."""

    def __init__(self, launched: Told, source: str | None, language: str, call: tuple[str, int]) -> None:
        self._launched, self._source, self._language = launched, source, language
        self._file, self._line = call
        self.kernel, self.is_clean, self.has_errors = launched.kernel, launched.is_clean, launched.has_errors
        self.output = launched.output

    def text(self) -> str:
        """As it is."""
        return self._launched.text()

    def json(self) -> str:
        """As it is."""
        return self._launched.json()

    def documents(self) -> list[str]:
        """With places in files."""
        return [self._placed(json.loads(document)) for document in self._launched.documents()]

    def _placed(self, launch: dict[str, Any]) -> str:
        first = self._first() if self._source else None
        if self._source or self._language != "PTX":
            launch["file"] = self._file
        for problem in [*launch["findings"], *([launch["trap"]] if launch["trap"] else [])]:
            places = problem["accesses"] if "accesses" in problem else [problem, *problem["waiting"]]
            if not any(place.get("source") or place.get("ptx_line") for place in places):
                self._at_call(problem)
                continue
            line = next(filter(None, map(self._number, places)), None)
            if line:
                name, call = Path(self._file).name, self._line
                problem["message"] += (
                    f"\nIt is at line {line} of the {self._language} that is launched at {name}:{call}"
                )
            for place in places:
                place["source"] = self._place(place, first)
        return json.dumps(launch)

    def _at_call(self, problem: dict[str, Any]) -> None:
        """Puts a problem that is at no line, such as an output that nobody wrote, at the call."""
        here = {"source": self._of_line(0, None, None)}
        if "accesses" in problem:
            index = [0, 0, 0]
            problem["accesses"] = [{**here, "block": index, "thread": index, "action": "execute"}]
        else:
            problem |= here

    def _number(self, place: dict[str, Any]) -> int | None:
        """The line of the source that a place is at."""
        if not self._source:
            return None
        source = place.get("source")
        if source is None:
            return place.get("ptx_line") if self._language == "PTX" else None
        return source["line"] if source["file"] == INLINE else None

    def _place(self, place: dict[str, Any], first: int | None) -> dict[str, Any] | None:
        source, line = place.get("source"), place.get("ptx_line")
        if source is not None:
            return self._of_source(source, first) if self._source else source
        if line is None or (self._language == "PTX" and not self._source):
            return None
        return self._of_line(line, place.get("ptx"), first if self._language == "PTX" else None)

    def _of_source(self, source: dict[str, Any], first: int | None) -> dict[str, Any]:
        own = dict(source)
        if source["file"] == INLINE:
            own |= self._of_line(source["line"], source.get("text"), first)
        if source.get("inlined_at"):
            own["inlined_at"] = self._of_source(source["inlined_at"], first)
        return own

    def _of_line(self, line: int, text: str | None, first: int | None) -> dict[str, Any]:
        return {
            "file": self._file,
            "line": self._line if first is None else first + line - 1,
            "column": 0,
            # By which the results of several lines differ.
            **({"text": text} if text else {}),
        }

    def _first(self) -> int | None:
        """The line of the file that the first line of the source is on, if the source stands there as it is."""
        wanted = [line.strip() for line in (self._source or "").split("\n")]
        try:
            lines = [line.strip() for line in Path(self._file).read_text(encoding="utf-8").split("\n")]
        except (OSError, UnicodeDecodeError):
            return None
        (*begin, end) = wanted

        def is_here(at: int) -> bool:
            if not begin:
                return end in lines[at]
            inner = lines[at + 1 : at + len(begin)]
            return lines[at].endswith(begin[0]) and inner == begin[1:] and lines[at + len(begin)].startswith(end)

        found = [at for at in range(len(lines) - len(begin)) if is_here(at)]
        return found[0] + 1 if len(found) == 1 else None
