"""A plugin of pytest for Triton's own tests: they run on the virtual GPU, and only those that a list names.

`TRITON_TESTS` has the list, a name in each line: `language/test_core.py::test_name`, which stands for all tests that
begin with it. What has another name in another version gives both: `test_name[a] | test_name[b-a]`. An entry that no test
has, and one whose tests are all skipped, is a failure: the list says what passes.
"""

import os

import pytest

import warpwright.triton

LIST = [line for line in os.environ.get("TRITON_TESTS", "").splitlines() if line]
ran = {entry: 0 for entry in LIST}


def pytest_configure(config):
    warpwright.triton.enable(check="all", sm=80, cuda=True)


def entry_of(nodeid):
    """The entry of the list that a test has."""
    name = nodeid.rpartition("unit/")[2]
    for entry in LIST:
        if any(name == known or name.startswith((known + "[", known + "::")) for known in entry.split(" | ")):
            return entry
    return None


def pytest_collection_modifyitems(items):
    if LIST:
        items[:] = [item for item in items if entry_of(item.nodeid)]


def pytest_runtest_logreport(report):
    if report.when == "call" and report.outcome != "skipped" or report.outcome == "failed":
        name = report.nodeid.rpartition("unit/")[2]
        entry = entry_of(report.nodeid)
        if entry:
            ran[entry] += 1
        print(f"\nok {name}" if report.outcome == "passed" else f"\nfailed {name}", flush=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    for entry in (entry for entry, count in ran.items() if not count):
        print(f"\nfailed {entry}: no test of this name ran")
        session.exitstatus = 1
