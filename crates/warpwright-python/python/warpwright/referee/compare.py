"""Whether results are those of the reference, within the tolerances of an argument."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dtypes import Array
from .spec import Argument


@dataclass(frozen=True)
class Mismatch:
    """Elements that are wrong, and the worst of them."""

    index: tuple[int, ...]
    got: float | int
    expected: float | int
    wrong: int
    elements: int

    def message(self, argument: Argument) -> str:
        """In words."""
        place = f"{argument.name}[{', '.join(map(str, self.index))}]"
        bounds = f"rtol {argument.rtol:g}, atol {argument.atol:g}"
        return (
            f"{place} is {self.got!r}, and should be {self.expected!r} ({bounds}); "
            f"{self.wrong} of {self.elements} elements are wrong"
        )


def _number(value: np.generic) -> float | int:
    return value.item()


def excess(argument: Argument, got: Array, expected: Array) -> Array:
    """By how much each element is off, as a multiple of what is allowed: right up to 1.

    NaN is right where NaN is expected, an infinity where that is. `got` and `expected` are values, not stored elements.
    """
    if not argument.dtype.is_float and argument.rtol == 0 and argument.atol == 0:
        return np.where(got == expected, 0.0, np.inf)
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        error = np.abs(got - expected)
        allowed = argument.atol + argument.rtol * np.abs(expected)
        off = np.where(error == 0, 0.0, error / allowed)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    comparable = np.isfinite(got) & np.isfinite(expected)
    return np.where(same, 0.0, np.where(comparable, off, np.inf))


def as_stored(argument: Argument, expected: Array) -> Array:
    """The reference's values, infinite where the type has no number as large; integers in the type."""
    if not argument.dtype.is_float:
        return expected.astype(argument.dtype.storage)
    rounded = argument.dtype.decode(argument.dtype.encode(expected))
    return np.where(np.isinf(rounded), rounded, expected)


def compare(argument: Argument, stored: Array, expected: Array) -> Mismatch | None:
    """The worst element that is wrong, of what a kernel has stored."""
    # Bytes of a bool may be other than 0 and 1.
    got = stored.view(np.uint8) if argument.dtype.name == "bool" else argument.dtype.decode(stored)
    off = excess(argument, got, expected)
    wrong = int(np.count_nonzero(off > 1))
    if wrong == 0:
        return None
    worst = np.unravel_index(int(np.argmax(off)), off.shape)
    index = tuple(int(part) for part in worst)
    return Mismatch(index, _number(got[worst]), _number(expected[worst]), wrong, off.size)
