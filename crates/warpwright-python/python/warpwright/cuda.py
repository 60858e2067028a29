"""CUDA programs of this process on virtual GPUs: numba-cuda, cuda.core and others find ours as NVIDIA's driver.

```python
import warpwright.cuda

warpwright.cuda.enable(check="all")
from numba import cuda          # behind it: it finds the driver that is there

...
for report in warpwright.cuda.take():
    print(report.text)
```

This is `warpwright exec` for a program that runs already. It can do less: libraries that were loaded before stay, and
NVIDIA's CUDA runtime is not replaced where PyTorch is installed, which would take CUDA for there. Programs of PyTorch
run under `warpwright exec`.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import nvrtc
from ._names import with_python_names
from ._preload import load_as
from .errors import WarpwrightError
from .report import Report
from .settings import Settings, refuse, settings

_FOLDER = "WARPWRIGHT_FOLDER"
"""Names the folder where the stand-ins for NVIDIA's compiler and linker look for links to NVIDIA's own."""

_STANDINS = {"libnvrtc": "libwarpwright_nvrtc.so", "libnvJitLink": "libwarpwright_nvjitlink.so"}
"""Libraries that make machine code, and ours, which ask them for PTX."""

_driver: ctypes.CDLL | None = None


def is_enabled() -> bool:
    """Whether `enable` was called."""
    return _driver is not None


def enable(
    *,
    check: str | None = None,
    order: str | None = None,
    race: str | None = None,
    sm: str | int | None = None,
    max_instructions: int | None = None,
) -> None:
    """Makes our driver that of this process, before anything has loaded NVIDIA's, and sets how launches are checked.

    What is not given is as in `warpwright.settings`. A second call changes them from the next launch on, but for the
    device, which stays. A kernel that executes more than `max_instructions`, each counted once per thread, is ended.
    An error of a kernel does not stay with its context: the next call that waits returns it, and work goes on. Findings
    are kept for `take`.
    """
    global _driver
    limit = settings.max_instructions
    given = {"check": check, "race": race, "order": order}
    try:
        if max_instructions is not None:
            limit = Settings(max_instructions=max_instructions).max_instructions
        for name, one in given.items():
            if one is not None:
                refuse(name, one)
    except ValueError as error:
        raise WarpwrightError(str(error)) from None
    if _driver is None:
        _driver = _under_exec() or _load(str(sm if sm is not None else settings.sm))
        _driver.warpwrightCalls.restype = ctypes.c_uint64
        _driver.warpwrightTake.restype = ctypes.c_char_p
        _driver.warpwrightTake()
    chosen = tuple(getattr(settings, name) if one is None else one for name, one in given.items())
    if _driver.warpwrightSet(*(text.encode() for text in chosen)) != 0:
        raise WarpwrightError(
            f"check {chosen[0]!r}, race {chosen[1]!r}, order {chosen[2]!r}: a check is all, or memcheck, racecheck, "
            "initcheck, synccheck, synccheck=strict and api between commas; a race is normal or strict; an order is "
            "issue, reverse or random: and a number"
        )
    _driver.warpwrightLimit(ctypes.c_uint64(limit))


def take() -> list[Report]:
    """The reports of launches with findings since the last call, and of calls that failed, if `check` has `api`.

    All work so far is completed first. Equal findings of several launches are in the first report alone, and are there
    again after the next call. Without a driver of ours there are none.
    """
    if _driver is None:
        return []
    lines = _driver.warpwrightTake()
    if lines is None:
        raise WarpwrightError("take: called by a function that a stream calls, which cannot wait for streams")
    launches: dict[Any, list[dict[str, Any]]] = {}
    for line in lines.decode().splitlines():
        event = json.loads(line)
        # What fails again was told before.
        if event["event"] in ("finding", "trap", "api", "condition"):
            call = event.get("call") or {}
            launches.setdefault((call.get("number"), event.get("kernel")), []).append(event)
    return [Report(_Told(events)) for events in launches.values()]


def calls() -> int:
    """The number of calls of the driver so far."""
    return _driver.warpwrightCalls(None) if _driver else 0


_LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch")


def launches() -> int:
    """The number of the driver's launches so far, of kernels and of graphs."""
    names = [name + variant for name in _LAUNCHES for variant in ("", "_ptsz")] if _driver else []
    return sum(_driver.warpwrightCalls(name.encode()) for name in names) if _driver else 0


class _Told:
    """A launch, of the lines that the driver writes about it."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events
        self._findings = [_finding(event) for event in events if event["event"] != "trap"]
        self._trap = next((event for event in events if event["event"] == "trap"), None)
        self.kernel: str = next((event["kernel"] for event in events if event.get("kernel")), "")
        self.is_clean = False
        self.has_errors = self._trap is not None or any(found["severity"] == "error" for found in self._findings)
        self.output = ""

    def text(self) -> str:
        return with_python_names("\n".join(event["text"] for event in self._events))

    def json(self) -> str:
        document = {"kernel": self.kernel, "findings": self._findings, "trap": self._trap, "counters": {}, "lines": []}
        return json.dumps(document)

    def documents(self) -> list[str]:
        return [json.dumps(event) for event in self._events]


def _finding(event: dict[str, Any]) -> dict[str, Any]:
    """An event as a finding. Failed calls and conditions of graphs have no accesses."""
    if event["event"] == "finding":
        return event
    of_call = event["event"] == "api"
    return {
        "tool": "api" if of_call else "graph",
        "kind": event["name"] if of_call else "condition",
        "severity": "error",
        "message": event["text"].splitlines()[0],
        "kernel": "",
        "count": 1,
        "accesses": [],
        "allocation": None,
    }


def _under_exec() -> ctypes.CDLL | None:
    """Our driver, where the loader finds it: under `warpwright exec`."""
    if _FOLDER not in os.environ:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if hasattr(driver, "warpwrightSet") else None


def _load(sm: str) -> ctypes.CDLL:
    """Loads our driver under NVIDIA's names, and what stands in for the compilers that are installed."""
    if sys.platform != "linux":
        raise WarpwrightError(f"the driver is there on Linux alone; this is {sys.platform}")
    ours = Path(__file__).parent / "bin"
    libraries = {name: ours / "libwarpwright_cuda.so" for name in ("libcuda.so.1", "libcuda.so")}
    real = {}
    for folder in nvrtc.folders():
        for file in (folder / "lib").glob("lib*.so.*"):
            standin = _STANDINS.get(file.name.split(".")[0])
            if standin and file.name not in libraries:
                libraries[file.name], real[file.name] = ours / standin, file
    # PyTorch would take CUDA for there.
    runtime = [file.name for folder in nvrtc.folders() for file in (folder / "lib").glob("libcudart.so.*")]
    if runtime and find_spec("torch") is None:
        libraries[max(runtime)] = ours / "libwarpwright_cudart.so"
    loaded = [name for name in libraries if _is_loaded(name)]
    if loaded:
        raise WarpwrightError(
            f"this process has loaded {', '.join(loaded)} already: call enable before anything that uses CUDA, or "
            "start the program under `warpwright exec`"
        )
    for library in libraries.values():
        if not library.is_file():
            raise WarpwrightError(f"{library} is not there: the package was not installed with its libraries")
    place = Path(tempfile.mkdtemp(prefix="warpwright-"))
    atexit.register(_remove, place, os.getpid())
    for name, file in real.items():
        (place / f"real-{name}").symlink_to(file.resolve().parent / name)
    # The driver reads its environment once, at its first call; what this process starts later has none of it.
    own = {"WARPWRIGHT_DEVICES": sm, "WARPWRIGHT_WORKERS": str(settings.workers), "WARPWRIGHT_ON_ERROR": "continue"}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    os.environ[_FOLDER] = str(place)
    try:
        load_as(libraries, place)
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.warpwrightSet(None, None, None) != 0:
            raise WarpwrightError(f"sm {sm!r}: no architecture of a virtual GPU; it is such as 75, 80 or 90")
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return driver


def _is_loaded(name: str) -> bool:
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _remove(folder: Path, process: int) -> None:
    """Removes the folder at the end of the process that made it, and not at that of a fork."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
