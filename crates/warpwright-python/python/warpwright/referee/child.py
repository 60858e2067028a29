"""The process that runs a candidate's program. It has a device by name only: kernels run in the referee's process.

The program gets the arrays at the addresses that they have there, and other values than they have there: what it could
compute from them is of no use. What the program itself writes into memory, the referee learns before the next launch.

To tell what the program has written since, memory has a pattern in all its words after every launch. A word that is
something else was written.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import _warpwright
from ..errors import PtxError, WarpwrightError
from ..settings import settings
from .arena import Arena, view
from .dtypes import DTYPES
from .wire import Closed, Wire

WORD = 4


class Param(NamedTuple):
    """A parameter of a kernel."""

    name: str
    type: str
    bytes: int
    offset: int
    is_pointer: bool
    is_array: bool


class RemoteKernel:
    """A kernel of a module."""

    def __init__(self, module: int, name: str, found: dict[str, Any], is_afresh: bool = False) -> None:
        self.module, self.name, self._found, self.is_afresh = module, name, found, is_afresh
        self.params = [Param(*param) for param in found["params"]]
        self.static_shared, self.max_threads = found["static_shared"], found["max_threads"]
        self.required_block = found["required_block"] and tuple(found["required_block"])

    def afresh(self, device: RemoteDevice) -> RemoteKernel:
        return RemoteKernel(self.module, self.name, self._found, is_afresh=True)


class RemoteModule:
    """A module that the referee has loaded."""

    def __init__(self, number: int, name: str, kernels: dict[str, Any]) -> None:
        self._number, self._name, self._kernels = number, name, kernels

    @property
    def kernels(self) -> list[str]:
        return sorted(self._kernels)

    def kernel(self, name: str | None = None) -> RemoteKernel:
        if name is None and len(self._kernels) != 1:
            raise WarpwrightError(f"{self._name} has not one kernel: say which, of {', '.join(self.kernels)}")
        name = next(iter(self._kernels)) if name is None else name
        if name not in self._kernels:
            raise WarpwrightError(f"{self._name} has no kernel `{name}`, only {', '.join(self.kernels)}")
        return RemoteKernel(self._number, name, self._kernels[name])


class RemoteMemory:
    """Memory of this process that kernels of the referee may reach, in a copy."""

    def __init__(self, client: Client, address: int, bytes: int, key: int, written: bool, writable: bool) -> None:
        self.address, self.bytes = address, bytes
        self._client, self._key, self._writable = client, key, writable
        self._is_fresh = not written
        self._marked: list[tuple[int, int]] | None = None if written else []
        """What was marked as written, as long as nothing was launched with memory that was not."""

    def mark_written(self, offset: int = 0, bytes: int | None = None) -> None:
        """Counts while nothing was launched. Later, the pattern shows what was written."""
        if self._marked is not None:
            self._marked.append((offset, self.bytes - offset if bytes is None else bytes))

    def is_written(self, offset: int = 0, bytes: int | None = None) -> bool:
        return not self._is_fresh

    def forget(self) -> None:
        self._is_fresh, self._marked = True, []
        self._client.wire.send({"do": "forget", "memory": self._key})

    def close(self) -> None:
        self._client.close(self._key)

    def written(self) -> list[tuple[int, int, np.ndarray]]:
        """What the program has written since the last launch: offset, bytes, contents. Then it has the pattern."""
        memory = view(self.address, self.bytes, None)
        if self._marked is not None:
            ranges = list(self._marked)
        elif not self._writable:
            ranges = [(0, self.bytes)]
        else:
            ranges = self._client.differing(memory)
        pieces = [(offset, size, memory[offset : offset + size].copy()) for offset, size in ranges if size > 0]
        self._is_fresh, self._marked = False, None
        if self._writable:
            self._client.spoil(memory)
        return pieces


class RemoteLaunched:
    """A launch that is over. The referee keeps what was found."""

    is_clean, has_errors, output = True, False, ""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel

    def text(self) -> str:
        return "the referee keeps the findings"

    def json(self) -> str:
        return '{"findings": [], "trap": null, "counters": {}, "lines": []}'

    def documents(self) -> list[str]:
        return []


class Client:
    """This end of the wire, and the memory that kernels may reach."""

    def __init__(self, wire: Wire, host_bytes: int) -> None:
        self.wire, self.host_bytes = wire, host_bytes
        self.arrays: dict[int, tuple[int, RemoteMemory | None]] = {}
        """Arrays of the run, by their address: bytes, and what shows what is written there, if that counts."""
        self._lent: dict[int, RemoteMemory] = {}
        self.new: dict[int, int] = {}
        """Memory that is new, and has no contents: addresses, and bytes."""
        self._keys = 0
        # A NaN, no byte of which is 0 or 0xff, as programs fill memory with.
        low, middle, high = (1 + byte % 254 for byte in os.urandom(3))
        self._pattern = np.array([low, middle, 0xC0 | high % 63, 0x7F], np.uint8)

    def spoil(self, memory: np.ndarray) -> None:
        """Fills memory with the pattern."""
        whole = memory.size // WORD * WORD
        memory[:whole].reshape(-1, WORD)[:] = self._pattern
        memory[whole:] = self._pattern[: memory.size - whole]

    def differing(self, memory: np.ndarray) -> list[tuple[int, int]]:
        """The ranges of words that have not the pattern. Bytes behind the last word follow it."""
        whole = memory.size // WORD
        words = (memory[: whole * WORD].reshape(-1, WORD) != self._pattern).any(axis=1)
        tail = memory[whole * WORD :]
        if tail.size:
            differs = bool((tail != self._pattern[: tail.size]).any())
            words = np.append(words, differs or bool(whole and words.all()))
        edges = np.flatnonzero(np.diff(words, prepend=False, append=False)).reshape(-1, 2)
        return [(first * WORD, min(end * WORD, memory.size) - first * WORD) for first, end in edges.tolist()]

    def ask(self, message: dict[str, Any], payload: bytes = b"") -> dict[str, Any]:
        """The answer to a question."""
        self.wire.send(message, payload)
        answer, _ = self.wire.receive()
        if "error" in answer:
            raise (PtxError if answer.get("ptx") else WarpwrightError)(answer["error"])
        return answer

    def lend(self, address: int, bytes: int, name: str, written: bool, writable: bool) -> RemoteMemory:
        """Memory for kernels. The arrays of the run are there already."""
        for first, (size, memory) in self.arrays.items():
            if first <= address < first + size:
                return memory or RemoteMemory(self, address, bytes, -1, True, False)
        self._keys += 1
        is_new = self.new.pop(address, None) == bytes
        fresh = is_new or not written
        self.ask({"do": "lend", "memory": self._keys, "address": address, "bytes": bytes, "name": name, "fresh": fresh})
        memory = RemoteMemory(self, address, bytes, self._keys, written, writable)
        self._lent[self._keys] = memory
        return memory

    def close(self, key: int) -> None:
        """Memory is not there for kernels any more. What it has is, if it is lent again."""
        if self._lent.pop(key, None) is not None:
            with contextlib.suppress(Closed):
                self.wire.send({"do": "close", "memory": key})

    def writes(self) -> tuple[list[dict[str, Any]], bytes]:
        """What the program has written, for the referee."""
        writes: list[dict[str, Any]] = []
        payload: list[bytes] = []
        arrays = ((~number, memory) for number, (_, memory) in enumerate(self.arrays.values()))
        for key, memory in [*((key, memory) for key, memory in arrays if memory), *self._lent.items()]:
            for offset, size, contents in memory.written():
                fill = _fill_of(contents) if size == memory.bytes else None
                told = {"memory": key, "offset": offset, "bytes": size, "fill": fill, "sent": False}
                if fill is None and sum(map(len, payload)) + size <= self.host_bytes:
                    payload.append(contents.tobytes())
                    told["sent"] = True
                writes.append(told)
        return writes, b"".join(payload)


def _fill_of(contents: np.ndarray) -> str | None:
    """The bytes of the one value that memory is full of, in hexadecimal digits."""
    for width in (1, 2, 4, 8):
        if contents.size % width == 0:
            elements = contents.reshape(-1, width)
            if (elements == elements[0]).all():
                return bytes(elements[0]).hex()
    return None


class RemoteDevice:
    """A device as `warpwright._warpwright.Device`, in the referee's process."""

    client: Client
    target = "80"

    def __init__(self, sm: str = "80", workers: int = 0, memory: int | None = None) -> None:
        digits = "".join(digit for digit in str(sm) if digit.isdigit())
        if digits != "".join(digit for digit in self.target if digit.isdigit()):
            raise WarpwrightError(f"sm={sm!r}: the referee's target is {self.target}")
        self.sm = self.target

    def load(self, ptx: str, name: str = "PTX", sources: Mapping[str, str] = {}) -> RemoteModule:
        message = {"do": "load", "ptx": ptx, "name": name, "sources": dict(sources)}
        answer = self.client.ask(message)
        return RemoteModule(answer["module"], name, answer["kernels"])

    def lend(
        self, address: int, bytes: int, owner: object, name: str = "", *, written: bool = True, writable: bool = True
    ) -> RemoteMemory:
        return self.client.lend(address, bytes, name, written, writable)

    def launch(
        self,
        kernel: RemoteKernel,
        grid: Sequence[int],
        block: Sequence[int],
        params: bytes,
        *,
        shared: int = 0,
        cooperative: bool = False,
        **_: Any,
    ) -> RemoteLaunched:
        """Launches. How it is checked, the referee decides."""
        writes, payload = self.client.writes()
        message = {
            "do": "launch",
            "module": kernel.module,
            "kernel": kernel.name,
            "afresh": kernel.is_afresh,
            "grid": [int(extent) for extent in grid],
            "block": [int(extent) for extent in block],
            "params": bytes(params).hex(),
            "shared": int(shared),
            "cooperative": bool(cooperative),
            "writes": writes,
        }
        self.client.ask(message, payload)
        return RemoteLaunched(kernel.name)


def _imports(text: str) -> set[str]:
    """The packages that a program imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def _unwritten_arrays(client: Client) -> None:
    """`numpy.empty` makes memory that counts as not written."""
    plain, plain_like = np.empty, np.empty_like

    def spoilt(array: np.ndarray) -> np.ndarray:
        if array.size and array.flags.c_contiguous and not array.dtype.hasobject:
            client.spoil(view(array.ctypes.data, array.nbytes, array))
            client.new[array.ctypes.data] = array.nbytes
        return array

    np.empty = lambda *given, **named: spoilt(plain(*given, **named))  # type: ignore
    np.empty_like = lambda *given, **named: spoilt(plain_like(*given, **named))  # type: ignore


def _load(file: str, client: Client, sm: str, check: str) -> tuple[ModuleType, set[str]]:
    """The candidate as a module, and the packages that it imports."""
    with open(file, encoding="utf-8") as opened:
        imports = _imports(opened.read())
    _warpwright.Device = RemoteDevice  # type: ignore[assignment, misc]
    settings.sm, settings.check, settings.on_findings = sm, check, "continue"
    if "triton" in imports:
        from .. import triton

        triton.enable(check=check, sm=sm, on_findings="continue", cuda="torch" in imports)
    _unwritten_arrays(client)
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location("candidate", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module, imports


def _as_tensor(array: np.ndarray, dtype: str) -> Any:
    """An array as a tensor of its memory, on the device that the program's Triton has."""
    import torch

    tensor = torch.from_numpy(array)
    if "warpwright.triton.torch" in sys.modules:
        from ..triton.torch import CUDA

        setattr(tensor.untyped_storage(), CUDA, True)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _arguments(
    client: Client, message: dict[str, Any], payload: bytes, arenas: dict[int, Arena], are_tensors: bool
) -> list[Any]:
    """The arguments of a run. Arrays are NumPy's, or PyTorch's where the program imports that."""
    base, arrays = message["base"], [argument for argument in message["arguments"] if "shape" in argument]
    if base not in arenas:
        arenas[base] = Arena([(array["bytes"], array["align"]) for array in arrays], base)
    arena, values, offset = arenas[base], [], 0
    client.arrays.clear()
    for argument in message["arguments"]:
        if "shape" not in argument:
            values.append(argument["value"])
            continue
        number = len(client.arrays)
        memory, address = arena.views[number], arena.addresses[number]
        remote = None
        if argument["role"] == "in":
            memory[:] = np.frombuffer(payload, np.uint8, memory.size, offset)
            offset += memory.size
        else:
            client.spoil(memory)
            remote = RemoteMemory(client, address, memory.size, ~number, True, True)
        client.arrays[address] = (memory.size, remote)
        # An array of its own: what is lent of it is its own memory.
        array = np.frombuffer(memory.base, DTYPES[argument["dtype"]].storage)  # type: ignore[arg-type]
        array = array.reshape(argument["shape"])
        values.append(_as_tensor(array, argument["dtype"]) if are_tensors else array)
    return values


def main(descriptor: str, file: str, function: str, sm: str, check: str, host_bytes: str) -> None:
    """Serves the referee until it hangs up."""
    wire = Wire(socket.socket(fileno=int(descriptor)))
    client = Client(wire, int(host_bytes))
    RemoteDevice.client, RemoteDevice.target = client, sm
    try:
        module, imports = _load(file, client, sm, check)
        launch = getattr(module, function, None)
        if not callable(launch):
            raise AttributeError(f"{file} has no function `{function}`")
    except BaseException:
        wire.send({"do": "failed", "why": traceback.format_exc(limit=-8)})
        return
    wire.send({"do": "ready"})
    arenas: dict[int, Arena] = {}
    while True:
        message, payload = wire.receive()
        client.host_bytes = message["host_bytes"]
        arguments = _arguments(client, message, payload, arenas, "torch" in imports)
        try:
            launch(*arguments)
        except Exception:
            wire.send({"do": "raised", "why": traceback.format_exc(limit=-8)})
            continue
        writes, contents = client.writes()
        wire.send({"do": "done", "writes": writes}, contents)


if __name__ == "__main__":
    with contextlib.suppress(Closed):
        main(*sys.argv[1:])
