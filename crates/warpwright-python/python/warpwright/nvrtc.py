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
            if "could not open source file" in log or "cannot open source file" in log:
                log += (
                    f"\nCUDA's headers are in wheels of their own: {HEADERS}. The host's are not there: NVRTC has none."
                )
            raise CompileError(_without_names(log, file, names))
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
