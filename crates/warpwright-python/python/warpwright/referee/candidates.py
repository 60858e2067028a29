"""What is judged, run once on the arrays of a stage: here a kernel of PTX or CUDA C++. `program` has the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import nvrtc
from .._warpwright import Device, Kernel, Memory, Param
from ..errors import CompileError, WarpwrightError
from ..report import Report
from .spec import Argument, LaunchOf, Run
from .stage import Stage


class Unusable(Exception):
    """A candidate that cannot be judged: nobody can say whether it is right."""


class Rejected(Exception):
    """A candidate that cannot be run, through its own fault."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Outcome:
    """What has come of a run."""

    reports: list[Report] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Kinds of reasons, and messages, for which the run has no result."""
    notes: list[str] = field(default_factory=list)
    is_last: bool = False
    """Whether there can be no further run."""


class Candidate(Protocol):
    """Something that can be run."""

    deadline: float
    """Of all runs, by `time.monotonic`."""

    def run(self, stage: Stage, order: str) -> Outcome:
        """Runs once."""

    def close(self) -> None:
        """Ends whatever runs of it."""


class KernelCandidate:
    """A kernel, which the specification launches. It is loaded once: what it keeps in variables, it keeps."""

    def __init__(self, file: Path, device: Device, launch: LaunchOf, run: Run) -> None:
        self._device, self._launch, self._run = device, launch, run
        self.deadline = float("inf")
        self._kernel = _load(file, device, launch)

    def run(self, stage: Stage, order: str) -> Outcome:
        outcome, launch, sizes = Outcome(), self._launch, stage.sizes
        params, values = self._kernel.params, stage.values()
        names = [argument.name for argument in stage.arguments]
        message = None
        if len(params) != len(values):
            message = f"`{self._kernel.name}` has {len(params)} parameters, not {len(values)}: {', '.join(names)}"
        for number, (param, argument) in enumerate(zip(params, stage.arguments)):
            if message is None and (why := _other_type(param, argument)) is not None:
                message = (
                    f"parameter {number} of `{self._kernel.name}` is {why}, and `{argument.name}` is {_type(argument)}"
                )
        if message is not None:
            return Outcome(failures=[("refused", message)], is_last=True)
        outputs: list[tuple[Memory, str, int, list[tuple[int, int]]]] = [
            (stage.memories[argument.name], argument.name, argument.dtype.bytes, [(0, argument.dtype.bytes)])
            for argument in stage.arguments
            if argument.role == "out"
        ]
        try:
            packed = bytearray(params[-1].offset + params[-1].bytes if params else 0)
            for param, argument, value in zip(params, stage.arguments, values):
                if argument.is_array:
                    value = int(value).to_bytes(8, "little")
                else:
                    value = np.array([value]).astype(argument.dtype.storage).tobytes()
                packed[param.offset : param.offset + param.bytes] = value
            launched = self._device.launch(
                self._kernel,
                [extent.value(sizes) for extent in launch.grid],
                [extent.value(sizes) for extent in launch.block],
                bytes(packed),
                shared=launch.shared.value(sizes),
                cooperative=launch.cooperative,
                outputs=outputs,
                order=order,
                **how(self._run),
            )
        except WarpwrightError as error:
            outcome.failures.append(("refused", str(error)))
            return outcome
        outcome.reports.append(Report(launched))
        return outcome

    def close(self) -> None:
        pass


def _type(argument: Argument) -> str:
    return f"an array of {argument.dtype.name}" if argument.is_array else argument.dtype.name


def _other_type(param: Param, argument: Argument) -> str | None:
    """What a parameter is that is not of an argument's type, as far as the PTX says: bits are of any kind."""
    kind, size = param.type[0], 8 if argument.is_array else argument.dtype.bytes
    is_float = argument.dtype.is_float and not argument.is_array
    if param.bytes != size:
        return f"of {param.bytes} bytes (`{param.type}`{', a structure' if param.is_array else ''})"
    if param.is_array or kind == "b":
        return "a structure" if param.is_array and argument.is_array else None
    if (kind == "f") != is_float:
        return f"`{param.type}`"
    return "a pointer" if param.is_pointer and not argument.is_array else None


def how(run: Run) -> dict[str, Any]:
    """How a launch is checked."""
    return {"check": run.check, "race": run.race, "max_instructions": run.max_instructions, "counters": True}


def _load(file: Path, device: Device, launch: LaunchOf) -> Kernel:
    """Compiles and loads a kernel. Rejected if that fails."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{file}: {error}") from None
    entry, name = launch.entry, str(file)
    if file.suffix == ".cu":
        try:
            compiled = nvrtc.compile(text, name, device.sm, launch.options, (entry,) if entry else ())
        except CompileError as error:
            raise Rejected("does-not-compile", str(error)) from None
        except WarpwrightError as error:
            raise Unusable(str(error)) from None
        text, entry = compiled.ptx, compiled.names[entry] if entry else None
        name = f"PTX of {file.name}"
    try:
        return device.load(text, name).kernel(entry)
    except WarpwrightError as error:
        raise Rejected("does-not-load", str(error)) from None
