"""`warpwright.cuda`: our driver in a process that runs already. Each test is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warpwright._names import python_name, with_python_names


def says(program: str) -> list[str]:
    """The lines that a program prints."""
    begin = "import ctypes, os, warpwright, warpwright.cuda as cuda\n"
    ended = subprocess.run(
        [sys.executable, "-c", begin + program], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.splitlines()


def test_the_driver_is_found_by_its_names_from_then_on() -> None:
    program = """
def is_loaded(name):
    try:
        return bool(ctypes.CDLL(name, mode=os.RTLD_NOLOAD))
    except OSError:
        return False
print(cuda.is_enabled(), is_loaded("libcuda.so.1"), is_loaded("libcuda.so"))
cuda.enable(sm=75)
print(cuda.is_enabled(), is_loaded("libcuda.so.1"), is_loaded("libcuda.so"))
driver, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
driver.cuInit(0)
driver.cuDeviceGetAttribute(ctypes.byref(number), 75, 0)
print(number.value, "WARPWRIGHT_DEVICES" in os.environ, cuda.take(), cuda.calls() > 0)
"""
    assert says(program) == ["False False False", "True True True", "7 False [] True"]


def test_what_is_wrong_is_refused_and_changes_nothing() -> None:
    program = """
for wrong in ({"check": "everything"}, {"race": "lax"}, {"order": "random"}, {}):
    try:
        cuda.enable(**wrong)
        print("enabled", cuda.take())
    except warpwright.WarpwrightError as error:
        print(str(error).split(":")[0])
"""
    assert says(program) == [
        "check='everything'",
        "race='lax'",
        "order='random'",
        "enabled []",
    ]


def test_its_limit_of_instructions_is_set() -> None:
    program = """
for limit in (0, 1 << 64, 1.5, "many", 1000):
    try:
        cuda.enable(max_instructions=limit)
        print("enabled")
    except warpwright.WarpwrightError as error:
        print(str(error).split(":")[0])
"""
    assert says(program) == [
        "max_instructions=0",
        f"max_instructions={1 << 64}",
        "max_instructions=1.5",
        "max_instructions='many'",
        "enabled",
    ]


DIGEST = "B5cw51c"
NAMES = {
    f"_ZN10with_numba6doubleB2v1{DIGEST}E5ArrayIfLi1E1C7mutable7alignedE": "with_numba.double",
    f"_ZN6cudapy8__main__1A1kB3v12{DIGEST}Ex": "__main__.A.k",
    f"_ZN8__main__5outer12_3clocals_3e8inner_abB2v4{DIGEST}E": "__main__.outer.<locals>.inner_ab",
    f"_ZN8__main__12_3clambda_3eB2v3{DIGEST}E": "__main__.<lambda>",
    f"_ZN8__main__15gr_c3_b6_c3_9feB2v2{DIGEST}Ex": "__main__.größe",
    f"_Z6doubleB2v1{DIGEST}i": "double",
    # Others' names stay.
    "double": "double",
    "_Z5scaleIfEvPKT_PS0_i": "_Z5scaleIfEvPKT_PS0_i",
    "_ZN2ns1fB5cxx11Ei": "_ZN2ns1fB5cxx11Ei",
    "_ZN2ns1fB2v1Ei": "_ZN2ns1fB2v1Ei",
    "_ZN9ab": "_ZN9ab",
}


@pytest.mark.parametrize("symbol", NAMES)
def test_names_of_numba_are_those_of_python(symbol: str) -> None:
    assert python_name(symbol) == NAMES[symbol]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "in `m::<f>::k[abi:v1][abi:cw51c](Array<float, 1>, int)`, called",
            "in `m.<f>.k(Array<float, 1>, int)`, called",
        ),
        ("`cudapy::m::_3clambda_3e[abi:v1][abi:cw51c]`", "`m.<lambda>`"),
        ("`ns::f[abi:cxx11](int)` and `ns::g(int)`", "`ns::f[abi:cxx11](int)` and `ns::g(int)`"),
    ],
)
def test_texts_have_names_of_python(text: str, expected: str) -> None:
    assert with_python_names(text) == expected


def test_a_driver_that_is_there_is_not_replaced() -> None:
    program = """
ours = os.path.dirname(warpwright.__file__) + "/bin/libwarpwright_cuda.so"
import tempfile
with tempfile.TemporaryDirectory() as folder:
    from pathlib import Path
    from warpwright._preload import load_as
    load_as({"libcuda.so.1": Path(ours)}, Path(folder))
try:
    cuda.enable()
except warpwright.WarpwrightError as error:
    print(str(error).split(":")[0])
"""
    assert says(program) == ["this process has loaded libcuda.so.1 already"]


def test_its_folder_goes_with_the_process_and_not_with_a_fork() -> None:
    program = """
import sys
cuda.enable()
folder = os.environ["WARPWRIGHT_FOLDER"]
if os.fork() == 0:
    sys.exit()
os.wait()
print(folder, os.path.isdir(folder))
"""
    folder, was_there = says(program)[0].split()
    assert (was_there, Path(folder).exists()) == ("True", False)


@pytest.mark.parametrize(
    "option", ['check=["racecheck"]', 'check=""', "order=5", 'race="lax"', "max_instructions=True"]
)
def test_what_enable_refuses_names_the_option(option: str) -> None:
    program = f"""
try:
    cuda.enable({option})
except warpwright.WarpwrightError as error:
    print(str(error).split("=")[0])
"""
    assert says(program) == [option.split("=")[0]]
