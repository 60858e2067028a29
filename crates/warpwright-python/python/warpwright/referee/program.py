"""Candidates that are programs of Python: their host code in a process of its own, their kernels in this one."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import nvrtc
from .._warpwright import Device, Kernel, Memory, Module
from ..errors import PtxError, WarpwrightError
from ..report import Report
from .arena import Arena
from .candidates import Outcome, Rejected, Unusable, how
from .dtypes import Array
from .spec import Spec
from .stage import Stage
from .trace import Trace
from .wire import Closed, Late, Malformed, Wire

ALIGN = 256
"""Scratch memory is at a multiple of this, and by as little behind it as the program's is behind one of SHIFT: where a
program has its memory, it could say to a kernel what it knows."""

SHIFT = 16
"""Memory of NumPy and of PyTorch is at multiples of this."""

START = 120.0
"""Seconds that a program has for its imports."""

MAX_MODULES = 10_000

KEPT = 2000
"""Bytes that are kept of what a program prints, for messages: its last."""

CLOSE = 15.0
"""Seconds in which the program's process, and what it has started, must end."""


@dataclass
class Scratch:
    """Memory that a program has besides the arrays of the run: what kernels see of it."""

    address: int
    """In the program's process."""
    here: int
    """In this one, where kernels reach it."""
    contents: np.ndarray
    memory: Memory
    name: str
    serial: int
    is_lent: bool = True
    is_fresh: bool = True
    """Whether it has nothing that was there before the run."""


class ProgramCandidate:
    """A program. What it says about findings, counts and results is not asked for."""

    def __init__(self, file: Path, spec: Spec, device: Device, random: np.random.Generator) -> None:
        self._spec, self._device, self._random = spec, device, random
        self._modules: list[Module] = []
        self._code: list[bytes] = []
        self._kernels: dict[tuple[int, str], Kernel] = {}
        self._scratch: dict[int, Scratch] = {}
        self._seen: dict[Any, set[bytes]] = {}
        """By shape and scalars, the PTX that was loaded in the first run of them and before."""
        self._traces: dict[Any, Trace | None] = {}
        """By the same, what was done in the second run of them. In the first, a program may tune, or make tables."""
        self._trace = Trace()
        self._serials = 0
        self._pid = 0
        self.deadline = float("inf")
        """Of all runs, by `time.monotonic`."""
        self._loaded: set[bytes] = set()
        here, there = socket.socketpair()
        self._control, control = socket.socketpair()
        host_bytes = max(spec.run.host_bytes.value(sizes) for sizes in spec.shapes)
        self._wire = Wire(here, max_payload=host_bytes)
        package = Path(__file__).parents[2]
        paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, "-m", "warpwright.referee.child", str(there.fileno()), str(file), spec.function]
        supervisor = [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervise.py")), str(control.fileno())]
        self._process = subprocess.Popen(
            [*supervisor, *command, spec.sm, spec.run.check, str(host_bytes)],
            pass_fds=[there.fileno(), control.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        there.close()
        control.close()
        self._printed = Printed(self._process.stdout)
        try:
            self._pid = int.from_bytes(self._control.recv(8), "little")
            self._start(file)
        except BaseException:
            self.close()
            raise

    def _start(self, file: Path) -> None:
        outcome, deadline = Outcome(), time.monotonic() + START
        try:
            message = self._serve(None, "issue", outcome, deadline)
        except Late:
            raise Rejected("timeout", f"{file} was not imported within {START:.0f} seconds") from None
        except Closed:
            raise Rejected("exited", f"the process ended while it imported {file}{self._last_words()}") from None
        except Malformed as error:
            raise Rejected("protocol", str(error)) from None
        if message["do"] == "failed":
            raise Rejected("does-not-load", self._why(message))

    def run(self, stage: Stage, order: str) -> Outcome:
        outcome, run = Outcome(), self._spec.run
        key = (tuple(stage.sizes.items()), tuple(stage.scalars.items()))
        before = set(self._loaded)
        self._trace = Trace()
        for scratch in self._scratch.values():
            scratch.is_fresh = False
        deadline = min(time.monotonic() + run.seconds, self.deadline)
        try:
            self._wire.send(*self._described(stage))
            message = self._serve(stage, order, outcome, deadline)
            if (
                message["do"] == "raised"
                and not outcome.failures
                and not any(report.trap for report in outcome.reports)
            ):
                outcome.failures.append(("raised", self._why(message)))
        except Late:
            limit = f"{run.seconds:g} seconds"
            if deadline == self.deadline:
                limit = f"the {run.total_seconds:g} seconds that all runs have (run.total_seconds)"
            why = f"`{self._spec.function}` did not return within {limit}"
            outcome.failures.append(("timeout", why))
            outcome.is_last = True
        except Closed:
            outcome.failures.append(("exited", f"its process ended during the run{self._last_words()}"))
            outcome.is_last = True
        except Malformed as error:
            outcome.failures.append(("protocol", f"its process sent {error}, and not what warpwright sends"))
            outcome.is_last = True
        if key in self._seen and self._loaded - before:
            why = "it loads other code than for the same shape and scalars before: code may not depend on values"
            outcome.failures.append(("new-code", why))
        self._seen.setdefault(key, self._loaded)
        if not stage.is_repeat and not outcome.failures and not any(report.trap for report in outcome.reports):
            self._compare_trace(key, outcome)
        return outcome

    def _compare_trace(self, key: Any, outcome: Outcome) -> None:
        """From the third run of a shape and scalars on, a program does what it did in the second."""
        if key not in self._traces:
            self._traces[key] = None
        elif (other := self._traces[key]) is None:
            self._traces[key] = self._trace
        elif (what := self._trace.difference(other)) is not None:
            why = f"it launches other than for the same shape and scalars before, and only values differ: {what}"
            outcome.failures.append(("new-launches", why))

    def _described(self, stage: Stage) -> tuple[dict[str, Any], bytes]:
        """A run, for the program: its arrays have other values than those that kernels see."""
        arguments: list[dict[str, Any]] = []
        payload = []
        for argument in stage.arguments:
            if not argument.is_array:
                arguments.append({"value": stage.scalars[argument.name]})
                continue
            array = stage.arrays[argument.name]
            told = {"shape": array.shape, "bytes": array.nbytes, "align": argument.align}
            arguments.append({**told, "dtype": argument.dtype.name, "role": argument.role})
            if argument.role == "in":
                assert argument.values is not None
                drawn: Array = argument.values.draw(argument.dtype, array.shape, stage.sizes, self._random)
                payload.append(drawn.tobytes())
        host_bytes = self._spec.run.host_bytes.value(stage.sizes)
        message = {"base": stage.arena.base, "arguments": arguments, "host_bytes": host_bytes}
        return message, b"".join(payload)

    def _serve(self, stage: Stage | None, order: str, outcome: Outcome, deadline: float) -> dict[str, Any]:
        """Does what the program asks for, until it is done, and returns its last message."""
        while True:
            message, payload = self._wire.receive(deadline)
            what = message.get("do")
            if what in ("ready", "failed") and stage is None:
                return message
            try:
                if what == "done" and stage is not None:
                    self._write(message["writes"], payload, stage, outcome)
                    return message
                if what == "raised" and stage is not None:
                    return message
                answer = self._answer(what, message, payload, stage, order, outcome)
            except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
                raise Malformed(f"a request {what!r} that means nothing ({type(error).__name__}: {error})") from None
            if answer is not None:
                self._wire.send(answer)

    def _answer(
        self, what: object, message: dict[str, Any], payload: bytes, stage: Stage | None, order: str, outcome: Outcome
    ) -> dict[str, Any] | None:
        if what == "load":
            return self._load(message)
        if what == "lend":
            return self._lend(message)
        if what in ("close", "forget"):
            scratch = self._scratch.get(message["memory"])
            if scratch is not None and what == "close":
                scratch.is_lent = False
            elif scratch is not None:
                self._forget(scratch)
            return None
        if what == "launch":
            if stage is None:
                return {"error": "there are no launches before the function is called"}
            return self._launch(message, payload, stage, order, outcome)
        raise ValueError("there is no such request")

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Loads PTX, once."""
        ptx, name = str(message["ptx"]), str(message["name"])
        sources = {str(file): str(text) for file, text in message["sources"].items()}
        if len(self._modules) >= MAX_MODULES:
            return {"error": f"{MAX_MODULES} modules are loaded: there can be no more"}
        try:
            module = self._device.load(ptx, name, sources)
        except PtxError as error:
            return {"error": str(error), "ptx": True}
        code = hashlib.sha256(ptx.encode()).digest()
        self._loaded = self._loaded | {code}
        self._modules.append(module)
        self._code.append(code)
        kernels = {}
        for entry in module.kernels:
            kernel = module.kernel(entry)
            params = [
                (param.name, param.type, param.bytes, param.offset, param.is_pointer, param.is_array)
                for param in kernel.params
            ]
            about = {"static_shared": kernel.static_shared, "max_threads": kernel.max_threads}
            kernels[entry] = {"params": params, **about, "required_block": kernel.required_block}
        return {"module": len(self._modules) - 1, "kernels": kernels}

    def _lend(self, message: dict[str, Any]) -> dict[str, Any]:
        """Makes memory for kernels. Where the program had some at these addresses, it has what that had."""
        key, address, size = int(message["memory"]), int(message["address"]), int(message["bytes"])
        if size <= 0 or address <= 0 or address + size >= 1 << 63:
            raise ValueError(f"{size} bytes at {address:#x}")
        over = [
            (old, scratch)
            for old, scratch in self._scratch.items()
            if scratch.address < address + size and address < scratch.address + scratch.contents.size
        ]
        if any(scratch.is_lent for _, scratch in over):
            return {"error": f"{size} bytes at {address:#x} overlap memory that is lent already"}
        if len(over) == 1 and (over[0][1].address, over[0][1].contents.size) == (address, size):
            scratch = self._scratch.pop(over[0][0])
            scratch.is_lent = True
            if message["fresh"]:
                self._forget(scratch)
        else:
            made = self._make(address, size, str(message["name"]))
            if made is None:
                return {"error": f"there is no room for {size} bytes: the limit is run.scratch_bytes"}
            scratch = made
            for old, other in over:
                if not message["fresh"]:
                    _keep(other, scratch)
                    scratch.is_fresh = scratch.is_fresh and other.is_fresh
                other.memory.close()
                del self._scratch[old]
        self._scratch[key] = scratch
        return {}

    def _make(self, address: int, size: int, name: str) -> Scratch | None:
        """Scratch memory. The oldest that is lent no more gives way."""
        limit = self._spec.run.scratch_bytes
        idle = [key for key, scratch in self._scratch.items() if not scratch.is_lent]
        while sum(scratch.contents.size for scratch in self._scratch.values()) + size > limit:
            if not idle:
                return None
            self._scratch.pop(idle.pop(0)).memory.close()
        shift = address % SHIFT
        arena = Arena([(size + shift, ALIGN)])
        here, contents = arena.addresses[0] + shift, arena.views[0][shift:]
        contents[:] = np.frombuffer(self._random.bytes(1 << 12), np.uint8)[np.arange(size) % (1 << 12)]
        self._serials += 1
        memory = self._device.lend(here, size, arena, name, written=False)
        return Scratch(address, here, contents, memory, name, self._serials)

    def _forget(self, scratch: Scratch) -> None:
        """Memory has no contents any more."""
        scratch.memory.forget()
        scratch.is_fresh = True
        self._trace.renew(scratch.serial)

    def _write(self, writes: list[Any], payload: bytes, stage: Stage, outcome: Outcome) -> None:
        """What the program wrote into memory: one value everywhere, or other contents as far as they are allowed."""
        left = self._spec.run.host_bytes.value(stage.sizes)
        arrays = [argument for argument in stage.arguments if argument.is_array]
        offset_of_payload = 0
        for write in writes:
            key, offset, size, fill = int(write["memory"]), int(write["offset"]), int(write["bytes"]), write["fill"]
            owner: Scratch | None = None
            if key < 0:
                argument = arrays[~key]
                if not argument.is_output:
                    raise ValueError("a write into an input")
                name, memory = argument.name, stage.memories[argument.name]
                contents = stage.arena.views[~key]
            else:
                owner = self._scratch[key]
                name, memory, contents = owner.name or "memory of its own", owner.memory, owner.contents
            if not 0 <= offset <= offset + size <= contents.size:
                raise ValueError("a write outside of memory")
            if owner is not None and size == contents.size:
                self._forget(owner)
            if fill is not None:
                value = np.frombuffer(bytes.fromhex(fill), np.uint8)
                if value.size not in (1, 2, 4, 8) or offset or size != contents.size or size % value.size:
                    raise ValueError("a fill of a part")
                contents.reshape(-1, value.size)[:] = value
            elif write["sent"] and size <= left:
                left -= size
                contents[offset : offset + size] = np.frombuffer(payload, np.uint8, size, offset_of_payload)
                offset_of_payload += size
            else:
                outcome.notes.append(
                    f"its host code wrote contents into {name}, which kernels did not get: one value everywhere is "
                    "allowed, and other contents as far as run.host_bytes says"
                )
                continue
            memory.mark_written(offset, size)
            told = (
                bytes.fromhex(fill)
                if fill is not None
                else hashlib.sha256(contents[offset : offset + size].tobytes()).digest()
            )
            place = name if owner is None else f"{self._label(owner)} memory"
            self._trace.write(place, offset, told)

    def _label(self, scratch: Scratch) -> str:
        return f"{self._trace.label(scratch.serial, scratch.is_fresh)} (+{scratch.here % ALIGN})"

    def _launch(
        self, message: dict[str, Any], payload: bytes, stage: Stage, order: str, outcome: Outcome
    ) -> dict[str, Any]:
        self._write(message["writes"], payload, stage, outcome)
        key = (int(message["module"]), str(message["kernel"]))
        if key not in self._kernels:
            if not 0 <= key[0] < len(self._modules):
                raise ValueError("no such module")
            self._kernels[key] = self._modules[key[0]].kernel(key[1])
        kernel = self._kernels[key]
        if message["afresh"]:
            kernel = kernel.afresh(self._device) or kernel
        params, told = self._redirected(kernel, bytes.fromhex(message["params"]))
        grid, block = ([int(extent) for extent in message[dims]] for dims in ("grid", "block"))
        shared, cooperative = int(message["shared"]), bool(message["cooperative"])
        try:
            launched = self._device.launch(
                kernel,
                grid,
                block,
                params,
                shared=shared,
                cooperative=cooperative,
                order=order,
                **how(self._spec.run),
            )
        except WarpwrightError as error:
            # The program may know what to do about it.
            return {"error": str(error)}
        report = Report(launched)
        outcome.reports.append(report)
        self._trace.launch(
            self._code[key[0]], kernel.name, told, grid=grid, block=block, shared=shared, how=cooperative
        )
        # Nothing else of what was found, or printed: the program shall not learn what the values are.
        return {"error": f"`{kernel.name}` did not run to its end"} if report.trap else {}

    def _redirected(self, kernel: Kernel, params: bytes) -> tuple[bytes, list[tuple[str, Any]]]:
        """Parameters with the addresses that scratch memory has here, and what they are but for these addresses."""
        redirected = bytearray(params)
        told: list[tuple[str, Any]] = []
        for param in kernel.params:
            words: list[Any] = []
            end = param.offset + param.bytes
            for offset in range(param.offset, end, 8):
                word = params[offset : min(offset + 8, end)]
                address = int.from_bytes(word, "little")
                words.append(word.hex())
                for scratch in self._scratch.values() if len(word) == 8 else ():
                    # One past the end is an address that kernels compute with.
                    if scratch.is_lent and 0 <= address - scratch.address <= scratch.contents.size:
                        here = address - scratch.address + scratch.here
                        redirected[offset : offset + 8] = here.to_bytes(8, "little")
                        words[-1] = (scratch, address - scratch.address)
                        if address < scratch.address + scratch.contents.size:
                            break
                if isinstance(words[-1], tuple):
                    words[-1] = (self._label(words[-1][0]), words[-1][1])
            told.append((param.name, words))
        return bytes(redirected), told

    def _why(self, message: dict[str, Any]) -> str:
        """What the program raised. Unusable if that is because this machine has no compiler."""
        why = str(message.get("why"))
        if nvrtc.INSTALL in why and not nvrtc.is_installed():
            raise Unusable(why)
        return why

    def _last_words(self) -> str:
        """What the process printed last, for a message."""
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return ""
        words = self._printed.last()
        return f", with status {status}" + (f": {words}" if words else "")

    def close(self) -> None:
        """Ends the process and what it has started."""
        self._wire.close()
        self._control.close()
        try:
            self._process.wait(CLOSE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # The program may have ended its parent, which would have ended it.
        if self._pid and self._process.returncode < 0:
            try:
                os.killpg(self._pid, signal.SIGKILL)
            except OSError:
                pass
        self._printed.close()


class Printed:
    """What a process prints: its end is kept, and all of it is read, so that the process never waits."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream, self._kept = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream as stream:
            while part := os.read(stream.fileno(), 1 << 16):
                self._kept = (self._kept + part)[-KEPT:]

    def last(self) -> str:
        """The last that was printed."""
        self._thread.join(1)
        return self._kept.decode(errors="replace").strip()

    def close(self) -> None:
        """Waits for the end, if all processes that could print have ended."""
        self._thread.join(1)


def _keep(old: Scratch, new: Scratch) -> None:
    """What memory has of the memory that was at its addresses."""
    first, end = max(old.address, new.address), min(old.address + old.contents.size, new.address + new.contents.size)
    new.contents[first - new.address : end - new.address] = old.contents[first - old.address : end - old.address]
    if old.memory.is_written(first - old.address, end - first):
        new.memory.mark_written(first - new.address, end - first)
