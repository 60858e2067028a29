"""Whole numbers that follow from sizes: `ceil_div(n, 256)`.

An expression is arithmetic on names and whole numbers, and nothing else: a specification is data, and no program.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

LIMIT = 1 << 63
"""Values are smaller than this."""

LONGEST = 500
"""Characters of an expression."""

_BINARY: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "ceil_div": lambda numerator, divisor: -(-numerator // divisor),
    "max": max,
    "min": min,
    "next_power_of_2": lambda value: 1 << max(value - 1, 0).bit_length(),
}

_SIGNS = ", ".join(sign for sign, _ in _BINARY.values())

_RULE = f"it is made of whole numbers, names, {_SIGNS}, parentheses and {', '.join(_FUNCTIONS)}"


class ExpressionError(ValueError):
    """What is wrong with an expression."""


@dataclass(frozen=True)
class Expression:
    """An expression that was read."""

    text: str
    _tree: ast.expr

    @staticmethod
    def read(given: object, names: Iterable[str]) -> Expression:
        """An expression of its text, or of a whole number, over names. ExpressionError if it is none."""
        if isinstance(given, bool) or not isinstance(given, (int, str)):
            raise ExpressionError(f"{given!r} is neither a whole number nor an expression as text")
        text = str(given)
        if len(text) > LONGEST:
            raise ExpressionError(f"an expression of {len(text)} characters is longer than {LONGEST}")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ExpressionError(f"`{text}` is no expression: {_RULE}") from None
        _check(tree, text, frozenset(names))
        return Expression(text, tree)

    def value(self, sizes: Mapping[str, int]) -> int:
        """Its value. ExpressionError where there is none."""
        try:
            return _value(self._tree, sizes)
        except ZeroDivisionError:
            raise ExpressionError(f"`{self.text}` divides by 0, with {_shown(sizes)}") from None
        except OverflowError:
            raise ExpressionError(f"`{self.text}` is 2^63 or more, with {_shown(sizes)}") from None


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def _check(tree: ast.expr, text: str, names: frozenset[str]) -> None:
    """Refuses what is not arithmetic."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return
    if isinstance(tree, ast.Name):
        if tree.id not in names:
            known = ", ".join(sorted(names)) or "none"
            raise ExpressionError(f"`{text}` has `{tree.id}`, which is no size: the sizes are {known}")
        return
    parts: list[ast.expr]
    if isinstance(tree, ast.BinOp) and type(tree.op) in _BINARY:
        parts = [tree.left, tree.right]
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        parts = [tree.operand]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _FUNCTIONS:
        count = {"ceil_div": 2, "next_power_of_2": 1}.get(tree.func.id)
        if tree.keywords or len(tree.args) != (count or max(len(tree.args), 2)):
            raise ExpressionError(f"`{text}`: `{tree.func.id}` takes {count or 'two or more'} numbers")
        parts = tree.args
    else:
        raise ExpressionError(f"`{text}` has `{ast.unparse(tree)}`: {_RULE}")
    for part in parts:
        _check(part, text, names)


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Constant):
        assert isinstance(tree.value, int)
        value = tree.value
    elif isinstance(tree, ast.Name):
        value = sizes[tree.id]
    elif isinstance(tree, ast.BinOp):
        value = _BINARY[type(tree.op)][1](_value(tree.left, sizes), _value(tree.right, sizes))
    elif isinstance(tree, ast.UnaryOp):
        value = -_value(tree.operand, sizes)
    else:
        assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
        value = _FUNCTIONS[tree.func.id](*(_value(part, sizes) for part in tree.args))
    if abs(value) >= LIMIT:
        raise OverflowError
    return value
