"""What a candidate's program starts, and what it prints."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from problems import SCALE, judged
from warpwright.referee.program import KEPT, Printed

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
