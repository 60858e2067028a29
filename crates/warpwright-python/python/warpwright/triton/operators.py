"""Operators that a program registers for CUDA with `torch.library`: on tensors "on cuda" they are called.

Such tensors are PyTorch's of the CPU, so that its dispatcher would take the kernels of the CPU. What is registered
meanwhile for `CUDA` is remembered by the operator, and a mode below autograd, where a GPU's kernels are called, calls
it. The mode is on in calls of PyTorch's functions, and only once something is registered.

An operator that PyTorch composes of others is one above autograd, which the mode does not see. It gets a kernel of its
own for the CPU's autograd, which chooses.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.library import Library, fallthrough_kernel
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack


class _Kernel:
    """What was registered for CUDA, until its library is gone."""

    def __init__(self, library: Any, function: Callable[..., Any], with_keyset: bool) -> None:
        self._library, self.above = weakref.ref(library), None
        keys = (torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA),) if with_keyset else ()
        self._function = functools.partial(function, *keys)

    def is_there(self) -> bool:
        """Whether its library is, with its registrations."""
        library = self._library()
        return library is not None and library.m is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


_kernels: dict[str, list[_Kernel]] = {}
"""By the names of operators, of which the last is called. They outlast `disable`: a library is made once."""


_current: Operators | None = None
"""The mode while there is one: what is registered meanwhile stays so."""


def are_there() -> bool:
    """Whether anything is registered for CUDA."""
    return bool(_kernels)


def _last(name: str) -> _Kernel | None:
    """What is registered for an operator."""
    kernels = _kernels.get(name, [])
    kernels[:] = [kernel for kernel in kernels if kernel.is_there()]
    if not kernels:
        _kernels.pop(name, None)
    return kernels[-1] if kernels else None


class Operators(TorchDispatchMode):
    """The mode. `pretending` is that of PyTorch's functions, `is_marked` and `mark` tell of tensors "on cuda"."""

    def __init__(self, pretending: Any, device: Any, tensors: Any, is_marked: Any, mark: Any) -> None:
        super().__init__()
        self.pretending, self._device = pretending, device
        self._tensors, self._is_marked, self._mark = tensors, is_marked, mark
        self._is_on = False
        """Whether the call of PyTorch's function is on `cuda`: it is what tells of one without tensors."""

    @contextlib.contextmanager
    def called(self, on: bool) -> Iterator[None]:
        """Has the operators in a call of a function, which is on `cuda` or not."""
        before, self._is_on = self._is_on, on
        try:
            with contextlib.nullcontext() if self in _get_current_dispatch_mode_stack() else self:
                yield
        finally:
            self._is_on = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls what is registered for CUDA, if an operator is called on `cuda`."""
        kwargs = kwargs or {}
        given = self.tensors(args, kwargs)
        on = self.is_on(given)
        kernel = _last(func.name()) if on else None
        if kernel is not None:
            if self._is_on and kwargs.get("device") is not None:
                kwargs = {**kwargs, "device": self._device}
            result = _in_mode(kernel)(*args, **kwargs)
        else:
            result = func(*args, **kwargs)
        if on:
            storages = {_storage(tensor) for tensor in given}
            for tensor in self._tensors(result if isinstance(result, (list, tuple)) else [result]):
                if _storage(tensor) not in storages:
                    self._mark(tensor)
        return result

    def is_on(self, given: list[torch.Tensor]) -> bool:
        """Whether a call with these tensors is on `cuda`."""
        return any(map(self._is_marked, given)) if given else self._is_on

    def tensors(self, args: Any, kwargs: Any) -> list[torch.Tensor]:
        """The tensors among arguments."""
        return list(self._tensors((*args, *kwargs.values())))

    def take(self) -> Callable[..., None]:
        """What takes the place of `Library.impl`. What was registered before it is taken if it can be."""
        global _current
        _current, register = self, Library.impl

        @functools.wraps(register)
        def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", **kwargs: Any) -> None:
            key = dispatch_key or library.dispatch_key
            is_plain = fn is fallthrough_kernel or not callable(fn)
            inner = fn if is_plain or key in ("CUDA", "Meta") else functools.wraps(fn)(_in_mode(fn))
            register(library, op_name, inner, dispatch_key, **kwargs)
            name = _name(library.ns, op_name)
            if is_plain or key not in ("CUDA", "AutogradCUDA"):
                return
            if key == "CUDA" or _is_composite(name):
                self._remember(name, _Kernel(library, fn, kwargs.get("with_keyset", False)))
            else:
                what = f"{name}: what is registered for AutogradCUDA is not called"
                warnings.warn(f"{what}: register it for CUDA", stacklevel=2)

        self._take_known()
        return impl

    def leave(self) -> None:
        """What was registered is not called any more."""
        global _current
        _current = None

    def _remember(self, name: str, kernel: _Kernel) -> None:
        _kernels.setdefault(name, []).append(kernel)
        if _is_composite(name):
            kernel.above = _above(name)

    def _take_known(self) -> None:
        """Custom operators say what was registered for them; what other libraries have was not kept."""
        with contextlib.suppress(ImportError, AttributeError):
            from torch._library.custom_ops import OPDEFS

            for name, operator in OPDEFS.items():
                if _last(name) is None and "cuda" in operator._backend_fns:
                    self._remember(name, _Kernel(operator._lib, operator._backend_fns["cuda"], False))
        known = [entry.split("/") for entry in torch.library._impls if entry.endswith("/CUDA")]
        names = {_name(namespace, own) for namespace, own, _ in known}
        lost = sorted(name for name in names if _last(name) is None)
        if lost:
            warnings.warn(
                f"{', '.join(lost)}: what is registered for CUDA before warpwright.triton.enable(cuda=True) is not "
                "called; register it later, or run the program by `python -m warpwright.triton`",
                stacklevel=2,
            )


def _in_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the program's that PyTorch calls: it may say `cuda`, though it came through the mode."""

    def call(*args: Any, **kwargs: Any) -> Any:
        mode = _current.pretending if _current is not None else None
        with contextlib.nullcontext() if mode is None or mode in _get_current_function_mode_stack() else mode:
            return function(*args, **kwargs)

    return call


def _above(name: str) -> Any:
    """Registers the choice between CUDA's kernel and the composition. It is there for as long as the result."""
    namespace, _, own = name.partition("::")
    packet, _, overload = own.partition(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")

    def choose(*args: Any, **kwargs: Any) -> Any:
        on = _current is not None and _current.is_on(_current.tensors(args, kwargs))
        kernel = _last(name) if on else None
        return operator.decompose(*args, **kwargs) if kernel is None else _in_mode(kernel)(*args, **kwargs)

    library = Library(namespace, "IMPL")
    assert library.m is not None
    library.m.impl(own, "AutogradCPU", choose, False)
    return library


def _is_composite(name: str) -> bool:
    """Whether PyTorch composes an operator of others."""
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    except RuntimeError:  # It may be defined later than its kernels.
        return False


def _name(namespace: str, operator: Any) -> str:
    """The name by which the dispatcher knows an operator."""
    own = operator if isinstance(operator, str) else operator.name()
    return f"{namespace}::{own.split('::')[-1].removesuffix('.default')}"


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return id(tensor)
