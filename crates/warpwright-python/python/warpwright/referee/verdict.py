"""The verdict as JSON and as Markdown."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from .judge import Reason, Verdict
from .spec import Sizes

VERSION = 1
"""Of the JSON."""


def _plain(value: Any) -> Any:
    """JSON has no infinities and no NaN: they are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def to_json(verdict: Verdict) -> str:
    """The verdict for programs."""
    document = {"version": VERSION, "accepted": verdict.accepted, **asdict(verdict)}
    return json.dumps(_plain(document), indent=2)


def to_markdown(verdict: Verdict) -> str:
    """The verdict for people."""
    name = f"`{verdict.candidate}` for `{verdict.kernel}`"
    lines = [f"# {'Accepted' if verdict.accepted else 'Rejected'}: {name}", ""]
    lines.append(f"{verdict.runs} of {verdict.planned} runs. Values are those of `--seed {verdict.seed}`.")
    for title, reasons in (("Reasons", verdict.reasons), ("Warnings", verdict.warnings)):
        if reasons:
            lines += ["", f"## {title}"]
            for number, reason in enumerate(reasons, 1):
                lines += ["", *_reason(number, reason)]
    if verdict.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in verdict.notes)]
    if verdict.costs:
        lines += ["", "## Costs", "", *_costs(verdict)]
    return "\n".join(lines) + "\n"


def _shown(shape: Sizes) -> str:
    return ", ".join(f"{name} = {value}" for name, value in shape.items())


def _reason(number: int, reason: Reason) -> list[str]:
    found = reason.finding or reason.trap
    kind = f"{reason.kind}: {found['kind']}" if found else reason.kind
    text = reason.message if not found or "rendered" not in found else found["rendered"]
    where = [] if reason.shape is None else [_shown(reason.shape)]
    where += [] if reason.order is None else [f"order {reason.order}", f"values {reason.seed}"]
    runs = f" ({reason.count} runs; the first: {'; '.join(where)})" if where else ""
    if "\n" not in text.strip():
        return [f"{number}. **{kind}**: {text.strip()}{runs}"]
    return [
        f"{number}. **{kind}**{runs}",
        "",
        "   ```text",
        *(f"   {line}" for line in text.strip().split("\n")),
        "   ```",
    ]


def _costs(verdict: Verdict) -> list[str]:
    lines = [
        "| shape | instructions | of the baseline's | bytes | of the baseline's | of inputs and outputs |",
        "|---|---|---|---|---|---|",
    ]
    for cost in verdict.costs:
        cells = [
            _shown(cost.shape),
            str(cost.instructions),
            _ratio(cost.instructions, cost.baseline_instructions),
            str(cost.bytes),
            _ratio(cost.bytes, cost.baseline_bytes),
            _ratio(cost.bytes, cost.compulsory_bytes),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _ratio(part: int, whole: int | None) -> str:
    return f"{part / whole:.2f}" if whole else ""
