"""NVRTC, NVIDIA's compiler of CUDA C++ at run time, if its wheel is installed."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .errors import CompileError, WarpwrightError

HEADERS = "pip install nvidia-cuda-cccl nvidia-cuda-crt nvidia-cuda-runtime"
INSTALL = "pip install nvidia-cuda-nvrtc"


@dataclass(frozen=True)
class Compiled:
    """What a source was compiled to."""

    ptx: str
    names: dict[str, str]
    """What the PTX calls the functions that were asked for."""


def is_cuda(text: str) -> bool:
    """Whether a text is CUDA C++, and not PTX, which says its version first."""
    return re.search(r"^\s*\.version\s", text, re.MULTILINE) is None


def compile(text: str, file: str, sm: str, options: Sequence[str] = (), names: Sequence[str] = ()) -> Compiled:
    """Compiles a source for a compute capability, with lines. `file` is what the lines call it; `#include` looks in its
    folder too. `names` are functions, or instances of templates, whose names in the PTX are wanted.

    Raises `CompileError` with the compiler's log, `WarpwrightError` where there is no compiler.
    """
    library = _library()
    program = ctypes.c_void_p()
    _call(library, "nvrtcCreateProgram", ctypes.byref(program), text.encode(), file.encode(), 0, None, None)
    try:
        for name in names:
            _call(library, "nvrtcAddNameExpression", program, name.encode())
        folders = [str(Path(file).resolve().parent)] + [str(folder) for folder in _includes()]
        flags = [f"--gpu-architecture=compute_{sm}", "-lineinfo", *(f"-I{folder}" for folder in folders), *options]
        array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        if library.nvrtcCompileProgram(program, len(flags), array) != 0:
            log = _text(library, "nvrtcGetProgramLog", program).strip()
            raise CompileError("\n".join([_without_names(log, file, names), *_advice(log, sm, library)]))
        ptx = _text(library, "nvrtcGetPTX", program)
        # The compiler takes a source for a file of the current folder.
        ptx = ptx.replace(f'"{Path.cwd() / file}"', f'"{file}"')
        lowered = {}
        for name in names:
            found = ctypes.c_char_p()
            _call(library, "nvrtcGetLoweredName", program, name.encode(), ctypes.byref(found))
            lowered[name] = (found.value or b"").decode()
        return Compiled(ptx, lowered)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


_HOST = frozenset(
    """
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
    clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint
    cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution expected filesystem format forward_list
    fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
    mdspan memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version
    """.split()
)
"""Headers of the host's libraries of C++; those of C are `name.h`, and `cname` here."""

_SERVED = frozenset(
    """
    algorithm array atomic barrier bit bitset cfloat charconv chrono climits cmath complex concepts cstddef cstdint
    cstdlib cstring ctime execution expected functional initializer_list iterator latch limits linalg mdspan memory
    numbers numeric optional random ranges ratio semaphore source_location span string_view tuple type_traits utility
    variant version
    """.split()
)
"""Those that CUDA's headers have as `cuda/std/name`."""

_DEFINED = {
    r"INFINITY|NAN": "cmath",
    r"u?int(?:8|16|32|64|ptr)_t": "cstdint",
    r"(?:FLT|DBL)_\w+": "cfloat",
    r"(?:S?CHAR|U?CHAR|U?SHRT|U?INT|U?LL?ONG)_(?:MIN|MAX)": "climits",
}
"""Which of them defines what: names, and the header."""


def _advice(log: str, sm: str, library: ctypes.CDLL) -> Iterator[str]:
    """What to do about errors that do not say it."""
    are_there = any((folder / "cuda" / "std").is_dir() for folder in _includes())
    needed = "" if are_there else f", which is in a wheel ({HEADERS})"
    for header in dict.fromkeys(re.findall(r'(?:cannot|could not) open source file "([^"]+)"', log)):
        name = "c" + header.removesuffix(".h") if header.endswith(".h") else header
        if name not in _HOST:
            other = (
                'options=["-Ifolder"] adds one'
                if are_there
                else f"CUDA's headers are in wheels of their own: {HEADERS}"
            )
            yield f"`{header}` is in none of the folders: {other}"
            continue
        rule = f"`{header}` belongs to the host's library, and NVRTC has no headers of the host: "
        if name in ("cstdio", "cassert"):
            yield f"{rule}`printf` and `assert` work without an include; leave it out"
        elif name in _SERVED:
            functions = "; functions such as `sinf` and `fmaxf` need no include" if name == "cmath" else ""
            yield f"{rule}`#include <cuda/std/{name}>` serves instead{needed}{functions}"
        else:
            yield f"{rule}it has no counterpart for kernels"
    for name in dict.fromkeys(re.findall(r'identifier "(\w+)" is undefined', log)):
        for names, header in _DEFINED.items():
            if re.fullmatch(names, name):
                yield f"`{name}` is defined by `#include <cuda/std/{header}>`{needed}"
    if "--gpu-architecture" in log and (known := _architectures(library)) and int(re.sub(r"\D", "", sm)) not in known:
        major, minor = ctypes.c_int(), ctypes.c_int()
        _call(library, "nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        is_old = int(re.sub(r"\D", "", sm)) < min(known)
        other = "an older NVRTC (pip install nvidia-cuda-nvrtc-cu12)" if is_old else "a newer NVRTC"
        yield (
            f"NVRTC {major.value}.{minor.value} does not compile for sm_{sm}, but for "
            f"{', '.join(f'sm_{one}' for one in known)}: give one of these as `sm=`, or install {other}"
        )


def _architectures(library: ctypes.CDLL) -> list[int]:
    """The compute capabilities that the compiler knows."""
    count = ctypes.c_int()
    _call(library, "nvrtcGetNumSupportedArchs", ctypes.byref(count))
    found = (ctypes.c_int * count.value)()
    _call(library, "nvrtcGetSupportedArchs", found)
    return list(found)


_NAME = re.compile(r"^__nv_name_map\(\d+\): error: (.*)\n {2}#pragma nv_mangled_name (.*)\n *\^\n*", re.MULTILINE)
"""An error about a function that was asked for: the compiler appends a pragma for each."""


def _without_names(log: str, file: str, names: Sequence[str]) -> str:
    """The log, with what it says of functions that were asked for in words of ours."""
    found = _NAME.findall(log)
    if not found:
        return log
    said = []
    for name in dict.fromkeys(name.strip() for _, name in found):
        why = next(why for why, other in found if other.strip() == name)
        said.append(f"{file} has no kernel `{name}`: {why}")
    left = _NAME.sub("", log)
    if ": error" not in left:
        # The number of errors.
        return "\n".join(said)
    return "\n".join([*said, "", left.strip()])


def _call(library: ctypes.CDLL, function: str, *args: object) -> None:
    status = getattr(library, function)(*args)
    if status != 0:
        words = library.nvrtcGetErrorString(status)
        raise CompileError(f"{function}: {words.decode()}")


def _text(library: ctypes.CDLL, function: str, program: ctypes.c_void_p) -> str:
    """A text of a program: `nvrtcGetPTX`, whose size `nvrtcGetPTXSize` gives."""
    size = ctypes.c_size_t()
    _call(library, f"{function}Size", program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    _call(library, function, program, text)
    return text.value.decode(errors="replace")


def folders() -> Iterator[Path]:
    """The folders of NVIDIA's wheels."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(root).iterdir(), reverse=True)


def _includes() -> list[Path]:
    found = [folder / "include" for folder in folders() if (folder / "include").is_dir()]
    # Where the wheel of CUDA 13 has CUB, Thrust and libcu++.
    return found + [folder / "cccl" for folder in found if (folder / "cccl").is_dir()]


def is_installed() -> bool:
    """Whether CUDA C++ can be compiled here."""
    try:
        _library()
    except WarpwrightError:
        return False
    return True


@cache
def _library() -> ctypes.CDLL:
    found = [file for folder in folders() for file in sorted((folder / "lib").glob("libnvrtc.so.*"), reverse=True)]
    for file in [*map(str, found), "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            library = ctypes.CDLL(file)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise WarpwrightError(f"CUDA C++ needs NVIDIA's compiler NVRTC, and its library is not there: {INSTALL}")
