"""What kernels are called in Python. numba makes symbols of C++ of the names of its functions."""

from __future__ import annotations

import re

_PART = re.compile(r"(B?)(\d+)")

# numba's functions have two tags: their number, and a digest of how they were compiled.
_NUMBER = re.compile(r"v\d+")

_DEMANGLED = re.compile(r"`([^`\[]+)((?:\[abi:\w+\])+)((?:\([^`]*\))?)`")


def python_name(symbol: str) -> str:
    """The name of a kernel in Python, if it is one of numba's: `module.double`. Others stay."""
    is_nested = symbol.startswith("_ZN")
    if not symbol.startswith("_Z"):
        return symbol
    at = 3 if is_nested else 2
    parts: list[str] = []
    tags: list[str] = []
    while part := _PART.match(symbol, at):
        at = part.end() + int(part[2])
        text = symbol[part.end() : at]
        # Behind a name that is not nested, and its tags, come the types of its parameters.
        if not part[1] and not is_nested and parts:
            break
        (tags if part[1] else parts).append(text)
    if not parts or not _is_numba(tags):
        return symbol
    # Of versions that were part of numba itself.
    return ".".join(map(_unescaped, parts[1:] if parts[0] == "cudapy" else parts))


def with_python_names(text: str) -> str:
    """A text for people with names as Python has them; types of parameters stay, by which instances differ."""

    def named(found: re.Match[str]) -> str:
        if not _is_numba(re.findall(r"abi:(\w+)", found[2])):
            return found[0]
        parts = found[1].removeprefix("cudapy::").split("::")
        return f"`{'.'.join(map(_unescaped, parts))}{found[3]}`"

    return _DEMANGLED.sub(named, text)


def _is_numba(tags: list[str]) -> bool:
    return len(tags) > 1 and _NUMBER.fullmatch(tags[0]) is not None


def _unescaped(part: str) -> str:
    """A part of a name. numba writes other characters as bytes, `_c3_b6`, and leaves underscores as they are: what
    could be part of an ordinary name stays."""
    part = part.replace("_3clocals_3e", "<locals>").replace("_3clambda_3e", "<lambda>")

    def character(found: re.Match[str]) -> str:
        try:
            return bytes.fromhex(found[0].replace("_", "")).decode()
        except UnicodeDecodeError:
            return found[0]

    return re.sub(r"_[c-f][0-9a-f](?:_[89ab][0-9a-f]){1,3}", character, part)
