"""The driver: what Triton asks of a GPU, answered by a virtual one, and the launcher, which has no C stub.

A launch runs in the calling thread's time: it returns when the kernel has ended.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import _allocation

from .. import settings
from .._told import Log
from .._warpwright import Device
from ..errors import FindingsError, PtxError
from ..report import Report
from .memory import Memories
from .parameters import Parameters, leaves, parameter_names

WARP_SIZE = 32
MAX_THREADS = 1024
MULTIPROCESSORS = 132
"""As many as a virtual GPU has by itself: kernels size their grid by it."""

UNDERSTOOD = 90
"""The last target all of whose instructions that Triton uses are executed."""

REGISTERS = 65536
"""32-bit registers of a multiprocessor."""

SHARED_OPTIN = {75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99}
"""KiB of shared memory that a block can have, by target."""


_log = Log()
"""Where nobody else is told."""


class Refused(ValueError):
    """A kernel needs what the virtual GPU does not have."""


def _refused(kernel: str, need: str) -> Refused:
    return Refused(
        f"kernel `{kernel}` needs {need}, which the virtual GPU does not have. Triton makes code without it for sm_80: "
        "warpwright.triton.enable(sm=80), or `python -m warpwright.triton --sm 80 …`"
    )


class Utilities:
    """What Triton has in C for each GPU: loading, and facts about the device."""

    def __init__(self, driver: VirtualDriver) -> None:
        self._driver = driver

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """The module, the kernel, its registers, its spilt ones, and the threads that it may have.

        Both are the PTX: the launcher loads it, which knows the names of the arguments. Nobody has allocated registers:
        a kernel has as many as a thread can.
        """
        return binary, binary, 255, 0, MAX_THREADS

    def unload_module(self, module: Any) -> None:
        """Nothing: a module goes with its launcher."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """What Triton asks of a device, in its words. Frequencies (kHz) and widths are those of no GPU: 1."""
        return {
            "max_shared_mem": self._driver.shared_optin,
            "max_num_regs": REGISTERS,
            "multiprocessor_count": MULTIPROCESSORS,
            "warpSize": WARP_SIZE,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
        }

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing: what kernels print has no limit."""

    def is_stream_capturing(self, stream: int) -> bool:
        """Never: there are no graphs."""
        return False

    def cuOccupancyMaxActiveClusters(self, _kernel: Any, _shared: int, x: int, y: int, z: int) -> int:  # noqa: N802
        """How many clusters of that size there may be at once, with a block on each multiprocessor."""
        return MULTIPROCESSORS // (x * y * z)

    def fill_tma_descriptor_tiled(self, *_: Any) -> Any:
        """Refused: the launcher makes tensor maps."""
        raise _refused("?", "a tensor map by itself")

    fill_tma_descriptor = fill_tma_descriptor_im2col = fill_tma_descriptor_tiled


class Event:
    """A moment by the wall clock, as `torch.cuda.Event`. Times say nothing about a GPU."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._time = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this moment to another; never 0."""
        return max((end._time - self._time) * 1e3, 1e-6)

    def synchronize(self) -> None:
        """Nothing: all launches have ended."""

    def wait(self, stream: Any = None) -> None:
        """Nothing: all launches have ended."""

    def query(self) -> bool:
        """True: all launches have ended."""
        return True


def benchmark(kernel_call: Callable[[], Any], *, quantiles: Any = None, **_: Any) -> Any:
    """Runs a kernel once, and returns its milliseconds by the wall clock, for each quantile.

    Autotuning learns nothing about a GPU's speed here; it checks every configuration.
    """
    start = time.perf_counter()
    kernel_call()
    elapsed = (time.perf_counter() - start) * 1e3
    return elapsed if quantiles is None else [elapsed] * len(quantiles)


class VirtualDriver(DriverBase):
    """A virtual GPU of target `sm`, such as 80. It has a device of its own, since memory stays lent to it."""

    def __init__(self, sm: int) -> None:
        super().__init__()
        self.capability = sm
        self.begin()
        # A forked process has none of the host threads, and a device that it leaves must not wait for them.
        self._left: list[object] = []
        os.register_at_fork(after_in_child=self._begin_again)
        self.utils = Utilities(self)
        self.launcher_cls = functools.partial(Launcher, self)
        self.shared_optin = SHARED_OPTIN.get(sm, 99) << 10
        self.interface = SimpleNamespace(Event=Event, synchronize=lambda *_: None, current_device=lambda: 0)

    def begin(self) -> None:
        """Makes the device."""
        sm = self.capability
        self.device = Device(f"{sm}a" if sm >= 90 else str(sm), workers=settings.workers)
        self.memories = Memories(self.device)

    def _begin_again(self) -> None:
        self._left.append((self.device, self.memories))
        self.begin()

    @classmethod
    def is_active(cls) -> bool:
        """Never by itself: `enable` says when."""
        return False

    def get_current_device(self) -> int:
        """The target's number. Triton keeps compiled kernels by device, and each target has its own."""
        return self.capability

    def set_current_device(self, device: int) -> None:
        """Nothing: there is one device."""

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The target as major and minor version."""
        return divmod(self.capability, 10)

    def get_current_stream(self, device: int | None = None) -> int:
        """The only one."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """What to compile for."""
        return GPUTarget("cuda", self.capability, WARP_SIZE)

    def get_active_torch_device(self) -> Any:
        """Where tensors are: the CPU, or `cuda` if `enable(cuda=True)` pretends."""
        import torch

        from . import torch as pretended

        return torch.device("cuda", 0) if pretended.is_on() else torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Events and synchronisation."""
        return self.interface

    def get_benchmarker(self) -> Any:
        """How autotuning measures."""
        return benchmark

    def get_empty_cache_for_benchmark(self) -> None:
        """Nothing: there is no cache to clear."""

    def clear_cache(self, cache: Any) -> None:
        """Nothing: there is no cache to clear."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Refused: there is no C."""
        raise Refused("the virtual GPU launches without C: there is no type for it")

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        """The arguments as they are."""
        return args

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        """Memory for instrumented kernels, zeroed."""
        import torch

        return torch.zeros(size, dtype=torch.int8)


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, driver: VirtualDriver, source: Any, metadata: Any) -> None:
        self._driver, self._metadata = driver, metadata
        names = (
            source.fn.arg_names if hasattr(source, "fn") else [f"argument {i}" for i in range(len(source.signature))]
        )
        maps = getattr(metadata, "tensordesc_meta", None) or ()
        self._arguments = leaves(source.signature.values(), names, maps)
        code = getattr(getattr(getattr(source, "fn", None), "fn", None), "__code__", None)
        self._file: str | None = code and code.co_filename
        self._loaded: tuple[Any, Parameters] | None = None
        self._device: Device | None = None
        self._block = (WARP_SIZE * metadata.num_warps, 1, 1)
        ctas = metadata.num_ctas
        self._cluster = (1, 1, 1) if ctas == 1 else tuple(getattr(metadata, "cluster_dims", (ctas, 1, 1)))
        self._scratch = [
            (metadata.global_scratch_size, metadata.global_scratch_align, _allocation._allocator),
            (metadata.profile_scratch_size, metadata.profile_scratch_align, _allocation._profile_allocator),
        ]
        self._has_scratch = any(size for size, _, _ in self._scratch)

    def _load(self, ptx: str) -> tuple[Any, Parameters]:
        """Loads the kernel. Its parameters get the names of the arguments, which reports then have."""
        name = self._metadata.name
        names = parameter_names(self._arguments, ptx, name)
        ptx = re.sub(rf"\b{name}_param_(\d+)\b", lambda found: names.get(int(found.group(1)), found.group()), ptx)
        ptx = re.sub(r'(?<=^\t\.file\t)(\d+ )"([^"]*)"', self._named, ptx, flags=re.MULTILINE)
        try:
            kernel = self._driver.device.load(ptx, f"PTX of {name}").kernel(name)
        except PtxError as error:
            if self._driver.capability > UNDERSTOOD:
                raise _refused(name, f"instructions of sm_{self._driver.capability}") from error
            raise
        return kernel, Parameters(self._arguments, kernel, self._driver.memories.address)

    def _named(self, found: re.Match[str]) -> str:
        """A `.file` directive. Triton keeps what it compiled by the text, which may be in another file since."""
        number, file = found.groups()
        if self._file and Path(file).name == Path(self._file).name:
            file = self._file
        return f'{number}"{file}"'

    def _scratch_memory(self, blocks: int, stream: Any) -> tuple[Any, ...]:
        # The program's allocator may ask for memory on `cuda`, which the launch does not look at.
        enable = getattr(getattr(sys.modules.get("torch"), "_C", None), "_EnableTorchFunction", contextlib.nullcontext)
        with enable():
            return tuple(
                allocator.get()(blocks * size, align, stream) if size else None
                for size, align, allocator in self._scratch
            )

    def __call__(
        self, x: int, y: int, z: int, stream: Any, ptx: bytes, packed: Any, launch_metadata: Any, enter: Any, exit: Any,
        *args: Any,
    ) -> None:  # fmt: skip
        """Launches: returns when the kernel has ended. FindingsError if it has findings and they are to be raised."""
        if enter is not None:
            enter(launch_metadata)
        if x * y * z > 0:
            if self._loaded is None or self._device is not self._driver.device:
                self._loaded, self._device = self._load(ptx.decode()), self._driver.device
            kernel, parameters = self._loaded
            x, y, z = (count * blocks for count, blocks in zip((x, y, z), self._cluster))
            scratch = self._scratch_memory(x * y * z, stream) if self._has_scratch else (None, None)
            launched = self._driver.device.launch(
                kernel, (x, y, z), self._block, parameters.pack(args, scratch), shared=self._metadata.shared,
                check=settings.check_of_kernels, order=settings.order, race=settings.race,
                cluster=None if self._metadata.num_ctas == 1 else self._cluster,
                cooperative=self._metadata.launch_cooperative_grid, max_instructions=settings.max_instructions,
            )  # fmt: skip
            self._told(launched)
        if exit is not None:
            exit(launch_metadata)

    def _told(self, launched: Any) -> None:
        if launched.output:
            sys.stdout.write(launched.output)
            sys.stdout.flush()
        report = Report(launched)
        settings.publish(report)
        if launched.is_clean:
            return
        trap = report.trap
        if trap is not None and trap.kind == "unsupported" and self._driver.capability > UNDERSTOOD:
            raise _refused(report.kernel, f"`{trap.ptx}`") from FindingsError(report)
        if settings.on_findings == "raise":
            report.raise_for_findings()
        if not settings.is_heard():
            _log.tell(report)
