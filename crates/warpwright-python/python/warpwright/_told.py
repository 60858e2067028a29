"""What is told of several launches: of those with equal findings the first, and how many they were."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ._names import python_name
from .report import Report

_PLACE = ("ptx_line", "ptx", "source", "action", "space")


def _key(report: Report) -> str:
    """What reports that differ in their launches alone have in common: kinds, places, and no addresses or threads."""
    document = json.loads(report.to_json())
    problems = [*document["findings"], *([document["trap"]] if document["trap"] else [])]
    return json.dumps([report.kernel, *map(_of_problem, problems)])


def _of_problem(problem: dict[str, Any]) -> list[Any]:
    # A trap has one place.
    places = [[access.get(name) for name in _PLACE] for access in problem.get("accesses", [problem])]
    arguments = (problem.get("allocation") or {}).get("arguments")
    is_placed = any(any(place) for place in places)
    return [
        problem.get("tool"), problem["kind"], problem.get("severity"), problem["kernel"], arguments, places,
        None if is_placed else problem["message"],
    ]  # fmt: skip


def distinct(reports: Iterable[Report]) -> list[tuple[Report, int]]:
    """The first of equal reports, each with their number."""
    found: dict[str, tuple[Report, int]] = {}
    for report in reports:
        first, count = found.get(key := _key(report), (report, 0))
        found[key] = first, count + 1
    return list(found.values())


class Log:
    """Tells standard error of reports with findings, of equal ones once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def tell(self, report: Report) -> None:
        """Writes a report, unless an equal one was written."""
        key = _key(report)
        if key not in self._known:
            self._known.add(key)
            print(f"kernel `{python_name(report.kernel)}`: {report.text.rstrip()}\n", file=sys.stderr, flush=True)
