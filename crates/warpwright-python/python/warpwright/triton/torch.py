"""`device="cuda"` for a PyTorch that finds no GPU: tensors that say so, and are in the host's memory.

A tensor "on cuda" is an ordinary tensor of the CPU whose storage is marked. A mode of PyTorch sees the calls of its
functions: it asks for the CPU where they ask for `cuda`, marks what comes of marked tensors, and answers `.device` and
`.is_cuda`. Moving a tensor between the two copies it. So all of PyTorch works that works on the CPU, with gradients.
The other way, a subclass of tensors whose device is `cuda`, would have to hold its elements in a second tensor, and
whatever of PyTorch is written in C++ would find it empty.

What it cannot do:

- what is registered for `AutogradCUDA`, or for CUDA in C++, is not called (`operators`: what Python registers for CUDA)
- threads that the program starts have no such mode: `device="cuda"` fails in them as it does without
- results of calls that the mode does not see are on the CPU: those of extensions in C++, and of `torch.load`, whose
  `map_location` must be `"cpu"`
- a call that mixes tensors of the two devices works, and is on `cuda`; a real device would refuse it
- one generator of random numbers is that of both devices, and numbers are those of the CPU
- what is only for GPUs is refused (`torch.cuda.CUDAGraph`) or not there (`torch.compile`, NCCL)
- streams are one stream: nothing overlaps, and nothing is found about its order
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import _device_constructors

from .operators import Operators, are_there

CUDA = "_warpwright_cuda"
"""The attribute of storages that are "on cuda"."""

HOST = torch.device("cpu")
FIRST = torch.device("cuda", 0)

_mode: Pretending | None = None


def is_on() -> bool:
    """Whether tensors can be on `cuda`."""
    return _mode is not None


def _is_cuda(device: Any) -> bool:
    """Whether an argument for a device means `cuda`: its name, its number or itself."""
    if isinstance(device, str):
        if device != "cuda" and not device.startswith("cuda:"):
            return False
        device = torch.device(device)
    if isinstance(device, torch.device):
        return device.type == "cuda" and _exists(device.index or 0)
    return isinstance(device, int) and not isinstance(device, bool) and _exists(device)


def _exists(index: int) -> bool:
    if index != 0:
        raise RuntimeError(f"CUDA error: invalid device ordinal: there is cuda:0 alone, and no cuda:{index}")
    return True


def _check_device(device: Any) -> None:
    """Refuses an argument for a device of `torch.cuda` that there is not; None and -1 are the current one."""
    if device is not None and device != -1:
        _is_cuda(device)


def _is_marked(tensor: torch.Tensor) -> bool:
    try:
        return getattr(tensor.untyped_storage(), CUDA, False)
    except (NotImplementedError, RuntimeError):  # It has no storage: it is sparse, or of a transformation.
        return False


def _mark(tensor: torch.Tensor, on: bool = True) -> torch.Tensor:
    with contextlib.suppress(NotImplementedError, RuntimeError):
        if tensor.device.type == "cpu":
            setattr(tensor.untyped_storage(), CUDA, on)
    return tensor


def _tensors(values: Any) -> Any:
    """The tensors among arguments or results, in lists too."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _moved(source: torch.Tensor, result: torch.Tensor, on: bool) -> torch.Tensor:
    """The result of a move: a copy if the source is on the other device."""
    if _is_marked(source) == on:
        return _mark(result, on)
    if result.untyped_storage()._cdata == source.untyped_storage()._cdata:
        result = result.clone()
    return _mark(result, on)


def _on_cuda(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    _check_device(device)
    return _moved(tensor, tensor, True)


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    on = _is_marked(tensor)
    values: list[Any] = []
    for i, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            on = _is_marked(value)
        elif isinstance(value, (str, torch.device)) or i == 0 and isinstance(value, int):
            on = _is_cuda(value)
            value = HOST if on else value
        values.append(value)
    device = kwargs.get("device")
    if device is not None:
        on = _is_cuda(device)
        kwargs = {**kwargs, "device": HOST if on else device}
    if isinstance(kwargs.get("other"), torch.Tensor):
        on = _is_marked(kwargs["other"])
    return _moved(tensor, tensor.to(*values, **kwargs), on)


def _type(tensor: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dtype is None:
        name = tensor.type()
        return name.replace("torch.", "torch.cuda.", 1) if _is_marked(tensor) else name
    if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
        return _moved(tensor, tensor.type("torch." + dtype.removeprefix("torch.cuda.")), True)
    return _moved(tensor, tensor.type(dtype, *args, **kwargs), _is_marked(tensor))


def _in_float32(function: Any) -> Any:
    """A function whose sums PyTorch keeps in half precision on the CPU, and in float32 on a GPU."""

    def answer(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        def wide(value: Any) -> Any:
            is_half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
            return value.float() if is_half else value

        kwargs = {name: wide(value) for name, value in kwargs.items()}
        result = function(wide(tensor), *map(wide, args), **kwargs).to(tensor.dtype)
        return _mark(result, _is_marked(tensor))

    return answer


T = torch.Tensor

ANSWERS: dict[Any, Callable[..., Any]] = {
    T.to: _to,
    T.type: _type,
    T.cuda: lambda tensor, device=None, *_, **__: _on_cuda(tensor, device),
    T.cpu: lambda tensor, *_, **__: _moved(tensor, tensor, False),
    T.pin_memory: lambda tensor, *_: tensor,
    T.is_pinned: lambda tensor, *_: not _is_marked(tensor),
    T.record_stream: lambda tensor, stream: None,
    T.get_device: lambda tensor: 0 if _is_marked(tensor) else tensor.get_device(),
    T.device.__get__: lambda tensor, *_: FIRST if _is_marked(tensor) else tensor.device,
    T.is_cuda.__get__: lambda tensor, *_: _is_marked(tensor),
    T.is_cpu.__get__: lambda tensor, *_: tensor.is_cpu and not _is_marked(tensor),
    torch.nn.functional.layer_norm: _in_float32(torch.nn.functional.layer_norm),
    torch.nn.functional.group_norm: _in_float32(torch.nn.functional.group_norm),
}
"""What these functions answer."""

PLAIN = {
    getter.__get__
    for getter in (T.shape, T.dtype, T.ndim, T.layout, T.requires_grad, T.is_leaf, T.grad_fn, T.itemsize, T.nbytes)
} | {
    T.size, T.stride, T.dim, T.numel, T.element_size, T.is_contiguous, T.storage_offset, T.data_ptr,
    T.is_floating_point, T.untyped_storage, T.__len__, T.item, T.tolist, T.__bool__, T.__int__, T.__float__,
    T.__index__, T.__repr__,
    torch.is_tensor, torch.is_floating_point, torch.numel, torch.equal, torch.allclose,
}  # fmt: skip
"""Functions that have nothing to do with devices."""

COPYING = {torch.as_tensor, torch.asarray}
"""Functions whose result may be the memory that they are given."""


class Pretending(TorchFunctionMode):
    """The mode."""

    default = False
    """Whether `cuda` is the default device."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = Operators(self, FIRST, _tensors, _is_marked, _mark)

    def call(self, func: Any, on: bool, args: Any, kwargs: Any) -> Any:
        """Calls a function that is on `cuda` or not, with the operators that are registered for CUDA if there are."""
        if not are_there():
            return func(*args, **kwargs)
        with self.operators.called(on):
            return func(*args, **kwargs)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of PyTorch for a program that may mean `cuda`."""
        if func in PLAIN:
            return func(*args, **(kwargs or {}))
        answer = ANSWERS.get(func)
        if answer is not None:
            return self.call(answer, False, args, kwargs or {})
        kwargs, on = kwargs or {}, None
        if "pin_memory" in kwargs:
            kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        if kwargs.get("device") is not None:
            on = _is_cuda(kwargs["device"])
            if on:
                kwargs = {**kwargs, "device": HOST}
        marked = None
        if on is None and self.default and func in _device_constructors():
            on = True
        if on is None:
            on = marked = any(map(_is_marked, _tensors((*args, *kwargs.values()))))
        result = self.call(func, on, args, kwargs)
        if isinstance(result, torch.Tensor):
            if on and func in COPYING and not _is_marked(result):
                result = result.clone()
            if on or marked is None:
                self._of(result, args, on)
        elif on and isinstance(result, (list, tuple)):
            for tensor in _tensors(result):
                _mark(tensor)
        return result

    def _of(self, result: torch.Tensor, args: Any, on: bool) -> None:
        """Marks a result, unless it is an argument on the other device that a call returns or writes to."""
        if on != _is_marked(result) and not any(result is argument for argument in _tensors(args)):
            _mark(result, on)


class Stream:
    """The one stream, as `torch.cuda.Stream`."""

    cuda_stream = 0
    device = FIRST
    device_index = 0

    def __init__(self, device: Any = None, *_: Any, **__: Any) -> None:
        _check_device(device)

    def synchronize(self) -> None:
        """Nothing: all work has ended."""

    def query(self) -> bool:
        """True: all work has ended."""
        return True

    wait_stream = wait_event = lambda self, other: None

    def record_event(self, event: Any = None) -> Any:
        """An event, recorded."""
        from .driver import Event

        event = event or Event(enable_timing=True)
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0


class ExternalStream(Stream):
    """The same, of an address."""

    def __init__(self, stream_ptr: int, device: Any = None, *_: Any, **__: Any) -> None:
        super().__init__(device)


def _refused(what: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{what} is not in warpwright's torch.cuda: run the work without it")

    return refuse


def _always(value: Any) -> Callable[..., Any]:
    """A function with one answer. Each is an object of its own: PyTorch's compiler has rules by function."""
    return lambda *_, **__: value


def _of_device(answer: Callable[[], Any]) -> Callable[..., Any]:
    """A function of a device, or of the current one. Each is an object of its own."""

    def of(device: Any = None, *_: Any, **__: Any) -> Any:
        _check_device(device)
        return answer()

    return of


def _facts(driver: Any) -> dict[str, Any]:
    """What `torch.cuda` answers."""
    from .driver import MULTIPROCESSORS, REGISTERS, WARP_SIZE, Event

    major, minor = driver.get_device_capability()
    memory = 64 << 30
    name = f"Warpwright virtual GPU (sm_{driver.capability})"
    properties = SimpleNamespace(
        name=name, major=major, minor=minor, total_memory=memory, multi_processor_count=MULTIPROCESSORS,
        warp_size=WARP_SIZE, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        regs_per_multiprocessor=REGISTERS, shared_memory_per_block=48 << 10, gcnArchName="", L2_cache_size=40 << 20,
        shared_memory_per_block_optin=driver.shared_optin, shared_memory_per_multiprocessor=driver.shared_optin + 1024,
        is_integrated=0, is_multi_gpu_board=0, uuid="",
    )  # fmt: skip
    stream = Stream()
    facts: dict[str, Any] = {
        "is_available": lambda: True, "is_initialized": lambda: True, "device_count": lambda: 1,
        "current_device": lambda: 0, "get_device_name": _of_device(lambda: name),
        "get_device_capability": _of_device(lambda: (major, minor)),
        "get_device_properties": _of_device(lambda: properties),
        "get_arch_list": lambda: [f"sm_{driver.capability}"], "is_bf16_supported": lambda *_, **__: major >= 8,
        "mem_get_info": _of_device(lambda: (memory, memory)), "memory_stats": _of_device(dict),
        "current_stream": _of_device(lambda: stream), "default_stream": _of_device(lambda: stream),
        "set_device": _of_device(lambda: None), "synchronize": _of_device(lambda: None),
        "stream": lambda stream=None: contextlib.nullcontext(), "StreamContext": lambda *_: contextlib.nullcontext(),
        "device": _of_device(contextlib.nullcontext), "device_of": lambda *_: contextlib.nullcontext(),
        "Stream": Stream, "ExternalStream": ExternalStream, "Event": Event,
        "manual_seed": lambda seed: torch.manual_seed(seed), "seed": lambda: torch.seed(),
        "initial_seed": lambda: torch.initial_seed(), "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "is_current_stream_capturing": lambda: False, "can_device_access_peer": lambda *_: False,
        "CUDAGraph": _refused("CUDAGraph"), "graph": _refused("graph"),
        "make_graphed_callables": _refused("make_graphed_callables"),
    }  # fmt: skip
    # `torch.manual_seed` calls it.
    draws = Draws()
    facts |= {"default_generators": (draws,), "manual_seed_all": lambda seed: draws.manual_seed(seed) and None}
    for quiet in ("seed_all", "init", "_lazy_init", "set_stream", "empty_cache", "ipc_collect",
                  "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
                  "reset_accumulated_memory_stats", "set_per_process_memory_fraction"):  # fmt: skip
        facts[quiet] = _always(None)
    for none in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_usage",
                 "utilization", "temperature", "power_draw", "clock_rate"):  # fmt: skip
        facts[none] = _of_device(lambda: 0)
    return facts


def _generator(device: Any = HOST) -> torch._C.Generator:
    """A generator of the CPU, whatever the device."""
    return torch._C.Generator(HOST if _is_cuda(device) else device)


class Draws:
    """What `torch.cuda.default_generators` has: a seed and an offset, by which kernels draw random numbers."""

    device = FIRST

    def __init__(self) -> None:
        self._state = torch.tensor([0, 0])
        self.manual_seed(torch.initial_seed())

    def get_state(self) -> torch.Tensor:
        """Both, as 16 bytes."""
        return self._state.view(torch.uint8).clone()

    def set_state(self, state: torch.Tensor) -> Draws:
        """Sets both."""
        self._state.copy_(state.contiguous().view(torch.int64))
        return self

    def manual_seed(self, seed: int) -> Draws:
        """Begins anew."""
        self._state[0], self._state[1] = (int(seed) + (1 << 63)) % (1 << 64) - (1 << 63), 0
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return int(self._state[0]) % (1 << 64)

    def get_offset(self) -> int:
        """How many numbers were drawn."""
        return int(self._state[1])

    def set_offset(self, offset: int) -> None:
        """Says how many were."""
        self._state[1] = offset


class _Autocast(torch.autocast):
    """`torch.autocast`, on the CPU for `cuda`."""

    def __init__(self, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        super().__init__(device_type, dtype, *args, **kwargs)


def pretend(driver: Any) -> Callable[[], None]:
    """Has tensors on `cuda` from now on, in this thread. The result ends it."""
    global _mode
    mode = Pretending()
    undo: list[Callable[[], None]] = []

    def replace(target: Any, name: str, value: Any) -> None:
        missing = not hasattr(target, name)
        before = getattr(target, name, None)
        setattr(target, name, value)
        undo.append(lambda: delattr(target, name) if missing else setattr(target, name, before))

    facts = _facts(driver)
    for name, value in facts.items():
        replace(torch.cuda, name, value)
    for module in ("torch.cuda.random", "torch.cuda.memory"):
        for name, value in facts.items():
            if hasattr(sys.modules[module], name):
                replace(sys.modules[module], name, value)
    for name in ("range_push", "range_pop", "mark"):
        replace(torch.cuda.nvtx, name, _always(None))
    replace(torch.cuda.nvtx, "range", lambda *_, **__: contextlib.nullcontext())
    if hasattr(torch, "accelerator"):
        for name, value in (
            ("is_available", lambda: True), ("device_count", lambda: 1), ("current_device_index", lambda: 0),
            ("current_accelerator", lambda *_, **__: torch.device("cuda")), ("synchronize", _of_device(lambda: None)),
            ("set_device_index", _of_device(lambda: None)),
        ):  # fmt: skip
            replace(torch.accelerator, name, value)
    if torch.version.cuda is None:
        replace(torch.version, "cuda", "12.8")
    replace(torch._C, "_cuda_getCurrentRawStream", lambda *_: 0)
    replace(torch, "Generator", _generator)
    replace(torch, "autocast", _Autocast)
    replace(torch.amp, "autocast", _Autocast)
    set_default = torch.set_default_device

    def set_default_device(device: Any) -> None:
        mode.default = _is_cuda(device)
        set_default(HOST if mode.default else device)

    get_default = torch.get_default_device
    replace(torch, "set_default_device", set_default_device)
    replace(torch, "get_default_device", lambda: FIRST if mode.default else get_default())
    run_backward = torch.autograd._engine_run_backward

    def with_mode(*args: Any, **kwargs: Any) -> Any:
        # The call came through the mode, which is off meanwhile. Functions of the program that run backwards want it.
        here = mode in _get_current_function_mode_stack()
        with contextlib.nullcontext() if here else mode:
            return mode.call(run_backward, False, args, kwargs)

    replace(torch.autograd, "_engine_run_backward", with_mode)
    undo.append(mode.operators.leave)
    replace(torch.library.Library, "impl", mode.operators.take())
    _mode = mode
    mode.__enter__()

    def end() -> None:
        global _mode
        mode.__exit__(None, None, None)
        _mode = None
        while undo:
            undo.pop()()

    return end
