"""Values of arguments: drawn anew for each run, from distributions that differ from run to run.

A kernel that guesses, remembers, or relies on what happens to hold of one distribution (a mean of zero, values below
one) is wrong for some run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .dtypes import Array, DType
from .expressions import Expression, ExpressionError


@dataclass(frozen=True)
class Range:
    """A number, or an interval that a run draws one from."""

    low: float
    high: float

    def draw(self, random: np.random.Generator) -> float:
        """The number of a run."""
        return self.low if self.low == self.high else float(random.uniform(self.low, self.high))


KINDS = {
    "normal": ("scale", "offset"),
    "uniform": ("scale", "offset"),
    "integers": ("low", "high"),
    "permutation": (),
    "constant": ("value",),
}
"""The kinds of values, and the keys that each has."""


@dataclass(frozen=True)
class Values:
    """How the values of an argument are drawn.

    - normal: offset + scale × the normal distribution
    - uniform: offset + scale × numbers from -1 to 1
    - integers: whole numbers from `low` to `high`, that not included
    - permutation: the numbers from 0 on, in any order
    - constant: one value
    """

    kind: str
    scale: Range = Range(0.5, 2.0)
    offset: Range | None = None
    """If there is none, it is up to twice the scale away from 0, and never near to it."""
    low: Expression | None = None
    high: Expression | None = None
    value: float = 0.0

    def check(self, dtype: DType, shape: tuple[int, ...], sizes: Mapping[str, int]) -> None:
        """ExpressionError if there are values that the type has not."""
        ends: list[float] = []
        if self.kind == "constant":
            ends = [self.value]
        elif self.kind == "permutation":
            ends = [int(np.prod(shape, dtype=np.int64)) - 1]
        elif self.kind == "integers":
            low, high = self._bounds(sizes)
            ends = [low, high - 1]
        for end in ends:
            if not dtype.has(end):
                raise ExpressionError(f"{end} is among them, which no {dtype.name} is")

    def _bounds(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        low, high = (bound.value(sizes) if bound else default for bound, default in ((self.low, 0), (self.high, 100)))
        if high <= low:
            raise ExpressionError(f"there are no integers from {low} to {high}, that not included")
        return low, high

    def draw(
        self, dtype: DType, shape: tuple[int, ...], sizes: Mapping[str, int], random: np.random.Generator
    ) -> Array:
        """Elements for a run. ExpressionError if there are none in the bounds."""
        if self.kind == "constant":
            return dtype.encode(np.full(shape, self.value))
        if self.kind == "permutation":
            return dtype.encode(random.permutation(int(np.prod(shape, dtype=np.int64))).reshape(shape))
        if self.kind == "integers":
            low, high = self._bounds(sizes)
            return dtype.encode(random.integers(low, high, shape))
        scale = self.scale.draw(random)
        if self.offset is None:
            offset = float(random.choice([-1, 1]) * random.uniform(0.5, 2) * scale)
        else:
            offset = self.offset.draw(random)
        drawn = random.standard_normal(shape) if self.kind == "normal" else random.uniform(-1, 1, shape)
        return dtype.encode(offset + scale * drawn)


def poison(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """What an output has before a run: any bytes, others in each run."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.bytes
    return np.frombuffer(random.bytes(count), dtype.storage).reshape(shape).copy()
