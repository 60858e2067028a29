"""What is right: a function on NumPy arrays, or another kernel. It is asked when the candidate is gone."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._warpwright import Device
from .candidates import KernelCandidate, Outcome, Rejected, Unusable
from .compare import as_stored
from .dtypes import Array
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
        self._function = _function(spec, spec.reference) if isinstance(spec.reference, FunctionFile) else None

    def expected(self, number: int, values: Mapping[str, Array], scalars: Mapping[str, Scalar]) -> dict[str, Array]:
        """The values of each output: float64 of floats. `values` are the stored elements of all arrays."""
        spec = self._spec
        if self.kernel is not None:
            stored, _ = self.kernel.run(number, values, scalars)
            return {argument.name: argument.dtype.decode(stored[argument.name]) for argument in spec.outputs}
        assert self._function is not None and isinstance(spec.reference, FunctionFile)
        sizes = spec.shapes[number]
        function, where = self._function, f"{spec.file}: {spec.reference.file}, `{spec.reference.function}`"
        given: dict[str, Any] = {**sizes, **scalars}
        for argument in spec.arguments:
            if argument.is_input:
                array = values[argument.name]
                exact = spec.reference.is_exact or argument.dtype.name == "bfloat16"
                given[argument.name] = argument.dtype.decode(array.copy()) if exact else array.copy()
        wanted = inspect.signature(function).parameters
        for name in wanted:
            if name not in given:
                raise SpecError(f"{where} has the parameter `{name}`, which is neither an input, a scalar nor a size")
        try:
            with np.errstate(all="ignore"):
                result = function(**{name: given[name] for name in wanted})
        except Exception:
            raise SpecError(f"{where} failed for {dict(sizes)}:\n{traceback.format_exc(limit=-4)}") from None
        return self._results(result, sizes, where)

    def _results(self, result: Any, sizes: Sizes, where: str) -> dict[str, Array]:
        outputs = self._spec.outputs
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(outputs):
            names = ", ".join(argument.name for argument in outputs)
            raise SpecError(f"{where} returns {len(results)} arrays: it must return, in a tuple, {names}")
        return {argument.name: self._result(argument, array, sizes, where) for argument, array in zip(outputs, results)}

    def _result(self, argument: Argument, result: Any, sizes: Sizes, where: str) -> Array:
        array, shape = np.asarray(result), self._spec.extents(argument, sizes)
        if array.dtype.kind not in "biuf":
            raise SpecError(f"{where} returns {array.dtype} for {argument.name}, and not numbers")
        if array.shape != shape and not (array.ndim == 0 and shape == (1,)):
            raise SpecError(
                f"{where} returns an array of shape {array.shape} for {argument.name}, which has {shape} for "
                f"{dict(sizes)}"
            )
        if not argument.dtype.is_float and array.dtype.kind == "f" and not (array == np.rint(array)).all():
            raise SpecError(f"{where} returns fractions for {argument.name}, which is {argument.dtype.name}")
        values = array.astype(np.float64) if argument.dtype.is_float else array
        return as_stored(argument, values.reshape(shape))


def _function(spec: Spec, named: FunctionFile) -> Callable[..., Any]:
    """Imports the function."""
    loaded = importlib.util.spec_from_file_location("_warpwright_reference", named.file)
    assert loaded is not None and loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    sys.path.insert(0, str(named.file.parent))
    try:
        loaded.loader.exec_module(module)
    except Exception:
        raise SpecError(f"{spec.file}: {named.file} fails:\n{traceback.format_exc(limit=-4)}") from None
    finally:
        sys.path.pop(0)
    function = getattr(module, named.function, None)
    if not callable(function):
        raise SpecError(f"{spec.file}: reference.function: {named.file} has no function `{named.function}`")
    return function
