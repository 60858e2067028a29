"""Judging: all runs of a candidate, then its end, and only then what would have been right.

Values come from a seed that the candidate does not know. What a run has stored is copied before the next, so that
nothing of the reference exists, in any process, while something of the candidate runs.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._warpwright import Device
from ..errors import WarpwrightError
from ..report import Report
from .candidates import Candidate, KernelCandidate, Outcome, Rejected, Unusable
from .compare import compare
from .dtypes import Array
from .expressions import ExpressionError
from .program import ProgramCandidate
from .reference import Reference, ReferenceKernel
from .spec import Sizes, Spec, SpecError
from .stage import Scalar, Stage
from .tolerances import Passing
from .values import poison

SECTOR = 32
"""Bytes of a transaction of global memory."""

_BYTES = f"bytes of global memory, {SECTOR} for each sector that a request of a warp touches,"

MORE = 16
"""Further sets of values by which tolerances are tried that seem to let a constant pass."""

PROGRAM_RUNS = 3
"""Runs with the same shape and scalars that a program has at least."""

MAX_TRAPS = 3
"""Kernels that do not end take their time. After so many, there are no more runs."""


@dataclass(frozen=True)
class RunKey:
    """Which run."""

    shape: int
    order: int
    seed: int
    is_repeat: bool = False


@dataclass
class Reason:
    """Why a candidate is rejected."""

    kind: str
    message: str
    shape: Sizes | None = None
    order: str | None = None
    seed: int | None = None
    count: int = 1
    """Runs with the same."""
    argument: str | None = None
    index: tuple[int, ...] | None = None
    got: float | int | None = None
    expected: float | int | None = None
    finding: dict[str, Any] | None = None
    """As `warpwright run --json` has it."""
    trap: dict[str, Any] | None = None

    @property
    def sort(self) -> Any:
        """What is equal for reasons that are one."""
        found = self.finding or self.trap or {}
        accesses = found.get("accesses") or [found]
        place = tuple((_line(access), access.get("action")) for access in accesses)
        return self.kind, self.argument, found.get("kind"), found.get("kernel"), place


def _line(access: dict[str, Any]) -> Any:
    """The line of an access: a compiler may have made many instructions of it."""
    source = access.get("source")
    return (source["file"], source["line"]) if source else access.get("ptx_line")


@dataclass
class Cost:
    """What the launches of a run do for one shape: of the cheapest run, since a first one may tune, or make tables. It
    is one run: what is least of several, none may be."""

    shape: Sizes
    instructions: int
    """Of warps."""
    bytes: int
    """Of global memory, in sectors of 32."""
    baseline_instructions: int | None = None
    baseline_bytes: int | None = None
    compulsory_bytes: int = 0
    """Of all inputs, once, and of all outputs, once, in such sectors."""


@dataclass
class Verdict:
    """What has come of it."""

    kernel: str
    candidate: str
    seed: int
    runs: int = 0
    planned: int = 0
    reasons: list[Reason] = field(default_factory=list)
    warnings: list[Reason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return not self.reasons

    def add(self, reason: Reason) -> None:
        """Adds a reason of a run, or counts the run."""
        is_warning = reason.finding is not None and reason.finding["severity"] != "error"
        reasons = self.warnings if is_warning else self.reasons
        for other in reasons:
            if other.sort == reason.sort:
                other.count += 1
                return
        reasons.append(reason)

    def note(self, text: str) -> None:
        """Adds what may explain a reason."""
        if text not in self.notes:
            self.notes.append(text)


def judge(spec: Spec, file: Path, seed: int | None = None) -> Verdict:
    """Judges a candidate. SpecError if the specification is of no use, Unusable if the candidate is."""
    return _Judge(spec, file, secrets.randbits(63) if seed is None else seed).verdict()


class _Judge:
    def __init__(self, spec: Spec, file: Path, seed: int) -> None:
        self._spec, self._file, self._seed = spec, file, seed
        self._device = Device(spec.sm)
        # What a program does can be compared if it runs thrice with the same scalars and other arrays.
        self._is_program = file.suffix == ".py"
        least = -(-PROGRAM_RUNS // len(spec.run.orders)) if self._is_program else 1
        self._seeds = max(spec.run.seeds, least)
        self._deadline = time.monotonic() + spec.run.total_seconds
        self._stages: dict[int, Stage] = {}
        self._stored: dict[RunKey, dict[str, Array]] = {}
        self._verdict = Verdict(spec.name, str(file), seed, planned=len(list(self._plan())))
        self._costs: dict[int, list[tuple[int, int]]] = {}

    def verdict(self) -> Verdict:
        # Before anything of the candidate runs, which could write into files.
        reference = Reference(self._spec)
        try:
            return self._verdict_by(reference)
        finally:
            reference.close()

    def _left(self) -> float:
        """The seconds that are left for all. SpecError if there are none."""
        left, total = self._deadline - time.monotonic(), self._spec.run.total_seconds
        if left <= 0:
            raise SpecError(
                f"{self._spec.file}: run.total_seconds: {total:g} seconds are over, and there is no verdict: allow "
                "more, or take fewer or smaller shapes"
            )
        return left

    def _verdict_by(self, reference: Reference) -> Verdict:
        baseline = ReferenceKernel(self._spec, self._spec.baseline) if self._spec.baseline is not None else None
        try:
            candidate = self._open()
        except Rejected as error:
            self._verdict.add(Reason(error.kind, str(error)))
            return self._verdict
        candidate.deadline = self._deadline
        try:
            self._run_all(candidate)
        finally:
            candidate.close()
        if self._verdict.reasons and time.monotonic() >= self._deadline:
            return self._verdict
        self._compare_all(reference)
        self._weigh(baseline)
        return self._verdict

    def _open(self) -> Candidate:
        spec, file = self._spec, self._file
        if not file.is_file():
            raise Unusable(f"{file} is not there")
        if file.suffix == ".py":
            return ProgramCandidate(file, spec, self._device, self._random(1))
        if file.suffix not in (".ptx", ".cu"):
            raise Unusable(f"{file}: a candidate's name ends in .ptx, .cu or .py")
        if spec.launch is None:
            raise SpecError(f"{spec.file}: launch: it is missing: a candidate of {file.suffix} is launched by [launch]")
        return KernelCandidate(file, self._device, spec.launch, spec.run)

    def _plan(self) -> Iterator[RunKey]:
        """Every shape in every order with several values; then each again, for what may have been kept meanwhile."""
        run, shapes = self._spec.run, range(len(self._spec.shapes))
        for shape in shapes:
            for order in range(len(run.orders)):
                for seed in range(self._seeds):
                    yield RunKey(shape, order, seed)
        for shape in reversed(shapes):
            yield RunKey(shape, 0, 0, is_repeat=True)

    def _random(self, purpose: int, *key: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, purpose, *key])

    def _drawn(self, key: RunKey) -> tuple[dict[str, Array], dict[str, Scalar]]:
        """The arrays of a run, outputs as they are before it, and the scalars."""
        spec, sizes = self._spec, self._spec.shapes[key.shape]
        random = self._random(2, key.shape, key.order, key.seed)
        same = (key.order * self._seeds + key.seed) % max(1, len(spec.run.orders) * self._seeds // PROGRAM_RUNS)
        of_scalars = self._random(5, key.shape, same) if self._is_program and key.seed < self._seeds else random
        before = self._random(3, key.shape, key.order, key.seed, int(key.is_repeat))
        arrays: dict[str, Array] = {}
        scalars: dict[str, Scalar] = {}
        for number, argument in enumerate(spec.arguments):
            try:
                if argument.role == "out":
                    arrays[argument.name] = poison(argument.dtype, spec.extents(argument, sizes), before)
                elif argument.is_array:
                    assert argument.values is not None
                    extents = spec.extents(argument, sizes)
                    arrays[argument.name] = argument.values.draw(argument.dtype, extents, sizes, random)
                elif argument.value is not None:
                    scalars[argument.name] = argument.value.value(sizes)
                else:
                    assert argument.values is not None
                    drawn = argument.values.draw(argument.dtype, (), sizes, of_scalars)
                    scalars[argument.name] = drawn.item()
            except ExpressionError as error:
                raise SpecError(f"{spec.file}: argument[{number}].values: {error}") from None
        return arrays, scalars

    def _order(self, key: RunKey) -> str:
        order = self._spec.run.orders[key.order]
        if order != "random":
            return order
        return f"random:{int(self._random(4, key.shape, key.order, key.seed).integers(1 << 32))}"

    def _run_all(self, candidate: Candidate) -> None:
        traps = 0
        for key in self._plan():
            if time.monotonic() >= self._deadline:
                total = self._spec.run.total_seconds
                why = f"its runs have taken the {total:g} seconds that there are for all (run.total_seconds)"
                self._verdict.add(Reason("timeout", why))
                return
            arrays, scalars = self._drawn(key)
            try:
                if key.shape not in self._stages:
                    self._stages[key.shape] = Stage(self._spec, self._spec.shapes[key.shape], self._device)
            except WarpwrightError as error:
                raise SpecError(f"{self._spec.file}: shapes[{key.shape}]: {error}") from None
            stage = self._stages[key.shape]
            stage.fill(arrays, scalars, key.is_repeat)
            outcome = candidate.run(stage, self._order(key))
            self._verdict.runs += 1
            self._judge_run(key, stage, outcome, arrays)
            traps += any(report.trap is not None for report in outcome.reports)
            if outcome.is_last or traps >= MAX_TRAPS:
                return

    def _reason(self, key: RunKey, kind: str, message: str, **more: Any) -> Reason:
        return Reason(kind, message, dict(self._spec.shapes[key.shape]), self._order(key), key.seed, **more)

    def _judge_run(self, key: RunKey, stage: Stage, outcome: Outcome, arrays: dict[str, Array]) -> None:
        """What is wrong with a run whatever it has stored. If there is a result, it is kept."""
        reasons = [self._reason(key, kind, message) for kind, message in outcome.failures]
        for report in outcome.reports:
            reasons += self._found(key, report)
        for argument in self._spec.arguments:
            if argument.role == "in" and stage.arrays[argument.name].tobytes() != arrays[argument.name].tobytes():
                message = f"the input {argument.name} is not what it was before the run"
                reasons.append(self._reason(key, "changed-input", message, argument=argument.name))
        if not outcome.failures and all(report.trap is None for report in outcome.reports):
            self._stored[key] = stage.outputs()
            if not key.is_repeat:
                self._costs.setdefault(key.shape, []).append(costs_of(outcome))
            # What follows from races and uninitialised data counts as not written, wherever it is stored.
            tools = {reason.finding["tool"] for reason in reasons if reason.finding is not None}
            if self._spec.run.has("initcheck") and not tools & {"initcheck", "racecheck"}:
                for name in stage.unwritten():
                    what = (
                        f"no launch writes all of {name}"
                        if outcome.reports
                        else f"no kernel is launched to write {name}"
                    )
                    reasons.append(self._reason(key, "unwritten-output", what, argument=name))
                    del self._stored[key][name]
        # A finding at several instructions of a line is one.
        for number, reason in enumerate(reasons):
            if all(reason.sort != other.sort for other in reasons[:number]):
                self._verdict.add(reason)
        for note in outcome.notes:
            self._verdict.note(note)

    def _found(self, key: RunKey, report: Report) -> list[Reason]:
        """What was found of a launch."""
        if report.is_clean:
            return []
        document = json.loads(report.to_json())
        # Whether outputs are written in full is seen at the end of the run.
        findings = [finding for finding in document["findings"] if finding["kind"] != "unwritten-output"]
        reasons = [self._reason(key, "finding", finding["message"], finding=finding) for finding in findings]
        if (trap := document["trap"]) is not None:
            reasons.append(self._reason(key, "trap", trap["message"], trap=trap))
        return reasons

    def _compare_all(self, reference: Reference) -> None:
        """Compares what was stored with what is right."""
        spec = self._spec
        right: set[tuple[int, str]] = set()
        passing: dict[tuple[str, int | None], Passing] = {}
        for key in self._plan():
            if key not in self._stored and key.is_repeat:
                continue
            arrays, scalars = self._drawn(key)
            expected = reference.expected(key.shape, arrays, scalars, self._left())
            for argument in spec.outputs:
                for shape in (key.shape, None):
                    known = passing.setdefault((argument.name, shape), Passing(argument))
                    known.add(argument.dtype.decode(arrays[argument.name]), expected[argument.name])
                stored = self._stored.get(key, {}).get(argument.name)
                if stored is None:
                    continue
                found = compare(argument, stored, expected[argument.name])
                if found is None:
                    if (key.order, key.seed) == (0, 0):
                        right.add((key.shape, argument.name))
                    continue
                kind, message = "wrong-values", found.message(argument)
                if key.is_repeat and (key.shape, argument.name) in right:
                    kind = "not-repeatable"
                    message += "; the first run with these inputs was right"
                details = {"index": found.index, "got": found.got, "expected": found.expected}
                self._verdict.add(self._reason(key, kind, message, argument=argument.name, **details))
        for (name, place), known in passing.items():
            self._check_tolerances(reference, name, place, known)

    def _check_tolerances(self, reference: Reference, name: str, place: int | None, known: Passing) -> None:
        """Refuses tolerances by which a kernel that computes nothing would pass, for a shape or for all of them."""
        spec = self._spec
        number, argument = next((n, given) for n, given in enumerate(spec.arguments) if given.name == name)
        sizes = None if place is None else spec.shapes[place]
        shapes = range(len(spec.shapes)) if place is None else [place]
        # A few runs of few elements may be alike by chance.
        for key in (RunKey(shape, 0, self._seeds + more) for more in range(MORE) for shape in shapes):
            if known.loose(sizes) is None:
                return
            arrays, scalars = self._drawn(key)
            expected = reference.expected(key.shape, arrays, scalars, self._left())
            known.add(argument.dtype.decode(arrays[name]), expected[name])
        what = known.loose(sizes)
        if what is None:
            return
        where = "" if sizes is None else f"for {', '.join(f'{size} = {value}' for size, value in sizes.items())}, "
        if known.is_special:
            raise SpecError(
                f"{spec.file}: argument[{number}]: {where}the reference has {what}: a kernel that writes that would "
                "pass. Choose other values for the inputs, or leave the shape out"
            )
        raise SpecError(
            f"{spec.file}: argument[{number}].atol: {where}{what} would pass for right (rtol {argument.rtol:g}, atol "
            f"{argument.atol:g}), and results are up to {known.largest:g}. Make the tolerances smaller, or choose "
            "other values for the inputs"
        )

    def _weigh(self, baseline: ReferenceKernel | None) -> None:
        """Compares the costs of one run with the limits: of that which keeps them, or comes nearest to that."""
        spec, limits, verdict = self._spec, self._spec.limits, self._verdict
        for number, costs in self._costs.items():
            stage, compulsory, of = self._stages[number], 0, (0, 0)
            for argument in spec.arrays:
                sectors = -(-stage.arrays[argument.name].nbytes // SECTOR)
                compulsory += sectors * SECTOR * (argument.is_input + argument.is_output)
            if baseline is not None:
                self._left()
                _, outcome = baseline.run(number, *self._drawn(RunKey(number, 0, 0)))
                of = costs_of(outcome)
            bounds = [
                (kind, limit, whole, what)
                for kind, limit, whole, what in (
                    ("instructions", limits.instructions, of[0], "the baseline's"),
                    ("bytes", limits.bytes, of[1], "the baseline's"),
                    ("traffic", limits.traffic, compulsory, "the bytes of its inputs and outputs,"),
                )
                if limit is not None
            ]

            def excess(spent: tuple[int, int], bounds: list[tuple[str, float, int, str]] = bounds) -> float:
                """By how much a run is over the limit that it is most over."""
                over = [1.0]
                for kind, limit, whole, _ in bounds:
                    part = spent[kind != "instructions"]
                    if part > limit * whole:
                        over.append(part / (limit * whole) if limit * whole else float("inf"))
                return max(over)

            best = min(costs, key=lambda spent: (excess(spent), spent))
            known = of if baseline is not None else (None, None)
            verdict.costs.append(Cost(spec.shapes[number], best[0], best[1], known[0], known[1], compulsory))
            for kind, limit, whole, what in bounds:
                spent = best[kind != "instructions"]
                if spent > limit * whole:
                    unit = "instructions of warps" if kind == "instructions" else _BYTES
                    message = f"{spent} {unit} are more than {limit:g} times {what} {whole}"
                    verdict.add(Reason(kind, message, dict(spec.shapes[number])))


def costs_of(outcome: Outcome) -> tuple[int, int]:
    """Instructions of warps, and bytes of global memory in whole sectors, of all launches of a run."""
    instructions = sectors = 0
    for report in outcome.reports:
        counters = report.counters
        instructions += counters["instructions"]["warps"]
        sectors += sum(counters["memory"]["global"][kind]["transactions"] for kind in ("loads", "stores", "atomics"))
    return instructions, sectors * SECTOR
