"""A kernel's parameters: from the arguments of a launch to the bytes that the kernel reads.

Triton's signature says what each argument is. Constants are no parameters; tuples are flattened; a tensor descriptor
stands for a pointer, its shape, strides and flags, and again its shape and strides; for targets with TMA it stands for
a tensor map, its shape and strides. After them come the pointers to scratch memory, of which versions of Triton have
more or fewer. The PTX has the last word on how many parameters there are, and where.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._warpwright import tensor_map

MAP = "nvTmaDesc"
"""The type of a tensor map, in Triton's words."""

FORMATS = {
    "i1": "?", "u1": "?",
    "i8": "b", "u8": "B",
    "i16": "h", "u16": "H",
    "i32": "i", "u32": "I",
    "i64": "q", "u64": "Q",
    "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
    # A bf16 is packed as the upper half of a float32.
    "bf16": "H",
    # The bytes of a tensor map.
    MAP: "128s",
}  # fmt: skip

DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<([^\[>]*)\[([^\]]*)\]")
DESCRIPTOR_FLAGS = 2
"""Flags of a tensor descriptor: padding with NaN, and from Triton 3.7 on rounding to TF32."""


SCRATCH = 2
"""Pointers to scratch memory behind the arguments: the kernel's own, and the profiler's."""


class Leaf:
    """One argument after tuples are taken apart: where it is, what it is called, and its type in Triton's words."""

    def __init__(self, path: tuple[int, ...], name: str, type: str) -> None:
        self.path, self.name, self.type = path, name, type
        self.map: dict[str, Any] | None = None
        """What the compiler says of the tensor map that it stands for."""

    @property
    def is_pointer(self) -> bool:
        """Whether the kernel gets an address."""
        return self.type.startswith("*")

    @property
    def descriptor_rank(self) -> int | None:
        """The dimensions of a tensor descriptor; None if this is none."""
        found = DESCRIPTOR.match(self.type)
        if found is None:
            return None
        rank = re.search(r",input_rank=(\d+)", self.type)
        return int(rank.group(1)) if rank else found.group(2).count(",") + 1


def leaves(signature: Any, names: list[str], maps: Sequence[dict[str, Any] | None] = ()) -> list[Leaf]:
    """The arguments that are parameters, in their order; `signature` has a type for each argument, and `maps` has what
    is said of the tensor map of each descriptor."""

    def walk(path: tuple[int, ...], name: str, type: Any) -> Iterator[Leaf]:
        if isinstance(type, tuple):
            for i, part in enumerate(type):
                yield from walk((*path, i), f"{name}[{i}]", part)
        elif type != "constexpr":
            yield Leaf(path, name, type)

    found = [leaf for i, type in enumerate(signature) for leaf in walk((i,), names[i], type)]
    for leaf, said in zip((leaf for leaf in found if leaf.descriptor_rank is not None), maps):
        leaf.map = said
    return found


def expanded(leaf: Leaf, flags: int) -> list[str]:
    """The types of the parameters that an argument stands for."""
    rank = leaf.descriptor_rank
    if rank is None:
        return [leaf.type]
    if leaf.map is not None:
        return [MAP] + ["i32"] * rank + ["i64"] * rank
    pointer = "*" + DESCRIPTOR.match(leaf.type).group(1)  # type: ignore[union-attr]
    return [pointer] + ["i64"] * (2 * rank) + ["i1"] * flags + ["i32"] * rank + ["i64"] * rank


def flags_of(arguments: list[Leaf], parameters: int) -> int:
    """How many flags a descriptor has, for a PTX kernel of that many parameters, of which the last may be scratch."""
    counts = {flags: sum(len(expanded(leaf, flags)) for leaf in arguments) for flags in (DESCRIPTOR_FLAGS, 1)}
    for scratch in range(SCRATCH, -1, -1):
        for flags, count in counts.items():
            if count + scratch == parameters:
                return flags
    return DESCRIPTOR_FLAGS


TF32 = 11
"""The type of elements that TMA rounds, as PTX numbers it."""


def mapped(descriptor: Any, said: dict[str, Any], address: int) -> list[Any]:
    """The values of a descriptor for a target with TMA: the tensor map, its innermost dimension first."""
    if said.get("is_im2col"):
        raise ValueError("a tensor descriptor for im2col: its tensor map is not supported")
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    dims = [*shape[:-1], 2 * shape[-1]] if said["fp4_padded"] else shape
    element = TF32 if getattr(descriptor, "round_f32_to_tf32", False) else said["elem_type"]
    bytes_of = [stride * said["elem_size"] for stride in strides[:-1]]
    tensor = tensor_map(
        address, element, dims[::-1], bytes_of[::-1], said["block_size"][::-1], said["swizzle"],
        nan=descriptor.padding == "nan",
    )  # fmt: skip
    return [tensor, *shape, *strides]


def described(descriptor: Any, flags: int) -> list[Any]:
    """The values that a tensor descriptor stands for, its base first."""
    switches = [descriptor.padding == "nan", getattr(descriptor, "round_f32_to_tf32", False)][:flags]
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    return [descriptor.base, *shape, *strides, *switches, *shape, *strides]


def parameter_names(arguments: list[Leaf], ptx: str, kernel: str) -> dict[int, str]:
    """What to call the kernel's parameters, by their number, for reports: as the arguments are called in Python."""
    flags = flags_of(arguments, len(set(re.findall(rf"\b{kernel}_param_\d+\b", ptx))))
    names: list[str] = []
    for leaf in arguments:
        name = re.sub(r"\W+", "_", leaf.name).rstrip("_")
        names += [name] + [f"{name}_{i}" for i in range(1, len(expanded(leaf, flags)))]
    taken = set(re.findall(r"(?<![\w$.%])[A-Za-z_$][\w$]*", ptx))

    def is_free(name: str) -> bool:
        return re.match(r"[A-Za-z]|_\w", name) is not None and name not in taken and names.count(name) == 1

    return {i: name for i, name in enumerate(names) if is_free(name)}


class Parameters:
    """How the arguments of one kernel become bytes.

    `kernel` has the parameters of the PTX; `address` makes an address of what a launch passes for a pointer, and is
    told the argument's name.
    """

    def __init__(self, arguments: list[Leaf], kernel: Any, address: Callable[[Any, str], int]) -> None:
        flags = flags_of(arguments, len(kernel.params))
        types = [type for leaf in arguments for type in expanded(leaf, flags)]
        self.scratch = len(kernel.params) - len(types)
        if not 0 <= self.scratch <= SCRATCH:
            raise ValueError(
                f"the PTX of `{kernel.name}` has {len(kernel.params)} parameters, and its Triton signature {len(types)}"
            )
        self._address, self._kernel = address, kernel
        self._plain = all(len(leaf.path) == 1 and leaf.descriptor_rank is None for leaf in arguments)
        self._arguments, self._flags = arguments, flags
        self._positions = [leaf.path[0] for leaf in arguments]
        self._names = [name for leaf in arguments for name in [leaf.name] * len(expanded(leaf, flags))]
        self._types = types
        self._pointers = [(i, self._names[i]) for i, type in enumerate(types) if type.startswith("*")]
        self._halves = [i for i, type in enumerate(types) if type == "bf16"]
        self._struct = struct.Struct(self._format(types + ["*i8"] * self.scratch))

    def _format(self, types: list[str]) -> str:
        """The layout of the parameters, with the gaps that the PTX has between them."""
        end, parts = 0, ["<"]
        for type, parameter in zip(types, self._kernel.params):
            code = "Q" if type.startswith("*") else FORMATS.get(type)
            if code is None or struct.calcsize("<" + code) != parameter.bytes:
                raise TypeError(
                    f"parameter {parameter.name} of `{self._kernel.name}` has {parameter.bytes} bytes in PTX, and is "
                    f"of Triton's type {type}"
                )
            parts += [f"{parameter.offset - end}x" if parameter.offset > end else "", code]
            end = parameter.offset + parameter.bytes
        return "".join(parts)

    def pack(self, args: tuple[Any, ...], scratch: tuple[Any, ...]) -> bytes:
        """The parameters' bytes; `scratch` has the global scratch memory and the profiler's, each None without any."""
        if self._plain:
            values = [args[i] for i in self._positions]
        else:
            values = self._taken_apart(args)
        address = self._address
        for i, name in self._pointers:
            values[i] = address(values[i], name)
        for i in self._halves:
            values[i] = struct.unpack("<I", struct.pack("<f", values[i]))[0] >> 16
        if self.scratch:
            values += [address(memory, "scratch") for memory in scratch[: self.scratch]]
        try:
            return self._struct.pack(*values)
        except (struct.error, OverflowError):
            return self._struct.pack(*map(self._fitting, values, range(len(values))))

    def _taken_apart(self, args: tuple[Any, ...]) -> list[Any]:
        values: list[Any] = []
        for leaf in self._arguments:
            value: Any = args
            for i in leaf.path:
                value = value[i]
            if leaf.descriptor_rank is None:
                values.append(value)
            elif leaf.map is None:
                values += described(value, self._flags)
            else:
                values += mapped(value, leaf.map, self._address(value.base, leaf.name))
        return values

    def _fitting(self, value: Any, i: int) -> Any:
        """A value that its format takes: numbers of NumPy, and floats too large for their type, are not yet."""
        if i >= len(self._types) or self._types[i].startswith("*") or self._types[i] == MAP:
            return value
        type, code = self._types[i], FORMATS[self._types[i]]
        try:
            value = float(value) if code in "efd" else bool(value) if code == "?" else int(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"argument {self._names[i]} of `{self._kernel.name}`: {value!r} is no {type}") from error
        try:
            struct.pack("<" + code, value)
        except (struct.error, OverflowError) as error:
            if code in "ef":
                return float("inf") if value > 0 else float("-inf")
            raise OverflowError(f"argument {self._names[i]} of `{self._kernel.name}`: {value} is no {type}") from error
        return value
