"""Memory of launches: tensors and arrays where they are, lent to the virtual GPU.

What is lent is the whole memory behind a tensor, torch's storage, and that behind an array, its owner. It stays lent
until it dies, so that an access next to it is a finding, and one to memory that has died is another. A storage carries
what was lent of it as an attribute: PyTorch keeps a storage's Python object for as long as the storage lives, whoever
holds it.

`torch.empty` and its like make memory that nobody has written. When initcheck is on they fill it with a pattern that
nobody writes: NaNs with other payloads than computed ones have, integers at random. What still has the pattern when a
kernel starts was not written, whoever could have written it and by whatever way. Types in which a written value could
be like the pattern are not filled, and count as written.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import settings
from ..errors import WarpwrightError

# Its place changed with NumPy 2.
byte_bounds: Any = getattr(getattr(np.lib, "array_utils", np), "byte_bounds")  # noqa: B009

LENT = "_warpwright_lent"
"""The attribute of a storage that has what was lent of it."""

UNWRITTEN = "_warpwright_pattern"
"""The attribute of a storage that has the type whose pattern fills it."""

WORD = 4
"""Memory is lent in words, of that many bytes."""

PATTERN_LIMIT = 1 << 30
"""Larger storages are not filled: they count as written. In bytes."""


class Lent:
    """Memory that a device has."""

    __slots__ = ("device", "memory", "address", "bytes", "pattern", "writable", "storage", "__weakref__")

    def __init__(self, device: Any, memory: Any, address: int, bytes: int) -> None:
        self.device, self.memory, self.address, self.bytes = device, memory, address, bytes
        self.pattern: Any = None
        """The type whose pattern parts of it may have."""
        self.writable = True
        self.storage: Any = lambda: None
        """A weak reference to the storage that has it, if one has."""

    def is_stale(self) -> bool:
        """Whether its storage has other memory by now, since it was resized."""
        storage = self.storage()
        return storage is not None and (storage.data_ptr(), storage.nbytes()) != (self.address, self.bytes)

    def close(self) -> None:
        """Takes it back."""
        self.device = None
        self.memory.close()

    def __del__(self) -> None:
        self.memory.close()


class Array:
    """A NumPy array as Triton takes arguments: a type and an address."""

    __slots__ = ("array", "dtype")

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype = array, array.dtype

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self.array.ctypes.data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)


class InPlace:
    """An array with what Triton's autotuner asks of a tensor whose contents it resets or restores."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def zero_(self) -> None:
        """Zeroes it."""
        self.array[...] = 0

    def clone(self) -> InPlace:
        """A copy of it."""
        return InPlace(self.array.copy())

    def copy_(self, other: InPlace) -> None:
        """Makes its contents those of another one."""
        self.array[...] = other.array


ELEMENTS = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
}  # fmt: skip
"""Types of elements that Triton has, as NumPy and ml_dtypes call them."""

INSTEAD = {
    "O": "make numbers of the objects, as by `x.astype(np.float32)`",
    "c": "pass the real and the imaginary parts: `x.view(x.real.dtype)` has them in turns",
    "f": "convert it: `x.astype(np.float64)`",
    "M": "pass its numbers: `x.view(np.int64)`",
    "m": "pass its numbers: `x.view(np.int64)`",
    "S": "pass its bytes: `x.view(np.uint8)`",
    "U": "pass its code points: `x.view(np.uint32)`",
    "V": "pass its bytes, `x.view(np.uint8)`, or a copy of a field, `x[name].copy()`",
}
"""What to pass for elements of a kind that Triton has no type for."""


class NoElementsError(TypeError):
    """An array's elements are of a type that Triton does not have."""


@functools.cache
def _refusal(dtype: np.dtype) -> str | None:
    """Why a kernel cannot have elements of a type, if it cannot."""
    if dtype.name in ELEMENTS and dtype.isnative:
        return None
    instead = INSTEAD.get(dtype.kind, "convert it by `x.astype`")
    if dtype.kind == "c" and dtype.itemsize > 16:
        instead = "convert it: `x.astype(np.complex128).view(np.float64)` has the real and the imaginary parts in turns"
    if not dtype.isnative:
        instead = 'swap its bytes: `x.astype(x.dtype.newbyteorder("="))`'
    return f"Triton has no elements of {dtype}: {instead}"


def _array(array: np.ndarray) -> Array:
    refusal = _refusal(array.dtype)
    if refusal:
        raise NoElementsError(refusal)
    return Array(array)


def _tuple(values: Any) -> Any:
    parts = tuple(map(as_argument, values))
    if all(part is value for part, value in zip(parts, values)):
        return values
    return type(values)(*parts) if hasattr(values, "_fields") else parts


@functools.cache
def _converter(type: Any) -> Callable[[Any], Any] | None:
    if issubclass(type, np.ndarray):
        return _array
    if issubclass(type, tuple):
        return _tuple
    if issubclass(type, np.bool_):
        return bool
    if issubclass(type, np.integer):
        return int
    return float if issubclass(type, np.floating) else None


def as_argument(value: Any) -> Any:
    """What Triton takes for an argument: arrays and numbers of NumPy's become what it knows."""
    kind: Any = type(value)
    converter = _converter(kind)
    return value if converter is None else converter(value)


@functools.cache
def _pattern(kind: str, bits: int) -> np.ndarray:
    """A period of elements, one after the other, that nobody writes."""
    random = np.random.default_rng(0x5EED).integers(1, 2**62, 65521, dtype=np.uint64)
    quiet_nan, payload = {
        ("float", 16): (0x7E00, 9),
        ("bfloat", 16): (0x7FC0, 6),
        ("float", 32): (0x7FC0_0000, 22),
        ("float", 64): (0x7FF8_0000_0000_0000, 51),
    }.get((kind, bits), (0, bits))
    low = random % np.uint64(1 << min(payload, 63))
    return (np.uint64(quiet_nan) | np.maximum(low, np.uint64(1))).astype(f"u{bits // 8}")


def _elements(address: int, count: int, bits: int) -> np.ndarray:
    """Memory as unsigned integers; the caller keeps it alive."""
    interface = {"data": (address, False), "shape": (count,), "typestr": f"<u{bits // 8}", "version": 3}
    return np.asarray(type("Memory", (), {"__array_interface__": interface})())


def _pieces(elements: np.ndarray, pattern: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Where each period of a pattern begins in elements, with these and the pattern. Pieces keep what is made of them
    in the processor's cache."""
    for begin in range(0, len(elements), len(pattern)):
        piece = elements[begin : begin + len(pattern)]
        yield begin, piece, pattern[: len(piece)]


def has_initcheck(check: str) -> bool:
    """Whether checks have initcheck."""
    return any(name.strip() in ("all", "initcheck") for name in check.split(","))


def fill(storage: Any, kind: str, bits: int) -> None:
    """Fills a storage that nobody has written with the pattern of a type."""
    count = storage.nbytes() * 8 // bits
    if count == 0 or storage.nbytes() > PATTERN_LIMIT:
        return
    for _, piece, pattern in _pieces(_elements(storage.data_ptr(), count, bits), _pattern(kind, bits)):
        piece[:] = pattern
    setattr(storage, UNWRITTEN, (kind, bits))


def _mark_written(lent: Lent) -> None:
    """Marks what has the pattern no longer, and forgets the pattern when nothing has it."""
    if not has_initcheck(settings.check):
        # Such a launch would not note what it writes.
        lent.memory.mark_written()
        lent.pattern = None
        return
    if lent.memory.is_written(0, lent.bytes):
        lent.pattern = None
        return
    kind, bits = lent.pattern
    count, size, left = lent.bytes * 8 // bits, bits // 8, False
    for first, piece, pattern in _pieces(_elements(lent.address, count, bits), _pattern(kind, bits)):
        written = piece != pattern
        left = left or not written.all()
        if written.any():
            edges = first + np.flatnonzero(np.diff(written, prepend=False, append=False))
            for begin, end in edges.reshape(-1, 2).tolist():
                lent.memory.mark_written(begin * size, (end - begin) * size)
    if not left:
        lent.memory.mark_written()
        lent.pattern = None


def _described(value: Any) -> str:
    """What reports call memory: the type and the shape by which it came."""
    kind = "array" if isinstance(value, np.ndarray) else "tensor"
    return f"{kind} {str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"


class Memories:
    """What was lent to a device."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._lent: weakref.WeakSet[Lent] = weakref.WeakSet()
        self._arrays: dict[int, tuple[Any, Lent]] = {}

    def address(self, value: Any, name: str) -> int:
        """The address that a kernel gets for what a launch passes as argument `name`, whose memory it may access."""
        if value is None:
            return 0
        if isinstance(value, int):
            return value
        storage_of = getattr(value, "untyped_storage", None)
        if storage_of is not None:
            self.lend_storage(storage_of(), name, value)
            return value.data_ptr()
        if isinstance(value, Array):
            value = value.array
        if isinstance(value, np.ndarray):
            self._lend_array(value, name)
            return value.ctypes.data
        if hasattr(value, "base") and hasattr(value, "data_ptr"):
            return self.address(value.base, name)
        if hasattr(value, "data_ptr"):
            return value.data_ptr()
        raise TypeError(f"argument {name} is a {type(value).__name__}: neither a tensor, an array nor an address")

    def lend_storage(self, storage: Any, name: str, tensor: Any) -> None:
        """Lends the memory behind a tensor."""
        if storage.device.type != "cpu":
            raise TypeError(
                f"argument {name} is on {storage.device}: the virtual GPU works on tensors in the host's memory; "
                "make it with device='cpu', or see `enable(cuda=True)`"
            )
        lent = self._of(storage, tensor, getattr(storage, UNWRITTEN, None))
        if lent is not None and lent.pattern is not None:
            _mark_written(lent)

    def expose(self, tensor: Any) -> None:
        """Lends the memory of a tensor whose address the program asked for: kernels may reach it by that address, and
        the program may write there, so that all of it counts as written."""
        storage = tensor.untyped_storage()
        if storage.device.type != "cpu":
            return
        setattr(storage, UNWRITTEN, None)
        lent = self._of(storage, tensor, None)
        if lent is not None and lent.pattern is not None:
            lent.memory.mark_written()
            lent.pattern = None

    def _of(self, storage: Any, tensor: Any, pattern: Any) -> Lent | None:
        """What is lent of a storage."""
        lent = getattr(storage, LENT, None)
        if lent is not None and lent.device is self.device:
            if lent.address == storage.data_ptr() and lent.bytes == storage.nbytes():
                return lent
            lent.close()
        lent = self._lend(storage.data_ptr(), storage.nbytes(), _described(tensor), pattern)
        if lent is not None:
            setattr(storage, LENT, lent)
            if lent.bytes == storage.nbytes():
                lent.storage = weakref.ref(storage)
        return lent

    def _lend_array(self, array: np.ndarray, name: str) -> None:
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if hasattr(owner.base, "untyped_storage"):
            return self.lend_storage(owner.base.untyped_storage(), name, owner.base)
        known = self._arrays.get(id(owner))
        writable = owner.flags.writeable
        if known is not None and known[1].device is self.device:
            if known[1].writable == writable:
                return None
            known[1].close()
        low, high = byte_bounds(owner)
        lent = self._lend(low, high - low, _described(array), None, writable)
        if lent is not None:
            forget = functools.partial(lambda arrays, key, _: arrays.pop(key, None), self._arrays, id(owner))
            self._arrays[id(owner)] = (weakref.ref(owner, forget), lent)
        return None

    def _lend(self, address: int, bytes: int, name: str, pattern: Any, writable: bool = True) -> Lent | None:
        """Lends memory; None if it is none, or is lent already as a part of other memory."""
        if bytes == 0 or address == 0:
            return None
        try:
            memory = self.device.lend(address, bytes, None, name, written=pattern is None, writable=writable)
        except WarpwrightError:
            # Two arrays may share memory without sharing an owner. The device gets the memory of both as one.
            low, high = address & ~(WORD - 1), address + bytes
            for other in list(self._lent):
                if other.device is not self.device or low >= other.address + other.bytes or other.address >= high:
                    continue
                if other.is_stale():
                    other.close()
                elif other.address <= address and address + bytes <= other.address + other.bytes:
                    return None
                else:
                    low, high = min(low, other.address), max(high, other.address + other.bytes)
                    other.close()
            address, bytes, pattern = low, high - low, None
            memory = self.device.lend(address, bytes, None, name, writable=writable)
        lent = Lent(self.device, memory, address, bytes)
        lent.pattern, lent.writable = pattern, writable
        self._lent.add(lent)
        return lent
