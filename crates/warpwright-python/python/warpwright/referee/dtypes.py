"""Types of elements: how NumPy keeps them, their values in float64, and how exact a result of that type is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DType:
    """A type of elements."""

    name: str
    storage: np.dtype[Any]
    """What NumPy keeps it as. It has no bfloat16: an array of that is its bits."""
    is_float: bool
    rtol: float
    """The relative and the absolute error of a result, unless an argument says another. Integers are exact."""
    atol: float

    @property
    def bytes(self) -> int:
        """Of an element."""
        return self.storage.itemsize

    def has(self, value: float) -> bool:
        """Whether a number is in its range."""
        if self.name == "bool":
            return value in (0, 1)
        if not self.is_float:
            bounds = np.iinfo(self.storage)
            return value == int(value) and int(bounds.min) <= value <= int(bounds.max)
        return bool(np.isfinite(self.decode(self.encode(np.array([float(value)])))[0]))

    def decode(self, array: Array) -> Array:
        """The values of stored elements: float64 of floats, integers as they are."""
        # Bytes that nobody has written may be a signalling NaN.
        with np.errstate(invalid="ignore"):
            if self.name == "bfloat16":
                return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            return array.astype(np.float64) if self.is_float else array

    def encode(self, values: Array) -> Array:
        """Elements to store, of values, rounded to the nearest."""
        if self.name != "bfloat16":
            with np.errstate(over="ignore", invalid="ignore"):
                return values.astype(self.storage)
        bits = values.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _floats(name: str, storage: Any, rtol: float, atol: float) -> DType:
    return DType(name, np.dtype(storage), True, rtol, atol)


# A few units in the last place, and room for sums in another order.
_ALL = [
    _floats("float64", np.float64, 1e-10, 1e-12),
    _floats("float32", np.float32, 1e-4, 1e-5),
    _floats("float16", np.float16, 4e-3, 1e-3),
    _floats("bfloat16", np.uint16, 3e-2, 1e-2),
    *(
        DType(name, np.dtype(name), False, 0.0, 0.0)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
    ),
]

DTYPES = {dtype.name: dtype for dtype in _ALL}
"""Those that arguments can have, by name."""
