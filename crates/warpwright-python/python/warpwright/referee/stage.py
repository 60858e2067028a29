"""The arrays of a run: in memory of their own, lent to a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._warpwright import Device, Memory
from ..errors import WarpwrightError
from .arena import Arena
from .dtypes import Array
from .spec import Argument, Sizes, Spec

Scalar = int | float | bool


class Stage:
    """Memory for the arrays of one shape. All runs of the shape have them at the same addresses, so that a candidate
    which knows an array by its address knows nothing."""

    def __init__(self, spec: Spec, sizes: Sizes, device: Device) -> None:
        self.sizes = sizes
        self.arguments = spec.arguments
        self._shapes = {argument.name: spec.extents(argument, sizes) for argument in spec.arrays}
        bytes_of = {
            argument.name: int(np.prod(self._shapes[argument.name], dtype=np.int64)) * argument.dtype.bytes
            for argument in spec.arrays
        }
        # The virtual GPU refuses addresses that it has given to something else.
        for attempt in range(8):
            self.arena = Arena([(bytes_of[argument.name], argument.align) for argument in spec.arrays])
            try:
                self.memories = self._lend(spec, device)
                break
            except WarpwrightError:
                if attempt == 7:
                    raise
        self.arrays: dict[str, Array] = {}
        self.addresses: dict[str, int] = {}
        self.scalars: dict[str, Scalar] = {}
        self.is_repeat = False
        """Whether the values are those of an earlier run."""
        for argument, memory, address in zip(spec.arrays, self.arena.views, self.arena.addresses):
            array = memory.view(argument.dtype.storage).reshape(self._shapes[argument.name])
            self.arrays[argument.name], self.addresses[argument.name] = array, address

    def _lend(self, spec: Spec, device: Device) -> dict[str, Memory]:
        return {
            argument.name: device.lend(
                address, memory.size, self.arena, argument.name, written=argument.is_input, writable=argument.is_output
            )
            for argument, memory, address in zip(spec.arrays, self.arena.views, self.arena.addresses)
        }

    def fill(self, values: Mapping[str, Array], scalars: Mapping[str, Scalar], is_repeat: bool = False) -> None:
        """The contents for a run: of outputs, too, which count as not written."""
        self.scalars, self.is_repeat = dict(scalars), is_repeat
        for argument in self.arguments:
            if argument.is_array:
                self.arrays[argument.name][...] = values[argument.name]
                if argument.role == "out":
                    self.memories[argument.name].forget()
                elif argument.role == "inout":
                    self.memories[argument.name].mark_written()

    def shape(self, argument: Argument) -> tuple[int, ...]:
        """The extents of an array."""
        return self._shapes[argument.name]

    def outputs(self) -> dict[str, Array]:
        """Copies of what the outputs have."""
        return {argument.name: self.arrays[argument.name].copy() for argument in self.arguments if argument.is_output}

    def unwritten(self) -> list[str]:
        """Outputs that are not written in full, after launches with initcheck."""
        return [
            argument.name
            for argument in self.arguments
            if argument.role == "out" and not self.memories[argument.name].is_written()
        ]

    def values(self) -> list[Any]:
        """The arguments in order: addresses and numbers."""
        return [
            self.addresses[argument.name] if argument.is_array else self.scalars[argument.name]
            for argument in self.arguments
        ]
