"""Processes: what a candidate's program starts and prints, how a reference ends, and how long all may take."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from problems import SCALE, Problem, judged, write
from warpwright.referee.judge import judge
from warpwright.referee.program import KEPT, Printed
from warpwright.referee.spec import SpecError, read

PROGRAM = '''
import os, signal, subprocess, sys, time
import warpwright

SOURCE = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = a * x[i];
}
"""
here = os.path.dirname(__file__)

def note(process):
    with open(os.path.join(here, "started"), "a") as file:
        file.write(f"{process}\\n")

def leave():
    """A process in a session of its own, whose parent ends."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(os.getpid())
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.closerange(0, 200)
            time.sleep(60)
        os._exit(0)
    os.wait()
    while not os.path.exists(os.path.join(here, "started")):
        time.sleep(0.01)

calls = []

def launch(x, y, a, n):
    calls.append(n)
    warpwright.run(SOURCE, 1, 64, [x, y, a, n])
    if len(calls) == 1:
        FIRST
    if len(calls) == 2:
        SECOND
'''

ENDS = {
    "returns": ("leave()", "pass", set()),
    "starts another program": (
        'note(subprocess.Popen(["sleep", "60"], start_new_session=True).pid)',
        "pass",
        set(),
    ),
    "exits": ("leave()", "os._exit(3)", {"exited"}),
    "hangs": ("leave()", "time.sleep(60)", {"timeout"}),
    "ends its group": ("leave()", "os.killpg(0, 9)", {"exited"}),
    # What it had started before is not found any more: the page says so.
    "ends its parent": ("note(os.getpid())", "os.kill(os.getppid(), 9); time.sleep(60)", {"exited"}),
}


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ENDS)
def test_what_a_program_starts_ends_with_the_verdict(how: str, tmp_path: Path) -> None:
    first, second, reasons = ENDS[how]
    program = PROGRAM.replace("FIRST", first).replace("SECOND", second)
    verdict = judged(tmp_path, SCALE, program, ".py", "[run]\nseconds = 3")
    assert {reason.kind for reason in verdict.reasons} == reasons
    started = [int(line) for line in (tmp_path / "started").read_text().split()]
    # A process that was ended needs a moment.
    deadline = time.monotonic() + 5
    while any(map(is_there, started)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert started and not any(map(is_there, started))


def test_of_what_is_printed_the_end_is_kept() -> None:
    out, into = os.pipe()
    printed = Printed(os.fdopen(out, "rb"))
    # More than a pipe takes: who prints does not wait.
    writer = threading.Thread(target=lambda: [os.write(into, b"x" * 99 + b"\n") for _ in range(20_000)])
    writer.start()
    writer.join(30)
    assert not writer.is_alive()
    os.write(into, b"the end\n")
    os.close(into)
    assert printed.last().splitlines()[-1] == "the end" and len(printed.last()) <= KEPT


def test_the_status_of_a_program_and_its_last_words(tmp_path: Path) -> None:
    for end, status in (("os._exit(7)", "7"), ("os.kill(os.getpid(), 15)", "-15")):
        program = PROGRAM.replace("FIRST", f'os.write(1, b"last words"); {end}')
        (reason,) = judged(tmp_path, SCALE, program, ".py").reasons
        assert reason.kind == "exited"
        assert reason.message == f"its process ended during the run, with status {status}: last words"


RIGHT = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""

# Functions, and the end of the message, if it has one line.
FAILING = {
    "hangs": (
        "def reference(x, a):\n    while True: pass",
        "takes more than 1 seconds in a call: see reference.seconds",
    ),
    "exits": (
        "import os\ndef reference(x, a):\n    os._exit(3)",
        "ends its process in a call, with status 3: it must return arrays",
    ),
    "exits at once": (
        "import os\nos._exit(0)",
        "ends its process while it is imported, with status 0: it must return arrays",
    ),
    "raises SystemExit": ("def reference(x, a):\n    raise SystemExit(0)", None),
    "is a text": ("def reference(x, a):\n    return 'x'", "returns <U1, and not numbers"),
}


@pytest.mark.parametrize("how", FAILING)
def test_a_reference_that_returns_nothing(how: str, tmp_path: Path) -> None:
    function, message = FAILING[how]
    problem = Problem(SCALE.shapes, SCALE.arguments, function)
    (tmp_path / "candidate.cu").write_text(RIGHT)
    began = time.monotonic()
    with pytest.raises(SpecError) as error:
        judge(read(write(tmp_path, problem, "seconds = 1")), tmp_path / "candidate.cu")
    assert time.monotonic() - began < 30
    assert message is None or str(error.value).endswith(message)
    assert message is None or len(str(error.value).splitlines()) == 1


def test_a_kernel_as_the_reference_that_takes_long(tmp_path: Path) -> None:
    (tmp_path / "candidate.cu").write_text(RIGHT)
    (tmp_path / "reference.cu").write_text(
        RIGHT.replace("if (i", "for (volatile int k = 0; k < 30000; k++) { }\nif (i")
    )
    spec = write(tmp_path, SCALE)
    named = 'file = "reference.cu"\ngrid = "ceil_div(n, 64)"\nblock = 64\nseconds = 0.1'
    spec.write_text(spec.read_text().replace('file = "reference.py"', named))
    with pytest.raises(SpecError) as error:
        judge(read(spec), tmp_path / "candidate.cu")
    assert str(error.value).endswith("see reference.seconds")


def test_a_reference_may_print(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    problem = Problem(SCALE.shapes, SCALE.arguments, "def reference(x, a):\n    print('Rejected')\n    return a * x")
    assert judged(tmp_path, problem, RIGHT, ".cu").accepted
    assert capfd.readouterr().out == ""


def test_all_runs_together_have_a_limit(tmp_path: Path) -> None:
    program = PROGRAM.replace("FIRST", "time.sleep(60)")
    kernel = RIGHT.replace("if (i", "for (volatile int k = 0; k < 60000; k++) { }\nif (i")
    for candidate, suffix in ((program, ".py"), (kernel, ".cu")):
        began = time.monotonic()
        verdict = judged(tmp_path, SCALE, candidate, suffix, "[run]\ntotal_seconds = 2")
        assert time.monotonic() - began < 30
        assert [reason.kind for reason in verdict.reasons] == ["timeout"]
    function = "import time\ndef reference(x, a):\n    time.sleep(1)\n    return a * x"
    slow = Problem(SCALE.shapes, SCALE.arguments, function)
    with pytest.raises(SpecError):
        judged(tmp_path, slow, RIGHT, ".cu", "[run]\ntotal_seconds = 8")
