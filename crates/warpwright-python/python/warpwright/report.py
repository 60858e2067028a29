"""What has come of a launch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Protocol

from ._names import python_name
from ._warpwright import junit, sarif
from .errors import FindingsError


@dataclass(frozen=True)
class Source:
    """A line of a source file."""

    file: str
    line: int
    column: int
    inlined_at: Source | None = None
    """The call by which it was inlined."""


@dataclass(frozen=True)
class Access:
    """What one thread did, the first of those that did it."""

    ptx_line: int | None
    ptx: str | None
    """The instruction."""
    source: Source | None
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    action: str
    space: str | None
    """The memory space, of an access to memory."""
    address: int | None
    bytes: int | None


@dataclass(frozen=True)
class Allocation:
    """What an address is in, or nearest to."""

    name: str
    arguments: tuple[str, ...]
    """The kernel's arguments that point into it."""
    address: int
    bytes: int
    offset: int
    """From its first byte to the address."""
    freed: bool


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a kernel."""

    tool: str
    """The check: memcheck, racecheck, initcheck or synccheck."""
    kind: str
    """What it is, in a word that stays: out-of-bounds, race, …"""
    severity: str
    """error, or warning: it breaks a rule but works on every existing device."""
    message: str
    kernel: str
    count: int
    accesses: tuple[Access, ...]
    """Of a race both, the one that came first before the other."""
    allocation: Allocation | None


@dataclass(frozen=True)
class Waiting:
    """Threads that were at one instruction when a launch ended."""

    ptx_line: int | None
    ptx: str | None
    source: Source | None
    threads: int


@dataclass(frozen=True)
class Trap:
    """Why a kernel did not run to its end."""

    kind: str
    message: str
    kernel: str
    ptx_line: int | None
    ptx: str | None
    source: Source | None
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    waiting: tuple[Waiting, ...]


class Told(Protocol):
    """A launch that is over: what the native module says of one, or what the driver has told of one."""

    @property
    def kernel(self) -> str: ...
    @property
    def is_clean(self) -> bool: ...
    @property
    def has_errors(self) -> bool: ...
    @property
    def output(self) -> str: ...
    def text(self) -> str: ...
    def json(self) -> str: ...
    def documents(self) -> list[str]: ...


class Kept:
    """A launch that another process has told of, or a copy of one: all that is said of it, as it was said."""

    def __init__(self, told: Told) -> None:
        self.kernel, self.is_clean, self.has_errors = told.kernel, told.is_clean, told.has_errors
        self.output, self._text, self._json, self._documents = told.output, told.text(), told.json(), told.documents()

    def text(self) -> str:
        return self._text

    def json(self) -> str:
        return self._json

    def documents(self) -> list[str]:
        return list(self._documents)


class Report:
    """The findings, the trap, the counters and the output of a launch.

    It can be copied and pickled.
    """

    def __init__(self, launched: Told) -> None:
        self._launched = launched

    def __reduce__(self) -> tuple[type[Report], tuple[Kept]]:
        # A launch is the device's; what is said of it can go anywhere.
        launched = self._launched
        return type(self), (launched if isinstance(launched, Kept) else Kept(launched),)

    def __repr__(self) -> str:
        return f"<Report of {python_name(self.kernel)}: {self.text.splitlines()[0]}>"

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self._launched.kernel

    @property
    def ok(self) -> bool:
        """Whether the kernel is right, as far as it was checked: no finding is an error, and there is no trap."""
        return not self._launched.has_errors

    @property
    def is_clean(self) -> bool:
        """Whether there are neither findings, not even warnings, nor a trap."""
        return self._launched.is_clean

    @property
    def output(self) -> str:
        """What the kernel printed."""
        return self._launched.output

    @cached_property
    def text(self) -> str:
        """The findings and the trap, with lines of the source and of the PTX."""
        return self._launched.text()

    @cached_property
    def _document(self) -> dict[str, Any]:
        return json.loads(self._launched.json())

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of the checks, in the order of the text."""
        return [finding_of(found) for found in self._document["findings"]] if not self.is_clean else []

    @cached_property
    def trap(self) -> Trap | None:
        """Why the kernel did not run to its end."""
        found = self._document["trap"] if not self.is_clean else None
        return found and trap_of(found)

    @property
    def counters(self) -> dict[str, Any]:
        """What a profiler would show: instructions by class, memory traffic, bank conflicts. Traffic is counted if the
        launch was told `counters=True`."""
        return self._document["counters"]

    @property
    def profile(self) -> list[dict[str, Any]]:
        """Instructions with their counters, the hottest first."""
        return self._document["lines"]

    def to_json(self) -> str:
        """The document that `warpwright profile --json` prints."""
        return self._launched.json()

    def documents(self) -> list[str]:
        """What documents of several reports are made of: see `to_sarif` and `to_junit` of this module."""
        return self._launched.documents()

    def to_sarif(self, root: str | PathLike[str] = ".") -> str:
        """SARIF 2.1.0, as code scanning takes it. Files below the root are named from there."""
        return to_sarif([self], root)

    def to_junit(self) -> str:
        """JUnit's XML, as continuous integration takes it."""
        return to_junit([self])

    def raise_for_findings(self) -> None:
        """Raises `FindingsError` unless the kernel is right."""
        if not self.ok:
            raise FindingsError(self)


def to_sarif(reports: Iterable[Report], root: str | PathLike[str] = ".") -> str:
    """SARIF of several launches; equal findings are one result."""
    return sarif([document for report in reports for document in report.documents()], str(root))


def to_junit(reports: Iterable[Report]) -> str:
    """JUnit's XML of several launches."""
    return junit([document for report in reports for document in report.documents()])


def _source(found: dict[str, Any] | None) -> Source | None:
    if found is None:
        return None
    return Source(found["file"], found["line"], found["column"], _source(found.get("inlined_at")))


def _place(found: dict[str, Any]) -> tuple[int | None, str | None, Source | None]:
    return found.get("ptx_line"), found.get("ptx"), _source(found.get("source"))


def _index(found: list[int] | None) -> tuple[int, int, int] | None:
    return None if found is None else (found[0], found[1], found[2])


def finding_of(found: dict[str, Any]) -> Finding:
    """A finding of its JSON."""
    accesses = tuple(
        Access(
            *_place(access),
            _index(access["block"]),
            _index(access["thread"]),
            access["action"],
            access["space"],
            access["address"],
            access["bytes"],
        )
        for access in found["accesses"]
    )
    memory = found["allocation"]
    allocation = memory and Allocation(
        memory["name"],
        tuple(memory["arguments"]),
        memory["address"],
        memory["bytes"],
        memory["offset"],
        memory["freed"],
    )
    return Finding(
        found["tool"],
        found["kind"],
        found["severity"],
        found["message"],
        found["kernel"],
        found["count"],
        accesses,
        allocation,
    )


def trap_of(found: dict[str, Any]) -> Trap:
    """A trap of its JSON."""
    waiting = tuple(Waiting(*_place(place), place["threads"]) for place in found["waiting"])
    index = _index(found["block"]), _index(found["thread"])
    return Trap(found["kind"], found["message"], found["kernel"], *_place(found), *index, waiting)
