"""What launches do if they are not told, and who is told of them.

```
>>> import warpwright
>>> warpwright.settings.check
'memcheck'

```
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ._warpwright import Device
    from .report import Report


@dataclass
class Settings:
    """The defaults of launches. A change holds from the next launch on."""

    check: str = "memcheck"
    """`"all"`, or names between commas: memcheck, racecheck, initcheck, synccheck, synccheck=strict."""
    order: str = "issue"
    """The order of blocks and warps: issue, reverse, or random: and a seed."""
    race: str = "normal"
    """The definition of a race: normal, or strict, by the letter of the memory model."""
    sm: str = "80"
    """The compute capability of the device."""
    workers: int = 0
    """Host threads of a device; 0 for one a core."""
    on_findings: Literal["raise", "continue"] = "raise"
    """What the launch of a compiler's kernel, such as Triton's, does about an error: raise it, or go on. `run` always
    returns it."""
    _callbacks: list[Callable[[Report], None]] = field(default_factory=list, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        fields = self.__dataclass_fields__
        if name not in fields:
            known = ", ".join(known for known in fields if not known.startswith("_"))
            raise AttributeError(f"there is no setting {name!r}: there are {known}")
        if name == "on_findings" and value not in ("raise", "continue"):
            raise ValueError(f"on_findings={value!r}: it is 'raise' or 'continue'")
        if name == "workers" and not (isinstance(value, int) and 0 <= value < 1 << 10):
            raise ValueError(f"workers={value!r}: it is a number of threads up to 1023, and 0 means one a core")
        if name in ("check", "order", "race", "sm"):
            value = str(value)
        super().__setattr__(name, value)

    def publish(self, report: Report) -> None:
        """Tells of a launch. Whatever launches calls this."""
        for callback in tuple(self._callbacks):
            callback(report)


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
