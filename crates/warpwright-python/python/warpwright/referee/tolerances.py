"""What would pass for right without being computed: one value everywhere, or what the output has before the run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .compare import excess
from .dtypes import Array
from .spec import Argument, Sizes

CLOSE = 1e-3
"""Results of a shape that differ by less than this, as a part of the largest, and by less than rtol, may be one value
by definition where a size is 1: x / sqrt(x² + 1e-5)."""


class Passing:
    """What would pass for all results that were added, of one output."""

    def __init__(self, argument: Argument) -> None:
        self._argument = argument
        self._is_exact = not argument.dtype.is_float and argument.rtol == 0 and argument.atol == 0
        self._special: float | None = None
        self._is_none = False
        self._low: float | int = -math.inf
        """The bounds of what is near enough to all results."""
        self._high: float | int = math.inf
        self._least: float | int = math.inf
        self._most: float | int = -math.inf
        self._is_unchanged = self._is_same = True

    def add(self, before: Array, expected: Array) -> None:
        """Adds the values that an output has before a run, and should have after it."""
        argument = self._argument
        if self._is_unchanged:
            self._is_unchanged = bool((excess(argument, before, expected) <= 1).all())
            self._is_same = self._is_same and bool((excess(_rounding(argument), before, expected) <= 1).all())
        finite = np.isfinite(expected) if argument.dtype.is_float else np.ones(expected.shape, bool)
        if not finite.all():
            specials = np.unique(expected[~finite])
            other = float(specials[0])
            is_first = self._special is None and self._low == -math.inf
            same = other == self._special or (math.isnan(other) and math.isnan(self._special or 0.0))
            self._is_none = self._is_none or specials.size > 1 or bool(finite.any()) or not (is_first or same)
            self._special = other
            return
        self._is_none = self._is_none or self._special is not None
        least, most = expected.min(), expected.max()
        self._least, self._most = min(self._least, least.item()), max(self._most, most.item())
        if self._is_exact:
            self._low, self._high = self._most, self._least
            return
        values = expected.astype(np.float64)
        allowed = argument.atol + argument.rtol * np.abs(values)
        self._low = max(self._low, float((values - allowed).max()))
        self._high = min(self._high, float((values + allowed).min()))

    @property
    def constant(self) -> float | int | None:
        """A value that would pass for every element."""
        if self._is_none:
            return None
        if self._special is not None:
            return self._special
        if self._is_exact:
            return self._low if self._low == self._high else None
        if not math.isfinite(self._low) or not self._low <= self._high:
            return None
        dtype = self._argument.dtype
        if not dtype.is_float:
            return max(math.ceil(self._low), min(0, math.floor(self._high)))
        # The kernel must be able to store it.
        for value in (0.0, (self._low + self._high) / 2):
            stored = float(dtype.decode(dtype.encode(np.array([value])))[0])
            if self._low <= stored <= self._high:
                return stored
        return None

    @property
    def is_special(self) -> bool:
        """Whether that is no number."""
        return self._special is not None

    @property
    def largest(self) -> float:
        """The magnitude of results."""
        return float(max(abs(self._least), abs(self._most)))

    def loose(self, sizes: Sizes | None) -> str | None:
        """What would pass and shall not, in words; for a shape, whose results may be one value, or what was there
        before, but for rounding. So it is of softmax where a row has one element."""
        constant, name = self.constant, self._argument.name
        if constant is not None:
            rtol = _rounding(self._argument).rtol
            if sizes is not None and 1 in sizes.values():
                rtol = max(rtol, min(self._argument.rtol, CLOSE))
            is_one = not self.is_special and self._most - self._least <= rtol * self.largest
            if sizes is None or not is_one:
                return f"{constant:g} in all elements of {name}"
        if self._is_unchanged and not (sizes is not None and self._is_same):
            return f"what {name} has before the run"
        return None


def _rounding(argument: Argument) -> Argument:
    """With tolerances of a few units in the last place."""
    dtype = argument.dtype
    if not dtype.is_float:
        return replace(argument, rtol=0.0, atol=0.0)
    eps = 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype.storage).eps)
    # The reference computes in float64, which is not exact either.
    return replace(argument, rtol=min(max(4 * eps, 1e-13), CLOSE), atol=0.0)
