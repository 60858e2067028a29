"""Gives libraries of ours the names of NVIDIA's, in this process alone.

The loader reads `LD_LIBRARY_PATH` when a process begins, so that a running one cannot be told of a folder. But a
library that is loaded under a name is what everybody gets who asks for that name later. So this writes a library
without contents that needs libraries of those names, and says itself where they are: a folder of links.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from pathlib import Path

_PAGE = 0x1000
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _RUNPATH = 1, 5, 6, 10, 11, 29


def load_as(libraries: Mapping[str, Path], folder: Path) -> None:
    """Loads each library under its name, by links in a folder, which is there and empty."""
    for name, library in libraries.items():
        (folder / name).symlink_to(library.resolve())
    needs = folder / "needs.so"
    machine = next(iter(libraries.values())).open("rb").read(20)[18:20]
    needs.write_bytes(_needing(list(libraries), str(folder), machine))
    ctypes.CDLL(str(needs), mode=os.RTLD_NOW)


def _needing(names: list[str], folder: str, machine: bytes) -> bytes:
    """A shared library of ELF, 64 bits, that needs others and has nothing: headers, its dynamic section, its texts."""
    texts = b"\0"
    entries = []
    for tag, text in [*((_NEEDED, name) for name in names), (_RUNPATH, folder)]:
        entries.append((tag, len(texts)))
        texts += os.fsencode(text) + b"\0"
    header, program, symbol, entry = 64, 56, 24, 16
    dynamic = header + 3 * program
    symbols = dynamic + entry * (len(entries) + 5)
    strings = symbols + symbol
    entries += [(_STRTAB, strings), (_SYMTAB, symbols), (_STRSZ, len(texts)), (_SYMENT, symbol), (0, 0)]
    size = strings + len(texts)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    # A shared object (3) with three program headers and no sections.
    head = identity + struct.pack("<H", 3) + machine
    head += struct.pack("<IQQQIHHHHHH", 1, 0, header, 0, 0, header, program, 3, 64, 0, 0)

    def part(kind: int, flags: int, at: int, bytes: int, align: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, bytes, bytes, align)

    # What is loaded, readable and writeable; the dynamic section; and a stack that is not executable.
    parts = part(1, 6, 0, size, _PAGE) + part(2, 6, dynamic, symbols - dynamic, 8) + part(0x6474E551, 6, 0, 0, 16)
    return head + parts + b"".join(struct.pack("<QQ", *pair) for pair in entries) + bytes(symbol) + texts
