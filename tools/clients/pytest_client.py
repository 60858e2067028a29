"""A plugin of pytest for the tests of others: it leaves out those of a list, and writes what became of the others.

The environment says where: `CLIENT_SKIPS` is the list, `CLIENT_RESULTS` the file. Each of its lines is a JSON array of a
test, an outcome (`begun`, `passed`, `failed`, `skipped`) and a reason. A test that is only `begun` took the process along.
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


def put(nodeid, outcome, reason=""):
    with open(RESULTS, "a") as file:
        file.write(json.dumps([name_of(nodeid), outcome, reason]) + "\n")


def pytest_collection_modifyitems(items):
    skips = read_skips(os.environ["CLIENT_SKIPS"])
    for item in items:
        name = name_of(item.nodeid)
        reason = next((why for skip, why in skips.items() if name.startswith(skip)), None)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_logstart(nodeid):
    put(nodeid, "begun")


def pytest_runtest_logreport(report):
    if report.outcome == "failed":
        put(report.nodeid, "failed", str(report.longrepr))
    elif report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        put(report.nodeid, "skipped", str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr))
    elif report.when == "call":
        # A failure that the client expects is one of its passes.
        put(report.nodeid, "passed")


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
