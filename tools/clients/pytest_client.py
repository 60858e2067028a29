"""A plugin of pytest for the tests of others: it leaves out those of a list, and writes what became of the others.

The environment says where: `CLIENT_SKIPS` is the list, `CLIENT_RESULTS` the file. Each of its lines is a JSON array of a
test, an outcome (`begun`, `passed`, `failed`, `skipped`) and a reason. A test that is only `begun` took the process along.
A test that the list leaves out has a line with `listed` and its entry. With `CLIENT_ENTRY` only the tests of that entry
run.
"""

import importlib
import json
import os
import pathlib

import pytest

from skips import read_skips

RESULTS = os.environ.get("CLIENT_RESULTS", os.devnull)


def name_of(nodeid):
    """A test's name without the folders in front of its file's."""
    file, _, test = nodeid.partition("::")
    return f"{pathlib.PurePath(file).stem}::{test}"


def put(name, outcome, reason=""):
    with open(RESULTS, "a") as file:
        file.write(json.dumps([name, outcome, reason]) + "\n")


def pytest_collection_modifyitems(items):
    skips = read_skips(os.environ["CLIENT_SKIPS"])
    wanted = os.environ.get("CLIENT_ENTRY")
    entries = {}
    for item in items:
        name = name_of(item.nodeid)
        entry = next((skip for skip in skips if name.startswith(skip)), None)
        if entry and not wanted:
            put(name, "listed", entry)
            item.add_marker(pytest.mark.skip(reason=skips[entry]))
        entries[item] = entry
    if wanted:
        items[:] = [item for item in items if entries[item] == wanted]


def pytest_runtest_logstart(nodeid):
    put(name_of(nodeid), "begun")


def pytest_runtest_logreport(report):
    name = name_of(report.nodeid)
    if report.outcome == "failed":
        put(name, "failed", str(report.longrepr))
    elif report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        put(name, "skipped", str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr))
    elif report.when == "call":
        # A failure that the client expects is one of its passes.
        put(name, "passed")


class NamedModule(pytest.Module):
    """A module of numba-cuda's tests under the name by which the tests import one another."""

    def _getobj(self):
        parts = self.path.with_suffix("").parts
        last = len(parts) - 1 - parts[::-1].index("numba")
        return importlib.import_module(".".join(parts[last:]))


def pytest_pycollect_makemodule(module_path, parent):
    if "numba_cuda" in module_path.parts:
        return NamedModule.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What the configuration of numba-cuda's repository does, which its wheel lacks."""
    request.cls._dump_failed_filechecks = False
