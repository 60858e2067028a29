"""What launches do if they are not told, and who is told of them.

```
>>> import warpwright
>>> warpwright.settings.check
'memcheck'

```
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ._warpwright import Device
    from .report import Report


CHECKS = ("all", "memcheck", "racecheck", "initcheck", "synccheck", "synccheck=strict")
"""The checks of a launch."""


@dataclass
class Settings:
    """The defaults of launches. A change holds from the next launch on."""

    check: str = "memcheck"
    """`"all"`, or names between commas: memcheck, racecheck, initcheck, synccheck, synccheck=strict; and `api`, which
    is of calls of the CUDA driver."""
    order: str = "issue"
    """The order of blocks and warps: issue, reverse, or random: and a seed."""
    race: str = "normal"
    """The definition of a race: normal, or strict, by the letter of the memory model."""
    sm: str = "80"
    """The compute capability of the device."""
    workers: int = 0
    """Host threads of a device; 0 for one a core."""
    on_findings: Literal["raise", "continue"] = "raise"
    """What the launch of a compiler's kernel, such as Triton's, does about an error: raise it, or go on. What is not
    raised goes to the callbacks of `on_report`, or to standard error if there are none. `run` always returns it."""
    max_instructions: int = 1 << 40
    """A kernel that executes more is ended, with a trap. Each instruction counts once per thread."""
    _callbacks: list[Callable[[Report], None]] = field(default_factory=list, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        fields = self.__dataclass_fields__
        if name not in fields:
            known = ", ".join(known for known in fields if not known.startswith("_"))
            raise AttributeError(f"there is no setting {name!r}: there are {known}")
        if name == "on_findings" and value not in ("raise", "continue"):
            raise ValueError(f"on_findings={value!r}: it is 'raise' or 'continue'")
        if name == "workers" and not (type(value) is int and 0 <= value < 1 << 10):
            raise ValueError(f"workers={value!r}: it is a number of threads up to 1023, and 0 means one a core")
        if name == "max_instructions":
            value = _limit(value)
        if name == "sm":
            value = str(value)
        refuse(name, value)
        super().__setattr__(name, value)

    def publish(self, report: Report) -> None:
        """Tells of a launch. Whatever launches calls this."""
        for callback in tuple(self._callbacks):
            callback(report)

    @property
    def check_of_kernels(self) -> str:
        """`check` without the driver's own, which is of no launch."""
        return ",".join(one for one in self.check.split(",") if one.strip() != "api") or "memcheck"

    def is_heard(self) -> bool:
        """Whether anybody is told of launches."""
        return bool(self._callbacks)


def is_order(text: str) -> bool:
    """Whether a text is an order of blocks, warps and streams."""
    seed = re.fullmatch(r"random:([0-9]+)", text)
    return text in ("issue", "reverse") or (seed is not None and int(seed[1]) < 1 << 64)


def refuse(name: str, value: object, of_driver: bool = True) -> None:
    """Raises ValueError for a check, an order or a race that there is not; the CUDA driver has a check of its own."""
    known = (*CHECKS, "none", *(["api"] if of_driver else []))
    rules = {
        "check": f"there are {', '.join(known)}, also several between commas",
        "order": "it is issue, reverse, or random: and a number",
        "race": "it is normal or strict",
    }
    if name not in rules:
        return
    if not isinstance(value, str):
        raise ValueError(f"{name}={value!r}: it is a text and no {type(value).__name__}; {rules[name]}")
    wrong = [one.strip() for one in value.split(",") if one.strip() not in known]
    if name == "check" and wrong:
        raise ValueError(f"check={wrong[0]!r}: {rules[name]}")
    if (name == "order" and not is_order(value)) or (name == "race" and value not in ("normal", "strict")):
        raise ValueError(f"{name}={value!r}: {rules[name]}")


def _limit(value: Any) -> int:
    """A number of instructions that a launch may execute."""
    try:
        limit = 0 if isinstance(value, bool) else index(value)
    except TypeError:
        limit = 0
    if not 0 < limit < 1 << 64:
        raise ValueError(f"max_instructions={value!r}: it is a whole number from 1 on")
    return limit


settings = Settings()
"""The settings of the process."""


def on_report(callback: Callable[[Report], None]) -> Callable[[], None]:
    """Has a function called with the report of every launch, by `run` and by Triton. The result ends that."""
    if not callable(callback):
        raise TypeError(f"{callback!r} is no function that takes a report")
    settings._callbacks.append(callback)

    def remove() -> None:
        if callback in settings._callbacks:
            settings._callbacks.remove(callback)

    return remove


_devices: dict[tuple[str, int], Device] = {}

# Those of a process that this one was forked from: their host threads are not here, and must not be waited for.
_left: list[object] = []


def _leave_devices() -> None:
    _left.append(dict(_devices))
    _devices.clear()


os.register_at_fork(after_in_child=_leave_devices)


def device(sm: str | int | None = None) -> Device:
    """The device of the process of that compute capability, made when it is first asked for."""
    from ._warpwright import Device

    key = (str(sm if sm is not None else settings.sm), settings.workers)
    if key not in _devices:
        _devices[key] = Device(key[0], key[1])
    return _devices[key]
