"""Triton's kernels on the virtual GPU, in this process, on tensors of the CPU and arrays of NumPy.

```python
import torch, triton, triton.language as tl
import warpwright.triton

warpwright.triton.enable(check="all", sm=80)

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

x = torch.ones(1000)
double[(4,)](x, 1000, BLOCK=256)   # FindingsError, with the line, if something is wrong
```

`python -m warpwright.triton script.py` runs a program without a change to it. `docs/triton.md` says what works.

Triton compiles as for an NVIDIA GPU of the target, as far as PTX. Nothing of this is on before `enable`: an installed
package changes no program.
"""

from __future__ import annotations

import importlib.util
import re
from typing import Any, Literal

from .. import settings
from ..settings import Settings, refuse

_enabled: Any = None
"""What `disable` must undo."""

_drivers: dict[int, Any] = {}
"""The drivers made so far: a target's kernels stay compiled, and its memory lent."""


def enable(
    check: str | None = "all",
    sm: int | str | None = 80,
    order: str | None = None,
    on_findings: Literal["raise", "continue"] | None = None,
    *,
    race: str | None = None,
    max_instructions: int | None = None,
    cuda: bool = False,
) -> None:
    """Makes the virtual GPU the one that Triton's kernels run on, from now on and in this process.

    What is given becomes that of `warpwright.settings`, where launches find it and which can be changed later, but for
    `sm`; what is None stays as it is there. `sm` is the target: of 80 and up to 89 all of Triton's code is understood,
    later ones have instructions that the virtual GPU refuses. With `cuda`, tensors of PyTorch can be on
    `device="cuda"`: see `warpwright.triton.torch`.

    A kernel that executes more than `max_instructions`, each counted once per thread, is ended with a trap.

    Raises ImportError if there is no Triton, ValueError or WarpwrightError for what there is not: a target, a check.
    """
    global _enabled
    sm = settings.sm if sm is None else sm
    digits = re.fullmatch(r"(?:sm_)?(\d+)[af]?", str(sm))
    if digits is None:
        raise ValueError(f"sm={sm!r}: a target is a number, such as 80")
    capability = int(digits.group(1))
    given = {
        "check": check, "sm": str(sm), "order": order, "race": race, "on_findings": on_findings,
        "max_instructions": max_instructions,
    }  # fmt: skip
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    # What is wrong changes nothing.
    if check is not None:
        refuse("check", check, of_driver=False)
    Settings(**asked)
    if importlib.util.find_spec("triton") is None:
        raise ImportError("Triton is not installed: pip install triton")
    from .switch import Switch

    if capability not in _drivers:
        from .driver import VirtualDriver

        _drivers[capability] = VirtualDriver(capability)
    disable()
    _enabled = Switch(_drivers[capability], cuda)
    for name, value in asked.items():
        _enabled.set(settings, name, value)


def disable() -> None:
    """Undoes `enable`: Triton finds its own driver again, and the settings are what they were."""
    global _enabled
    if _enabled is not None:
        _enabled.undo()
        _enabled = None


def is_enabled() -> bool:
    """Whether Triton's kernels run on the virtual GPU."""
    return _enabled is not None
