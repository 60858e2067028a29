"""The parent of a candidate's process: when that ends, or the referee asks for it, it ends all that this has started.

    python supervise.py DESCRIPTOR COMMAND…

Linux makes it the parent of each process below it whose own has ended: so it finds what left the candidate's session.
It is a program of its own, and imports nothing of the package: the referee's process may have other children.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

PAUSE = 0.02
"""Seconds between looks at whether the candidate's process has ended."""

PATIENCE = 10.0
"""Seconds in which what is left must end."""


def _below() -> list[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as opened:
                    # The name, in parentheses, may have spaces.
                    parents[int(name)] = int(opened.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found: list[int] = []
    here = {os.getpid()}
    while here:
        here = {process for process, parent in parents.items() if parent in here}
        found += here
    return found


def _reap() -> dict[int, int]:
    """The processes that have ended, and how."""
    ended: dict[int, int] = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended[process] = status


def _end_all() -> None:
    deadline = time.monotonic() + PATIENCE
    while (left := _below()) and time.monotonic() < deadline:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        _reap()
        time.sleep(0.001)


def main() -> None:
    descriptor, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own = os.getpid()
    candidate = os.fork()
    if candidate == 0:
        os.close(descriptor)
        # Signals to its group are not for this process; and it ends with it.
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != own:
            os._exit(1)
        os.execv(command[0], command)
    # The referee may have to end it, should this process be gone.
    os.write(descriptor, candidate.to_bytes(8, "little"))
    for other in range(3, 256):
        # The candidate's end of the wire closes with the candidate.
        if other != descriptor:
            try:
                os.close(other)
            except OSError:
                pass
    status = None
    while status is None:
        asked, _, _ = select.select([descriptor], [], [], PAUSE)
        status = _reap().get(candidate)
        if asked:
            break
    _end_all()
    if status is None:
        os._exit(0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
        os.kill(own, number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
