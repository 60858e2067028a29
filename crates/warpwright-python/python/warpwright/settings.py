"""What launches do if they are not told, and who is told of them.

```
>>> import warpwright
>>> warpwright.settings.check
'memcheck'

```
"""

from __future__ import annotations

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

    def publish(self, report: Report) -> None:
        """Tells of a launch. Whatever launches calls this."""
        for callback in tuple(self._callbacks):
            callback(report)


settings = Settings()
"""The settings of the process."""


def on_report(callback: Callable[[Report], None]) -> Callable[[], None]:
    """Has a function called with the report of every launch, by `run` and by Triton. The result ends that."""
    settings._callbacks.append(callback)

    def remove() -> None:
        if callback in settings._callbacks:
            settings._callbacks.remove(callback)

    return remove


_devices: dict[tuple[str, int], Device] = {}


def device(sm: str | int | None = None) -> Device:
    """The device of the process of that compute capability, made when it is first asked for."""
    from ._warpwright import Device

    key = (str(sm if sm is not None else settings.sm), settings.workers)
    if key not in _devices:
        _devices[key] = Device(key[0], key[1])
    return _devices[key]
