"""What `enable` changes in Triton and PyTorch, and how it is undone.

Triton looks a backend up by target, and NVIDIA's own says yes to every `cuda` target, as ours must: programs ask for
`cuda`. So ours takes the place of NVIDIA's in the table, instead of an entry point `triton.backends`, which would be
loaded with every `import triton`, and leave two backends for one target.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import warnings
from typing import Any

import numpy as np
from triton import knobs
from triton.backends import Backend, backends
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver as drivers
from triton.runtime.jit import JITFunction

from .. import settings
from .compiler import VirtualBackend
from .driver import VirtualDriver
from .memory import InPlace, NoElementsError, as_argument, fill, has_initcheck

NVIDIA = "nvidia"

ALLOCATORS = ("empty", "empty_like", "empty_strided", "empty_permuted")
"""Functions of torch whose result nobody has written."""

NEW_ALLOCATORS = ("new_empty", "new_empty_strided")
"""Methods of tensors whose result nobody has written."""


class Switch:
    """All changes, until `undo`."""

    def __init__(self, driver: VirtualDriver, cuda: bool) -> None:
        self._undo: list[Any] = []
        if knobs.runtime.interpret:
            warnings.warn(
                "TRITON_INTERPRET is set: Triton's interpreter runs kernels, and nothing is checked", stacklevel=3
            )
        self._driver = driver
        self._launching = threading.local()
        known = backends.get(NVIDIA)
        backends[NVIDIA] = Backend(compiler=VirtualBackend, driver=known.driver if known else VirtualDriver)
        self._undo.append(lambda: backends.__setitem__(NVIDIA, known) if known else backends.pop(NVIDIA))
        active = drivers._active
        drivers.set_active(driver)
        self._undo.append(lambda: drivers.set_active(active))
        self._take_arguments()
        self._take_tuned()
        torch = _torch()
        if torch is not None:
            self._watch(torch)
            if cuda:
                from .torch import pretend

                self._undo.append(pretend(driver))

    def set(self, target: Any, name: str, value: Any) -> None:
        """Sets an attribute until `undo`."""
        own = name in vars(target)
        before = getattr(target, name)
        setattr(target, name, value)
        self._undo.append(lambda: setattr(target, name, before) if own else delattr(target, name))

    def undo(self) -> None:
        """Undoes the changes, the last one first."""
        while self._undo:
            self._undo.pop()()

    def _take_arguments(self) -> None:
        """Launches take arrays and numbers of NumPy, and ask a tensor for its address without lending it twice."""
        run, torch, launching = JITFunction.run, _torch(), self._launching
        plain = torch._C.DisableTorchFunction if torch is not None else _Nothing

        def launch(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            inner, launching.on = getattr(launching, "on", False), True
            try:
                with plain():
                    try:
                        taken = tuple(map(as_argument, args))
                        named = {name: as_argument(value) for name, value in kwargs.items()}
                    except NoElementsError:
                        raise _refused(function, args, kwargs) from None
                    return run(function, *taken, grid=grid, warmup=warmup, **named)
            finally:
                launching.on = inner

        self.set(JITFunction, "run", launch)

    def _take_tuned(self) -> None:
        """The autotuner resets and restores arrays of NumPy like tensors; hooks of the program get what it gave."""
        run = Autotuner.run

        def of_arrays(hook: Any) -> Any:
            def call(given: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
                arrays = {name: InPlace(value) for name, value in given.items() if isinstance(value, np.ndarray)}
                return hook({**given, **arrays}, *args, **kwargs)

            return call

        def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            own = {}
            for name in ("pre_hook", "post_hook"):
                if (tuner.reset_to_zero or tuner.restore_value) and not getattr(tuner, f"user_defined_{name}", False):
                    own[name] = getattr(tuner, name)
                    setattr(tuner, name, of_arrays(own[name]))
            try:
                return run(tuner, *args, **kwargs)
            finally:
                for name, hook in own.items():
                    setattr(tuner, name, hook)

        self.set(Autotuner, "run", tune)

    def _watch(self, torch: Any) -> None:
        """Tensors are made unwritten, and lent when a program asks for their address."""
        patterns = {
            torch.float16: ("float", 16), torch.bfloat16: ("bfloat", 16), torch.float32: ("float", 32),
            torch.float64: ("float", 64), torch.int32: ("int", 32), torch.int64: ("int", 64),
        }  # fmt: skip

        def unwritten(make: Any) -> Any:
            def made(*args: Any, **kwargs: Any) -> Any:
                tensor = make(*args, **kwargs)
                if has_initcheck(settings.check) and type(tensor) is torch.Tensor:
                    with torch._C.DisableTorchFunction():
                        pattern = patterns.get(tensor.dtype)
                        if pattern and tensor.device.type == "cpu" and tensor.layout is torch.strided:
                            fill(tensor.untyped_storage(), *pattern)
                return tensor

            return functools.update_wrapper(made, make, ("__name__", "__doc__"))

        for name in ALLOCATORS:
            self.set(torch, name, unwritten(getattr(torch, name)))
        for name in NEW_ALLOCATORS:
            self.set(torch.Tensor, name, unwritten(getattr(torch.Tensor, name)))
        address = torch.Tensor.data_ptr

        def data_ptr(tensor: Any) -> int:
            if not getattr(self._launching, "on", False):
                # Tensors that have no storage have no address to give either.
                with torch._C.DisableTorchFunction(), contextlib.suppress(NotImplementedError, RuntimeError):
                    self._driver.memories.expose(tensor)
            return address(tensor)

        self.set(torch.Tensor, "data_ptr", data_ptr)


def _refused(function: Any, args: Any, kwargs: Any) -> TypeError:
    """The error of the first argument that a kernel cannot have."""
    for name, value in [*zip(function.arg_names, args), *kwargs.items()]:
        try:
            as_argument(value)
        except NoElementsError as error:
            return TypeError(f"argument {name} of `{function.__name__}`: {error}")
    return TypeError(f"an argument of `{function.__name__}` is none")


class _Nothing:
    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *_: Any) -> None:
        """Nothing."""


def _torch() -> Any:
    """PyTorch, if it is installed."""
    try:
        import torch
    except ImportError:
        return None
    return sys.modules["torch"] if torch else None
