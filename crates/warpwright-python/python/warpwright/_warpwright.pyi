"""The native part of the package. It knows addresses and bytes, and neither arrays nor what arguments mean.

Errors are those of `warpwright.errors`: `PtxError` for a text that is not PTX, `WarpwrightError` for what a device
refuses.
"""

from collections.abc import Mapping, Sequence

__version__: str

def sarif(documents: Sequence[str], root: str, programs: Sequence[str] = ()) -> str:
    """SARIF 2.1.0 of launches, each its JSON or a line that the CUDA driver has reported. Files below the root are
    named from there. What has no line of source in such a line is at the file of its number among the programs."""

def junit(documents: Sequence[str]) -> str:
    """The same as JUnit's XML."""

def tensor_map(
    address: int,
    element: int,
    dims: Sequence[int],
    strides: Sequence[int],
    tile: Sequence[int],
    swizzle: int,
    *,
    nan: bool,
) -> bytes:
    """The 128 bytes of the map of a tensor, its innermost dimension first. `element` is the number that PTX's
    `tensormap.replace` has for the type, `swizzle` that of the driver's API; strides are bytes, of all dimensions but
    the first. `nan`: what is outside of the tensor is NaN. ValueError where there is no such map."""

class Device:
    """A virtual GPU. A process can have several; each has host threads of its own."""

    def __init__(self, sm: str = "80", workers: int = 0, memory: int | None = None) -> None:
        """A device of compute capability `sm` (`"80"`, `"90a"`), with `workers` host threads (0: one a core)."""
    @property
    def sm(self) -> str: ...
    def load(self, ptx: str, name: str = "PTX", sources: Mapping[str, str] = {}) -> Module:
        """Parses, verifies and loads PTX. `name` is what messages call it; `sources` has the texts of source files that
        its `.file` directives name, where these are not to be read."""
    def lend(
        self, address: int, bytes: int, owner: object, name: str = "", *, written: bool = True, writable: bool = True
    ) -> Memory:
        """Memory of this process becomes memory of the device, at its own address, until the result is closed or gone.

        Nothing is copied. The memory must stay where it is as long as `owner` is there, which this keeps. It may
        overlap no other memory of the device. `written` says whether its contents count as initialised; what kernels
        may not write (`writable=False`) always does. `name` is for reports.
        """
    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        params: bytes,
        *,
        shared: int = 0,
        check: str = "memcheck",
        order: str = "issue",
        race: str = "normal",
        cooperative: bool = False,
        cluster: Sequence[int] | None = None,
        counters: bool = False,
        max_instructions: int | None = None,
        outputs: Sequence[tuple[Memory, str, int, Sequence[tuple[int, int]]]] = (),
    ) -> Launched:
        """Launches a kernel and waits for its end, without the GIL; Ctrl-C ends it.

        `params` has the kernel's parameters at their offsets. `check` is `"all"`, or names between commas of memcheck,
        racecheck, initcheck, synccheck and synccheck=strict; `order` is issue, reverse or random:SEED; `race` is normal
        or strict. `outputs` are memory, the argument's name, the bytes of an element, and the parts of it that are
        data, offsets and sizes: what must be written in full, found where `check` has initcheck.
        """

class Module:
    """A module on a device."""

    @property
    def kernels(self) -> list[str]:
        """Names of its kernels, sorted."""
    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name, or the only one."""

class Kernel:
    """A kernel of a module."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> list[Param]: ...
    @property
    def static_shared(self) -> int:
        """Static shared memory, in bytes."""
    @property
    def required_block(self) -> tuple[int, int, int] | None: ...
    @property
    def max_threads(self) -> int | None: ...
    def afresh(self, device: Device) -> Kernel | None:
        """The kernel of a module of its own, if the program has variables that keep what launches leave in them."""

class Param:
    """A parameter of a kernel."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str:
        """The PTX type, such as `u64`."""
    @property
    def bytes(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def is_pointer(self) -> bool:
        """Whether it is declared as a pointer."""
    @property
    def is_array(self) -> bool:
        """Whether it is an array of its type, such as a structure by value."""

class Memory:
    """Memory that is lent to a device."""

    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def mark_written(self, offset: int = 0, bytes: int | None = None) -> None:
        """Its bytes count as initialised from now on."""
    def is_written(self, offset: int = 0, bytes: int | None = None) -> bool:
        """Whether all of these bytes are initialised: launches note what they write if they have initcheck."""
    def forget(self) -> None:
        """None of its bytes counts as initialised any more."""
    def close(self) -> None:
        """The device has it no longer."""

class Launched:
    """A launch that is over."""

    @property
    def kernel(self) -> str: ...
    @property
    def is_clean(self) -> bool:
        """Whether there are neither findings nor a trap."""
    @property
    def has_errors(self) -> bool:
        """Whether a finding is an error, or there is a trap."""
    @property
    def output(self) -> str:
        """What the kernel printed."""
    def text(self) -> str:
        """Its findings and trap, with lines of the source and of the PTX."""
    def json(self) -> str:
        """All of it, as `warpwright profile --json` prints it."""
    def documents(self) -> list[str]:
        """What `sarif` and `junit` take of it."""
