"""What a program has its kernels do in a run: what it launches, on which memory, and what it writes there itself.

All of this may depend on the shape and the scalars. If it depends on the values of arrays, the program knows them: by
the time that launches take, for instance. Then it could compute results itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAMES = {
    "grid": "the grid",
    "block": "the block",
    "shared": "the dynamic shared memory",
    "how": "whether it cooperates",
}


class Trace:
    """Launches and writes of a run, in their order."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._labels: dict[int, str] = {}

    def label(self, serial: int, is_fresh: bool) -> str:
        """What memory of a program is called that has a serial number.

        Where it is follows from nothing. If it was not there in earlier runs, or has nothing of them, it is the first,
        second or third of its kind. Otherwise it is itself, since there may be several with other contents.
        """
        if serial not in self._labels:
            count = sum(label.startswith("new") for label in self._labels.values())
            self._labels[serial] = f"new {count}" if is_fresh else f"old {serial}"
        return self._labels[serial]

    def renew(self, serial: int) -> None:
        """Memory has lost its contents."""
        if self._labels.get(serial, "").startswith("old"):
            count = sum(label.startswith("new") for label in self._labels.values())
            self._labels[serial] = f"new {count}"

    def launch(self, code: bytes, kernel: str, params: Sequence[tuple[str, Any]], **rest: Any) -> None:
        """A launch: the PTX, the kernel, its parameters by their names, and the rest."""
        self._events.append({"what": (code, kernel), **rest, "params": list(params)})

    def write(self, name: str, offset: int, contents: bytes) -> None:
        """Contents that the program gives to kernels."""
        self._events.append({"what": (b"", f"a write into {name}"), "contents": (offset, contents)})

    def difference(self, other: Trace) -> str | None:
        """What is otherwise in an earlier run, in words."""
        for number, (mine, theirs) in enumerate(zip(self._events, other._events)):
            if mine == theirs:
                continue
            is_launch = "params" in mine
            place = f"the launch of `{mine['what'][1]}`" if is_launch else mine["what"][1]
            place += f" (number {number} of what it does)"
            if mine["what"] != theirs["what"]:
                return f"{place} was `{theirs['what'][1]}` then"
            for key, name in NAMES.items():
                if mine.get(key) != theirs.get(key):
                    return f"{place}: {name} is {mine[key]}, and was {theirs[key]}"
            for (name, value), (_, was) in zip(mine.get("params", ()), theirs.get("params", ())):
                if value != was:
                    return f"{place}: the parameter `{name}` is {_shown(value)}, and was {_shown(was)}"
            return f"{place}: the contents are others"
        if len(self._events) != len(other._events):
            return (
                f"it does {len(self._events)} things (launches, and writes into memory), and did {len(other._events)}"
            )
        return None


def _shown(value: Any) -> str:
    parts = [f"{part[0]} memory, byte {part[1]}" if isinstance(part, tuple) else f"0x{part}" for part in value]
    return " ".join(parts)
