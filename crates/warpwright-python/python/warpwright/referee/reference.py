"""What is right: a function on NumPy arrays, or another kernel. It is asked when the candidate is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._warpwright import Device
from .candidates import KernelCandidate, Outcome, Rejected, Unusable
from .compare import as_stored
from .dtypes import Array
from .function import Function, FunctionError
from .spec import Argument, FunctionFile, KernelFile, Sizes, Spec, SpecError
from .stage import Scalar, Stage


class ReferenceKernel:
    """A kernel that is right, on a device of its own."""

    def __init__(self, spec: Spec, named: KernelFile) -> None:
        self._spec, self._named, self._device = spec, named, Device(spec.sm)
        try:
            self._kernel = KernelCandidate(named.file, self._device, named.launch, replace(spec.run, check="memcheck"))
        except (Rejected, Unusable) as error:
            raise SpecError(f"{spec.file}: {named.file}: {error}") from None
        self._stages: dict[int, Stage] = {}

    def run(
        self, number: int, values: Mapping[str, Array], scalars: Mapping[str, Scalar]
    ) -> tuple[dict[str, Array], Outcome]:
        """What it stores for the shape of that number, and what it cost. SpecError if it is wrong."""
        sizes = self._spec.shapes[number]
        if number not in self._stages:
            self._stages[number] = Stage(self._spec, sizes, self._device)
        stage = self._stages[number]
        stage.fill(values, scalars)
        outcome = self._kernel.run(stage, "issue")
        for _, message in outcome.failures:
            raise SpecError(f"{self._spec.file}: {self._named.file}: {message}")
        for report in outcome.reports:
            if not report.ok:
                raise SpecError(
                    f"{self._spec.file}: {self._named.file} is wrong itself, for {dict(sizes)}:\n{report.text}"
                )
        return stage.outputs(), outcome


class Reference:
    """The values that outputs should have."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.kernel = ReferenceKernel(spec, spec.reference) if isinstance(spec.reference, KernelFile) else None
        self._function: Function | None = None
        if isinstance(spec.reference, FunctionFile):
            try:
                self._function = Function(spec.reference.file, spec.reference.function)
            except FunctionError as error:
                raise SpecError(f"{spec.file}: {spec.reference.file} {error}") from None

    def close(self) -> None:
        """Ends its process."""
        if self._function is not None:
            self._function.close()

    def expected(
        self, number: int, values: Mapping[str, Array], scalars: Mapping[str, Scalar], left: float
    ) -> dict[str, Array]:
        """The values of each output: float64 of floats. `values` are the stored elements of all arrays. There are
        `left` seconds for all."""
        spec = self._spec
        seconds = min(spec.reference_seconds, left)
        if self.kernel is not None:
            began = time.monotonic()
            stored, _ = self.kernel.run(number, values, scalars)
            if time.monotonic() - began > seconds:
                why = f"takes more than {seconds:g} seconds for {dict(spec.shapes[number])}: see reference.seconds"
                raise SpecError(f"{spec.file}: {spec.reference.file} {why}")
            return {argument.name: argument.dtype.decode(stored[argument.name]) for argument in spec.outputs}
        assert self._function is not None and isinstance(spec.reference, FunctionFile)
        sizes = spec.shapes[number]
        where = f"{spec.file}: {spec.reference.file}, `{spec.reference.function}`"
        numbers: dict[str, Any] = {**sizes, **scalars}
        arrays = {}
        for argument in spec.arguments:
            if argument.is_input:
                array = values[argument.name]
                exact = spec.reference.is_exact or argument.dtype.name == "bfloat16"
                arrays[argument.name] = argument.dtype.decode(array) if exact else array
        wanted = self._function.parameters
        for name in wanted:
            if name not in numbers and name not in arrays:
                raise SpecError(f"{where} has the parameter `{name}`, which is neither an input, a scalar nor a size")
        try:
            results = self._function.call(
                {name: value for name, value in numbers.items() if name in wanted and name not in arrays},
                {name: array for name, array in arrays.items() if name in wanted},
                seconds,
            )
        except FunctionError as error:
            raise SpecError(f"{where}, for {dict(sizes)}, {error}") from None
        return self._results(results, sizes, where)

    def _results(self, results: list[Array], sizes: Sizes, where: str) -> dict[str, Array]:
        outputs = self._spec.outputs
        if len(results) != len(outputs):
            names = ", ".join(argument.name for argument in outputs)
            raise SpecError(f"{where} returns {len(results)} arrays: it must return, in a tuple, {names}")
        return {argument.name: self._result(argument, array, sizes, where) for argument, array in zip(outputs, results)}

    def _result(self, argument: Argument, array: Array, sizes: Sizes, where: str) -> Array:
        shape = self._spec.extents(argument, sizes)
        if array.shape != shape and not (array.ndim == 0 and shape == (1,)):
            raise SpecError(
                f"{where} returns an array of shape {array.shape} for {argument.name}, which has {shape} for "
                f"{dict(sizes)}"
            )
        if not argument.dtype.is_float and array.dtype.kind == "f" and not (array == np.rint(array)).all():
            raise SpecError(f"{where} returns fractions for {argument.name}, which is {argument.dtype.name}")
        values = array.astype(np.float64) if argument.dtype.is_float else array
        return as_stored(argument, values.reshape(shape))
