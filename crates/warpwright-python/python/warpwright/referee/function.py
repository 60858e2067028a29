"""The process that has a reference that is a function of Python: it may take long, or exit.

It imports the function before a candidate runs, and calls it when the candidate is gone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .dtypes import Array
from .wire import Closed, Late, Malformed, Wire

START = 120.0
"""Seconds for its imports."""


class FunctionError(Exception):
    """Why there is no result."""


class Function:
    """A function in a process of its own."""

    def __init__(self, file: Path, name: str) -> None:
        """Imports it. FunctionError if that fails."""
        here, there = socket.socketpair()
        self._wire = Wire(here)
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "warpwright.referee.function", str(there.fileno()), str(file), name],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            # The standard output is the verdict's.
            stdout=2,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        there.close()
        try:
            message, _ = self._receive(START, "while it is imported")
        except BaseException:
            self.close()
            raise
        self.parameters: list[str] = message["parameters"]

    def call(self, numbers: Mapping[str, Any], arrays: Mapping[str, Array], seconds: float) -> list[Array]:
        """Calls it by names. FunctionError if there is no result in so many seconds."""
        told = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
        payload = b"".join(array.tobytes() for array in arrays.values())
        with contextlib.suppress(Closed):
            self._wire.send({"numbers": dict(numbers), "arrays": told}, payload)
        message, payload = self._receive(seconds, "in a call")
        return _arrays([("", *one) for one in message["arrays"]], payload)

    def _receive(self, seconds: float, when: str) -> tuple[dict[str, Any], bytes]:
        try:
            message, payload = self._wire.receive(time.monotonic() + seconds)
        except Late:
            raise FunctionError(f"takes more than {seconds:g} seconds {when}: see reference.seconds") from None
        except Closed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            status = self._process.returncode
            raise FunctionError(f"ends its process {when}, with status {status}: it must return arrays") from None
        except Malformed as error:
            raise FunctionError(f"sends {error} {when}") from None
        if "why" in message:
            raise FunctionError(message["why"])
        return message, payload

    def close(self) -> None:
        """Ends the process."""
        self._wire.close()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _arrays(told: list[Any], payload: bytes) -> list[Array]:
    arrays, offset = [], 0
    for _, dtype, shape in told:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        # A copy, which a reference may change.
        arrays.append(np.frombuffer(payload, kind, count, offset).reshape(shape).copy())
        offset += count * kind.itemsize
    return arrays


def _load(file: str, name: str) -> Any:
    loaded = importlib.util.spec_from_file_location("_warpwright_reference", file)
    assert loaded is not None and loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    sys.path.insert(0, str(Path(file).parent))
    loaded.loader.exec_module(module)
    sys.path.pop(0)
    function = getattr(module, name, None)
    return function if callable(function) else None


def _answer(function: Any, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
    arrays = _arrays(message["arrays"], payload)
    given = {**message["numbers"], **{name: array for (name, *_), array in zip(message["arrays"], arrays)}}
    try:
        with np.errstate(all="ignore"):
            result = function(**given)
        results = [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]
    except BaseException:
        return {"why": f"failed:\n{traceback.format_exc(limit=-4)}"}, b""
    for part in results:
        if part.dtype.kind not in "biuf":
            return {"why": f"returns {part.dtype}, and not numbers"}, b""
    told = [(part.dtype.newbyteorder("=").str, part.shape) for part in results]
    contents = b"".join(part.astype(part.dtype.newbyteorder("=")).tobytes() for part in results)
    return {"arrays": told}, contents


def main(descriptor: str, file: str, name: str) -> None:
    """Serves the referee until it hangs up."""
    wire = Wire(socket.socket(fileno=int(descriptor)))
    try:
        function = _load(file, name)
    except BaseException:
        wire.send({"why": f"fails:\n{traceback.format_exc(limit=-4)}"})
        return
    if function is None:
        wire.send({"why": f"has no function `{name}`: see reference.function"})
        return
    wire.send({"parameters": list(inspect.signature(function).parameters)})
    while True:
        wire.send(*_answer(function, *wire.receive()))


if __name__ == "__main__":
    with contextlib.suppress(Closed):
        main(*sys.argv[1:])
