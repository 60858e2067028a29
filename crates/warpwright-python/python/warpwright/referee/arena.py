"""Memory for arrays, each between pages that nothing may touch, at the same addresses in two processes.

```text
base                                                    pages that no access reaches: ::
 :::::::: [      | x x x x x ] :::::::: [    | y y y ] ::::::::
```

An array ends where its pages end, or as little before as its alignment asks.
"""

from __future__ import annotations

import ctypes
import mmap
import secrets
from collections.abc import Sequence

import numpy as np

from ..errors import WarpwrightError

PAGE = mmap.PAGESIZE

LOWEST, HIGHEST = 0x1000_0000_0000, 0x2F00_0000_0000
"""Where arrays are: neither Linux nor the virtual GPU puts anything there by itself."""

_PROT_NONE, _FIXED_NOREPLACE = 0, 0x100000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def view(address: int, size: int, owner: object) -> np.ndarray:
    """Memory as bytes. The array keeps its owner."""
    buffer = (ctypes.c_uint8 * size).from_address(address)
    buffer._owner = owner  # type: ignore[attr-defined]
    return np.frombuffer(buffer, np.uint8)  # type: ignore[call-overload]


class Arena:
    """Memory of arrays, each of so many bytes and at a multiple of so many. It is there as long as this."""

    def __init__(self, arrays: Sequence[tuple[int, int]], base: int | None = None) -> None:
        """At `base`, or where there is room. WarpwrightError if there is none."""
        self.base, self.size = 0, PAGE
        ends: list[tuple[int, int]] = []
        for size, _ in arrays:
            pages = -(-size // PAGE) * PAGE
            ends.append((self.size, self.size + pages))
            self.size += pages + PAGE
        for _ in range(16):
            wanted = base or LOWEST + secrets.randbelow((HIGHEST - LOWEST) // PAGE) * PAGE
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
            got = _libc.mmap(wanted, self.size, _PROT_NONE, flags, -1, 0)
            if got == wanted:
                self.base = wanted
                break
            if got not in (None, ctypes.c_void_p(-1).value):
                _libc.munmap(got, self.size)
        else:
            raise WarpwrightError(f"there are no {self.size} bytes of memory for the arrays of a run")
        self.addresses: list[int] = []
        self.views: list[np.ndarray] = []
        for (size, align), (first, end) in zip(arrays, ends):
            if _libc.mprotect(self.base + first, end - first, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
                raise WarpwrightError(f"there are no {size} bytes of memory for an array")
            address = self.base + end - -(-size // align) * align
            self.addresses.append(address)
            self.views.append(view(address, size, self))

    def __del__(self) -> None:
        if self.base:
            _libc.munmap(self.base, self.size)
