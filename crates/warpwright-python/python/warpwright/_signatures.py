"""What kernels of CUDA C++ and their parameters are called in the source: PTX has lost it.

This is no parser of C++. What it does not understand, such as a kernel that a macro makes, has no names here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
_CALL = re.compile(r"(\w+)\s*(<[^;{}()]*>)?\s*\(")
_ATTRIBUTES = {"__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__attribute__", "__declspec"}
_NAMED = re.compile(r"(?:\w\s+|[*&>]\s*)(?:__restrict__\s+|__restrict\s+|const\s+)*(\w+)\s*(?:\[[^\]]*\]\s*)*")
_TYPES = {
    "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "const", "volatile",
    "__restrict__", "__restrict", "__grid_constant__",
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """A kernel of a source."""

    name: str
    params: tuple[str, ...] | None
    """What its parameters are called, if each has a name."""
    is_template: bool


def signatures(text: str) -> list[Signature]:
    """The kernels that a source declares or defines."""
    code = _NO_CODE.sub(lambda found: '""' if found[0][0] in "\"'" else " ", text)
    found = []
    for start in re.finditer(r"\b__global__\b", code):
        at = start.end()
        while (call := _CALL.search(code, at)) and call[1] in _ATTRIBUTES:
            at = _end(code, call.end())
        # Not one of another declaration, or of an instance.
        if call is None or call[2] or re.search(r"[;{}]", code[at : call.start()]):
            continue
        params = code[call.end() : _end(code, call.end()) - 1]
        head = code[max(code.rfind(mark, 0, start.start()) for mark in ";{}") + 1 : start.start()]
        found.append(Signature(call[1], _names(params), "template" in head.split("<")[0].split()))
    return found


def parameters(text: str, symbol: str, count: int) -> tuple[str, ...] | None:
    """What the parameters of a kernel are called, which has that name and that number of them in PTX; None where that
    is not clear."""
    name = source_name(symbol)
    found = {signature.params for signature in signatures(text) if signature.name == name}
    (names,) = found if len(found) == 1 else (None,)
    return names if names is not None and len(names) == count else None


def source_name(symbol: str) -> str:
    """The name of a kernel without its namespaces and types, of the one in PTX."""
    start = re.match(r"_ZN?L?", symbol)
    if start is None:
        return symbol
    at, name = start.end(), ""
    while part := re.compile(r"L?(\d+)").match(symbol, at):
        # Behind a name that is in no namespace come its types.
        if name and start[0][2:3] != "N":
            break
        at = part.end() + int(part[1])
        name = symbol[part.end() : at]
    return name or symbol


def listed(text: str, symbols: Sequence[str]) -> str:
    """The kernels that there are, for a message: those of a source, and others of its PTX."""
    own = {found.name: found.name + ("<…>" if found.is_template else "") for found in signatures(text)}
    others = [symbol for symbol in symbols if source_name(symbol) not in own]
    return ", ".join([*own.values(), *others])


def _end(code: str, at: int) -> int:
    """Where the parentheses end that begin before an index."""
    depth = 1
    while depth and at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


def _names(params: str) -> tuple[str, ...] | None:
    depth, parts = 0, [""]
    for character in params:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if parts in ([""], ["void"]) or not params.strip():
        return ()
    names = []
    for part in parts:
        named = re.search(_NAMED.pattern + r"$", part.split("=")[0].strip())
        if named is None or named[1] in _TYPES:
            return None
        names.append(named[1])
    return tuple(names) if len(set(names)) == len(names) else None
