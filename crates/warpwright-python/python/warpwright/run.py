"""Launching kernels on arrays of NumPy."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import nvrtc
from ._inline import INLINE, Inline, Worded, caller
from ._signatures import listed, parameters
from ._warpwright import Device, Kernel, Launched, Memory, Module, Param
from .errors import CompileError, WarpwrightError
from .report import Report, Told
from .settings import device as device_of
from .settings import refuse, settings


@dataclass(frozen=True)
class Out:
    """An output that `run` allocates."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    partial: bool = False


def out(shape: int | Sequence[int], dtype: Any = np.float32, *, partial: bool = False) -> Out:
    """An argument of `run` that is an array without contents, which the kernel must write in full.

    Reading it before is a finding of initcheck, and so is leaving elements of it unwritten, unless it is `partial`.
    What is not written is bytes of 0xff: NaN, or -1.
    """
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if not all(_is_whole(extent) and extent >= 0 for extent in extents):
        raise WarpwrightError(f"out({shape!r}): the shape is a whole number from 0 on, or several, as in (16, 4)")
    try:
        elements = np.dtype(dtype)
    except (TypeError, ValueError):
        raise WarpwrightError(
            f"out({shape!r}, dtype={dtype!r}): NumPy knows no such type of elements; it is one as np.float32 or 'int32'"
        ) from None
    return Out(tuple(int(extent) for extent in extents), _checked(elements, "out"), partial)


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


Dims = int | Sequence[int]


def run(
    source: str | PathLike[str],
    grid: Dims,
    block: Dims,
    args: Sequence[Any] | Mapping[str, Any] = (),
    *,
    kernel: str | None = None,
    check: str | None = None,
    order: str | None = None,
    race: str | None = None,
    sm: str | int | None = None,
    shared: int = 0,
    cooperative: bool = False,
    cluster: Dims | None = None,
    counters: bool = False,
    max_instructions: int | None = None,
    options: Sequence[str] = (),
) -> tuple[list[np.ndarray[Any, Any]], Report]:
    """Launches a kernel of PTX or CUDA C++ on the virtual GPU, and waits.

    `source` is the text, or a path to it (a path object, or a name that ends in `.ptx`, `.cu` or `.cuh`). CUDA C++ is
    compiled by NVRTC, if its wheel is installed (`pip install nvidia-cuda-nvrtc`), with `options` besides. `kernel`
    names the kernel if there are several; of CUDA C++ it may be an instance of a template.

    `args` are the kernel's arguments, in order, or a mapping of its parameters' names to them, in any order. Compiled
    PTX has no names of parameters: where the source does not say them either, a mapping is in the kernel's order, and
    reports call the arguments by its keys.

    - an array of NumPy, or a tensor of PyTorch on the CPU: the kernel reads and writes its memory, without a copy; an
      array that is not writeable, only reads it. What it may reach is what was allocated: of a view, all of its array.
      Elements follow each other in memory, in the order of C or of Fortran: a slice with steps is refused. An address
      within an array (of pointers, in a structure) is one that the kernel may use if its array is an argument too
    - `out(shape, dtype)`: an array that is allocated, and returned in `outputs`, in their order
    - a number, of NumPy or of Python, which must fit the parameter's type
    - `bytes` for a structure that is passed by value, and `None` for a null pointer

    Each run loads the program anew: its `__device__` variables begin as they are written.

    Without `check`, `order`, `race`, `sm` or `max_instructions`, `warpwright.settings` has them. A kernel that executes
    more than `max_instructions`, each counted once per thread, traps. `shared` is dynamic shared memory in bytes.
    `cluster` has the blocks of a cluster, where the kernel does not say them; the device must have `sm=90` or more.
    Returns the outputs and the report. Findings are in the report and raise nothing:
    `report.raise_for_findings()` does.

    ```
    >>> import numpy as np, warpwright
    >>> ptx = '''
    ... .version 8.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry index(.param .u64 y)
    ... {
    ...     .reg .b32 %r<2>;
    ...     .reg .b64 %rd<3>;
    ...     ld.param.u64        %rd1, [y];
    ...     cvta.to.global.u64  %rd1, %rd1;
    ...     mov.u32             %r1, %tid.x;
    ...     mad.wide.u32        %rd2, %r1, 4, %rd1;
    ...     st.global.u32       [%rd2], %r1;
    ...     ret;
    ... }'''
    >>> (y,), report = warpwright.run(ptx, 1, 3, {"y": warpwright.out(4, np.int32)}, check="all")
    >>> y.tolist(), [finding.kind for finding in report.findings]
    ([0, 1, 2, -1], ['unwritten-output'])

    ```
    """
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise WarpwrightError(f"options={options!r}: it is a list of texts")
    if kernel is not None and not isinstance(kernel, str):
        raise WarpwrightError(f"kernel={kernel!r}: it is a name")
    if not isinstance(args, (Sequence, Mapping)) or isinstance(args, (str, bytes)):
        raise WarpwrightError(f"args={args!r}: it is a list of arguments, or a mapping of names to arguments")
    for name, number, least, limit in (
        ("shared", shared, 0, 1 << 32),
        ("max_instructions", max_instructions, 1, 1 << 64),
    ):
        if number is not None and not (_is_whole(number) and least <= number < limit):
            raise WarpwrightError(f"{name}={number!r}: it is a whole number from {least} on")
    for name, flag in (("cooperative", cooperative), ("counters", counters)):
        if not isinstance(flag, (bool, np.bool_)):
            raise WarpwrightError(f"{name}={flag!r}: it is True or False")
    for name, text in (("check", check), ("order", order), ("race", race)):
        if text is not None:
            try:
                refuse(name, text, of_driver=False)
            except ValueError as error:
                raise WarpwrightError(str(error)) from None
    target = device_of(sm)
    found, names = _kernel(target, source, kernel, tuple(options))
    found = found.afresh(target) or found
    params = found.params
    if isinstance(args, Mapping) and names is not None:
        args = _in_order(found, names, args)
    elif len(params) != len(args):
        known = ", ".join(names or (param.name for param in params))
        raise WarpwrightError(f"`{found.name}` has {len(params)} parameters ({known}), and {len(args)} are given")
    is_mapping = isinstance(args, Mapping)
    named = args.items() if isinstance(args, Mapping) else zip(names or [""] * len(args), args)
    lender, packed = Lender(target), bytearray(params[-1].offset + params[-1].bytes if params else 0)
    outputs: list[np.ndarray[Any, Any]] = []
    whole: list[tuple[Memory, str, int, list[tuple[int, int]]]] = []
    try:
        for number, (param, (name, arg)) in enumerate(zip(params, named)):
            # What the PTX calls it, reports say anyway.
            label = name if name != param.name else ""
            called = _called(param, (names or {number: param.name})[number], name if is_mapping else number)
            if isinstance(arg, (Out, np.ndarray)) or hasattr(arg, "untyped_storage"):
                _check_pointer(param, called, arg)
                _check_order(called, arg)
            if isinstance(arg, Out):
                array = np.empty(arg.shape, arg.dtype)
                array.view(np.uint8).fill(0xFF) if array.ndim and array.size else None
                outputs.append(array)
                memory = lender.array(array, label, written=False)
                if memory and not arg.partial:
                    whole.append((memory, name or param.name, array.dtype.itemsize, _data(array.dtype)))
                arg = array.ctypes.data
            elif isinstance(arg, np.ndarray):
                lender.array(arg, label)
                arg = arg.ctypes.data
            elif hasattr(arg, "untyped_storage"):
                lender.tensor(arg, label)
                arg = arg.data_ptr()
            packed[param.offset : param.offset + param.bytes] = _packed(param, arg, called)
        launched = target.launch(
            found,
            _dims(grid, "grid"),
            _dims(block, "block"),
            bytes(packed),
            shared=shared,
            check=settings.check_of_kernels if check is None else check,
            order=settings.order if order is None else order,
            race=settings.race if race is None else race,
            cooperative=bool(cooperative),
            cluster=None if cluster is None else _dims(cluster, "cluster"),
            counters=bool(counters),
            max_instructions=settings.max_instructions if max_instructions is None else max_instructions,
            outputs=whole,
        )
    finally:
        lender.close()
    own = {param.name: name for param, name in zip(params, names or ()) if param.name != name}
    report = Report(_with_places(launched, source, own))
    settings.publish(report)
    return outputs, report


def _data(dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    """The parts of an element that are data, and not padding between fields: offsets and sizes in bytes."""
    base = dtype.base
    if base.fields is None:
        return [(0, dtype.itemsize)]
    fields = base.fields.values()
    parts = [(field[1] + offset, size) for field in fields for offset, size in _data(field[0])]
    return [(start + offset, size) for start in range(0, dtype.itemsize, base.itemsize) for offset, size in parts]


def _in_order(kernel: Kernel, names: Sequence[str], args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, in the order of the parameters."""
    unknown = [str(name) for name in args if name not in names]
    missing = [name for name in names if name not in args]
    if unknown or missing:
        wrong = [f"it has no {', '.join(unknown)}"] * bool(unknown) + [f"{', '.join(missing)}: not given"] * bool(
            missing
        )
        has = ", ".join(names) or "none"
        raise WarpwrightError(f"the parameters of `{kernel.name}` are {has}; {'; '.join(wrong)}")
    return {name: args[name] for name in names}


def _with_places(launched: Launched, source: str | PathLike[str], names: Mapping[str, str]) -> Told:
    """A launch, with the names of its parameters in the source, and places in files of the program."""
    call = None if launched.is_clean else caller()
    worded = Worded(launched, names, call) if names or not launched.is_clean else launched
    if call is None:
        return worded
    text = None if _is_path(source) else str(source)
    is_cuda = nvrtc.is_cuda(text) if text is not None else Path(source).suffix != ".ptx"
    return Inline(worded, text, "CUDA C++" if is_cuda else "PTX", call)


class Lender:
    """Memory of arrays, on a device for the time of a launch. Arrays may share memory."""

    def __init__(self, target: Device) -> None:
        self._device = target
        self._lent: list[tuple[Memory, bool]] = []

    def array(self, array: np.ndarray[Any, Any], name: str, written: bool = True) -> Memory | None:
        """The memory of an array: all that it was allocated with, since views of that share it."""
        _checked(array.dtype, name or "the array")
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        low, high = _byte_bounds(base) if base.size else (0, 0)
        return self._lend(low, high - low, base, name, written, array.flags.writeable)

    def tensor(self, tensor: Any, name: str) -> Memory | None:
        """The memory of a tensor of PyTorch: its storage."""
        if tensor.device.type != "cpu":
            raise WarpwrightError(f"the tensor {name} is on {tensor.device}: kernels run on tensors of the CPU")
        storage = tensor.untyped_storage()
        return self._lend(storage.data_ptr(), storage.nbytes(), storage, name, True, True)

    def _lend(self, address: int, size: int, owner: object, name: str, written: bool, writable: bool) -> Memory | None:
        if size == 0:
            return None
        for entry in self._lent:
            memory, may_write = entry
            if memory.address <= address and address + size <= memory.address + memory.bytes:
                if may_write or not writable:
                    return memory
                # Another array of the same memory may be written.
                self._lent.remove(entry)
                memory.close()
                address, size = memory.address, memory.bytes
                break
        memory = self._device.lend(address, size, owner, name, written=written, writable=writable)
        self._lent.append((memory, writable))
        return memory

    def close(self) -> None:
        """The device has none of it any more."""
        for memory, _ in self._lent:
            memory.close()


# NumPy 2 has moved it.
_byte_bounds = np.lib.array_utils.byte_bounds if hasattr(np.lib, "array_utils") else np.byte_bounds  # type: ignore


def _dims(extents: Dims, name: str) -> list[int]:
    """The extents of a grid or a block, as numbers of Python."""
    many = list(extents) if isinstance(extents, Sequence) else [extents]
    if not all(_is_whole(extent) and 0 <= extent < 1 << 32 for extent in many):
        raise WarpwrightError(f"{name}={extents!r}: extents are whole numbers from 1 on")
    return [int(extent) for extent in many]


def _checked(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """A type of elements that a GPU has."""
    if dtype.hasobject or dtype.kind == "U" or not dtype.isnative:
        raise WarpwrightError(f"{name}: a kernel cannot have elements of {dtype}")
    return dtype


def _called(param: Param, own: str, given: str | int) -> str:
    """What messages call an argument, of a parameter that has a name of its own: it is given by name or in order."""
    shape = f"{param.bytes} bytes" if param.is_array else param.type
    if given == own:
        return f"{own} ({shape})"
    return f"{given if isinstance(given, str) else f'argument {given}'} (`{own}`, {shape})"


def _refused(name: str, why: str) -> WarpwrightError:
    return WarpwrightError(f"{name}: {why}")


def _check_pointer(param: Param, name: str, arg: Any) -> None:
    """An array goes where there is room for an address."""
    if param.bytes != 8 or param.is_array or param.type[0] == "f":
        number = "; its number is `x.item()`" if getattr(arg, "shape", None) in ((), (1,)) else ""
        number = "; a structure is passed as bytes: `x.tobytes()`" if param.is_array else number
        raise _refused(name, f"the parameter is no pointer, and an array is given{number}")


def _check_order(name: str, arg: Any) -> None:
    """A kernel is given an address alone: an array's elements follow each other from there."""
    if isinstance(arg, Out) or arg.ndim == 0:
        return
    if isinstance(arg, np.ndarray):
        is_dense, strides, unit, copied = arg.flags.forc, arg.strides, "bytes", "np.ascontiguousarray(x)"
    else:
        if str(arg.layout) != "torch.strided":
            raise WarpwrightError(
                f"{name}: a kernel cannot have a tensor of {arg.layout}: pass its parts, or a dense one"
            )
        is_dense = arg.is_contiguous() or arg.permute(*reversed(range(arg.ndim))).is_contiguous()
        strides, unit, copied = tuple(arg.stride()), "elements", "x.contiguous()"
    if not is_dense:
        raise WarpwrightError(
            f"{name}: its elements do not follow each other in memory, neither in C's order nor in Fortran's: it is a "
            f"view of shape {tuple(arg.shape)} with strides of {strides} {unit}, and a kernel gets an address alone. "
            f"Pass a copy, `{copied}`, or what it is a view of"
        )


_FORMATS = {("f", 2): "<e", ("f", 4): "<f", ("f", 8): "<d"}


def _packed(param: Param, arg: Any, name: str) -> bytes:
    """The bytes of an argument, if the parameter can have it."""
    kind, size = param.type[0], param.bytes

    if isinstance(arg, (bytes, bytearray)):
        if len(arg) != size:
            raise _refused(name, f"{len(arg)} bytes are given")
        return bytes(arg)
    if param.is_array or kind == "b":
        # A structure, such as `__half`; or bits of no type.
        if isinstance(arg, np.generic) and arg.nbytes == size:
            return arg.tobytes()
        if param.is_array:
            raise _refused(name, f"pass the structure as `bytes` or as a value of NumPy of {size} bytes")
        if isinstance(arg, (float, np.floating)):
            raise _refused(name, f"a float of how many bytes? Pass it as a value of NumPy of {size} bytes")
    if isinstance(arg, np.generic):
        arg = arg.item()
    if arg is None:
        if size != 8 or kind == "f":
            raise _refused(name, "None is a null pointer, and the parameter is none")
        return bytes(size)
    if isinstance(arg, float) and kind != "f":
        raise _refused(name, f"{arg!r} is a float, and the parameter a whole number")
    if isinstance(arg, (int, float)) and kind == "f":
        try:
            return struct.pack(_FORMATS["f", size], arg)
        except OverflowError:
            raise _refused(name, f"{arg} is too large") from None
    if isinstance(arg, int):
        bits = 8 * size
        # Compilers call parameters unsigned that are not.
        if not -(1 << bits - 1) <= arg < 1 << bits:
            raise _refused(name, f"{arg} does not fit")
        return (arg % (1 << bits)).to_bytes(size, "little")
    raise _refused(name, f"it cannot be {type(arg).__name__}: pass an array, a number, `out(…)`, `bytes` or None")


def _is_path(source: str | PathLike[str]) -> bool:
    return isinstance(source, PathLike) or ("\n" not in source and source.endswith((".ptx", ".cu", ".cuh")))


Found = tuple[Kernel, tuple[str, ...] | None]
"""A kernel, and what its parameters are called, if that is known."""


def _kernel(target: Device, source: str | PathLike[str], name: str | None, options: tuple[str, ...]) -> Found:
    """The kernel of a source, compiled and loaded once."""
    if not isinstance(source, (str, PathLike)):
        raise WarpwrightError(f"the source is a text or a path, and not {type(source).__name__}")
    if not _is_path(source):
        return _of_text(target, str(source).removeprefix("\ufeff"), "", name, options)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WarpwrightError(f"{path}: {error}") from None
    return _of_text(target, text, str(path), name, options)


@lru_cache(maxsize=256)
def _of_text(target: Device, text: str, file: str, name: str | None, options: tuple[str, ...]) -> Found:
    if not nvrtc.is_cuda(text):
        kernel = _module(target, text, file or "PTX", ()).kernel(name)
        names = tuple(param.name for param in kernel.params)
        # A compiler calls them by the kernel and by their numbers.
        return kernel, None if any(re.search(r"_param_\d+$", name) for name in names) else names
    sources = () if file else ((INLINE, text),)
    try:
        compiled = nvrtc.compile(text, file or INLINE, target.sm, options, (name,) if name else ())
    except CompileError as error:
        # If more is wrong than the name, it comes first.
        if not all(" has no kernel `" in line for line in str(error).splitlines()):
            raise
        compiled = nvrtc.compile(text, file or INLINE, target.sm, options)
        kernels = listed(text, _module(target, compiled.ptx, f"PTX of {file or INLINE}", sources).kernels)
        raise CompileError(
            f'{error}. There are {kernels or "none"}; one of a template is named with its types, such as "scale<float>"'
        ) from None
    module = _module(target, compiled.ptx, f"PTX of {file or INLINE}", sources)
    if not module.kernels:
        raise WarpwrightError(
            f"{file or 'the source'} has no kernel: that is a function that is `__global__`, and of a template "
            '`kernel=` says which instance, such as "scale<float>"'
        )
    if name is None and len(module.kernels) > 1:
        raise WarpwrightError(
            f"{file or 'the source'} has several kernels: `kernel=` says which, of {listed(text, module.kernels)}"
        )
    kernel = module.kernel(compiled.names.get(name, name) if name else None)
    return kernel, parameters(text, kernel.name, len(kernel.params))


@lru_cache(maxsize=256)
def _module(target: Device, ptx: str, name: str, sources: tuple[tuple[str, str], ...]) -> Module:
    return target.load(ptx, name, dict(sources))
