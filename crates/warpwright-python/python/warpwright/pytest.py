"""A plugin for pytest that checks every kernel that a test launches: `pytest -p warpwright --gpu-check=all`.

Launches of `warpwright.run` and of Triton tell the plugin of their reports; those of numba-cuda, cuda.core and other
programs of the CUDA driver end in ours, which is made this process's when one of them is imported. After the set-up,
the call and the tear-down of a test all its launches are complete, and an error that was found fails that phase.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import re
import sys
import unittest
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from . import cuda
from ._names import python_name
from ._told import distinct
from ._warpwright import sarif
from .errors import WarpwrightError
from .report import Access, Report, Trap, Waiting
from .settings import CHECKS, Settings, device, is_order, on_report, settings

CLIENTS = ("numba.cuda", "numba_cuda", "cuda.bindings", "cuda.core", "cuda.cuda", "cupy", "tinygrad")
"""Packages that load the CUDA driver."""

_SESSION = "warpwright-checks"

_ORDER = pytest.StashKey[str]()
_REPORTS = pytest.StashKey[list[Report]]()
_HIDDEN = pytest.StashKey[dict[str, str]]()
"""What is wrong with the launches of phases that have failed by themselves, or were skipped."""

_UNUSED = "gpu: no kernel was launched, and none was checked"


class GpuWarning(UserWarning):
    """What breaks a rule, but works on every existing device."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu", "checks of GPU kernels, on a virtual GPU")
    group.addoption(
        "--gpu-check",
        metavar="CHECKS",
        default="memcheck",
        help="what is looked for besides bad accesses: all, or some of racecheck, initcheck, synccheck and "
        "synccheck=strict, between commas",
    )
    group.addoption(
        "--gpu-orders",
        metavar="ORDERS",
        default="issue",
        help="orders of blocks, warps and streams, each test in each: issue, reverse, random:SEED, between commas",
    )
    group.addoption("--gpu-sm", metavar="SM", default="80", help="compute capability of the device [default: 80]")
    group.addoption(
        "--gpu-race", metavar="RULE", default="normal", help="definition of a race: normal, or strict, by the letter"
    )
    group.addoption(
        "--gpu-max-instructions",
        metavar="N",
        help="a kernel that executes more is ended, and fails its test; each counts once per thread [default: 2^40]",
    )
    group.addoption("--gpu-sarif", metavar="FILE", help="a file for the findings of all tests, as SARIF")


def _values(option: str, text: str, rule: str, holds: Any) -> tuple[str, ...]:
    """The values of an option between commas, each of which a rule must hold for."""
    values = tuple(value.strip() for value in text.split(","))
    for value in values:
        if not holds(value):
            raise pytest.UsageError(f"{option}: {value!r} is none of {rule}")
    if len(set(values)) < len(values):
        raise pytest.UsageError(f"{option}: {text!r} has one value twice")
    return values


def _check_file(option: str, file: Path) -> None:
    """Refuses a file that cannot be written."""
    if not file.parent.is_dir():
        raise pytest.UsageError(f"{option}: there is no folder {file.parent}")
    if file.is_dir():
        raise pytest.UsageError(f"{option}: {file} is a folder: name a file")
    is_new = not file.exists()
    try:
        file.open("a").close()
    except OSError as error:
        raise pytest.UsageError(f"{option}: {file} cannot be written: {error.strerror}") from None
    if is_new:
        file.unlink(missing_ok=True)  # Of workers that do this at once.


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """What conftest.py imports must find the virtual GPU."""
    _begin(early_config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "gpu_findings(*names): the test launches a kernel that is wrong. Each name, the kind of a finding such as race "
        "or out-of-bounds, or a check such as racecheck, must be found; what is named does not fail the test.",
    )
    _begin(config)


def _begin(config: pytest.Config) -> None:
    """Reads the options and registers the plugin of the session, once."""
    if config.pluginmanager.has_plugin(_SESSION):
        return
    option = config.known_args_namespace
    checks = _values("--gpu-check", option.gpu_check, ", ".join(CHECKS), CHECKS.__contains__)
    orders = _values("--gpu-orders", option.gpu_orders, "issue, reverse, random: and a number", is_order)
    race, sm, sarif_file = option.gpu_race, option.gpu_sm.removeprefix("sm_"), option.gpu_sarif
    if race not in ("normal", "strict"):
        raise pytest.UsageError(f"--gpu-race: {race!r} is none of normal, strict")
    try:
        device(sm)
    except WarpwrightError as error:
        raise pytest.UsageError(f"--gpu-sm: {error}") from None
    if sarif_file and not hasattr(config, "workerinput"):
        _check_file("--gpu-sarif", Path(sarif_file).absolute())
    limit = settings.max_instructions
    if option.gpu_max_instructions is not None:
        text = option.gpu_max_instructions
        if not re.fullmatch(r"[0-9]{1,20}", text) or not 0 < int(text) < 1 << 64:
            raise pytest.UsageError(f"--gpu-max-instructions: {text!r} is no whole number from 1 on")
        limit = int(text)
    chosen = Settings(",".join(checks), orders[0], race, sm, settings.workers, "continue", limit)
    config.pluginmanager.register(Plugin(config, chosen, orders, sarif_file), _SESSION)


@cache
def _names() -> list[str]:
    """The names of findings: kinds, and the checks that find them."""
    (run,) = json.loads(sarif([], "."))["runs"]
    rules = [rule["id"].split("/") for rule in run["tool"]["driver"]["rules"]]
    # Calls that failed have the names of their errors.
    of_kernels = [*(rule for rule in rules if rule[0] != "api"), ("graph", "condition")]
    return list(dict.fromkeys([*(kind for _, kind in of_kernels), *(tool for tool, _ in of_kernels), "api"]))


_OF_CALL = re.compile("CUDA_ERROR_[A-Z0-9_]+|cudaError[A-Za-z0-9]+")


def _expected(item: pytest.Item) -> tuple[set[str], str]:
    """The names of the marks of a test, and what is wrong with the marks."""
    names: set[str] = set()
    for mark in item.iter_markers("gpu_findings"):
        known = f"{', '.join(_names())}, and errors of calls such as CUDA_ERROR_INVALID_VALUE"
        if not mark.args or mark.kwargs:
            return names, (
                f"{item.nodeid}: gpu_findings without a name: say what must be found, as in "
                f'@pytest.mark.gpu_findings("out-of-bounds"). There are {known}'
            )
        for name in mark.args:
            if not isinstance(name, str) or not (name in _names() or _OF_CALL.fullmatch(name)):
                return names, f"{item.nodeid}: gpu_findings({name!r}): there is no such finding. There are {known}"
            names.add(name)
    return names, ""


class Plugin:
    """The plugin of one session."""

    def __init__(self, config: pytest.Config, chosen: Settings, orders: Sequence[str], sarif_file: str | None) -> None:
        self._orders, self._chosen, self._sarif = orders, _values_of(chosen), sarif_file
        # The documents, and the file of the test of each.
        self._documents: list[tuple[str, str]] = []
        self._reports: list[Report] = []
        self._launches = 0
        # Those of the driver before, and those of the processes of xdist's.
        self._before_session, self._elsewhere = cuda.launches(), 0
        self._unwritten = ""
        # Tests that have launched nothing in the first order, by what the names of all their orders begin with.
        self._idle: set[str] = set()
        self._before = _values_of(settings)
        _assign(settings, self._chosen)
        self._remove = on_report(self._launched)
        self._finder = _Finder()
        sys.meta_path.insert(0, self._finder)

    def pytest_unconfigure(self) -> None:
        sys.meta_path.remove(self._finder)
        self._remove()
        _assign(settings, self._before)

    def pytest_report_header(self) -> str:
        race = f", {settings.race} races" if settings.race != "normal" else ""
        return f"gpu: sm_{settings.sm}, checks: {settings.check}{race}, orders: {', '.join(self._orders)}"

    def _launched(self, report: Report) -> None:
        self._launches += 1
        if not report.is_clean:
            self._reports.append(report)

    def _taken(self) -> list[Report]:
        """The reports with findings since the last call."""
        reports, self._reports = self._reports, []
        return reports + cuda.take()

    def _work(self) -> int:
        """Grows with every launch."""
        return self._launches + cuda.calls()

    def _all_launches(self) -> int:
        return self._launches + cuda.launches() - self._before_session + self._elsewhere

    # Orders.

    @pytest.fixture(autouse=True)
    def gpu_order(self) -> str:
        """The order of blocks, warps and streams that the test runs in."""
        return settings.order

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if len(self._orders) > 1 and "gpu_order" in metafunc.fixturenames:
            metafunc.parametrize("gpu_order", self._orders, indirect=True, ids=self._orders)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        is_case = isinstance(collector, pytest.Class) and issubclass(collector.obj, unittest.TestCase)
        if is_case and report.passed and len(self._orders) > 1:
            # pytest has no parameters for these.
            report.result = [test for item in report.result for test in self._in_each_order(item)]
        # What a module launches when it is imported.
        wrong = [_text(*found) for found in distinct(found for found in self._taken() if not found.ok)]
        # An error of usage in a process of xdist's would end all.
        tests = [test for test in report.result or [] if isinstance(test, pytest.Item)]
        wrong += filter(None, (_expected(test)[1] for test in tests))
        if wrong:
            report.outcome = "failed"
            report.longrepr = "\n\n".join([*([str(report.longrepr)] if report.longrepr else []), *wrong])
        return report

    def _in_each_order(self, item: Any) -> Iterator[Any]:
        if not isinstance(item, pytest.Function):
            yield item
            return
        for order in self._orders:
            test = type(item).from_parent(item.parent, name=item.name)
            test._nodeid = f"{item.nodeid}[{order}]"  # type: ignore[attr-defined]
            test.stash[_ORDER] = order
            yield test

    def _order(self, item: pytest.Item) -> str:
        params = getattr(getattr(item, "callspec", None), "params", {})
        return item.stash.get(_ORDER, params.get("gpu_order", self._orders[0]))

    # Phases.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        # Whatever a test before or its module has set.
        _assign(settings, {**self._chosen, "order": self._order(item)})
        self._finder.enable_triton()
        if cuda.is_enabled():
            cuda.enable()
        if settings.order != self._orders[0] and self._base(item) in self._idle:
            item.add_marker(pytest.mark.skip("it launches nothing: one order is like another"))
        before = self._work()
        result = yield
        if settings.order == self._orders[0] and self._work() == before:
            self._idle.add(self._base(item))
        return result

    def _base(self, item: pytest.Item) -> str:
        return item.nodeid.removesuffix("]").removesuffix(self._order(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item, "call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item, "teardown"):
            return (yield)

    @contextmanager
    def _phase(self, item: pytest.Item, when: str) -> Iterator[None]:
        """Fails a phase of a test for what its launches have done. One that fails anyway has it in a section."""
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            # A test of unittest keeps its failure for itself.
            has_failed = has_failed or bool(getattr(item, "_excinfo", None))
            message = self._judge(item, when, has_failed)
            if has_failed and message:
                item.stash.setdefault(_HIDDEN, {})[when] = message
                item.add_report_section(when, "GPU findings", message)
        if message and not has_failed:
            pytest.fail(message, pytrace=False)

    def _judge(self, item: pytest.Item, when: str, has_failed: bool) -> str:
        """What is wrong with the launches of a phase, as text; warnings are told and do not count."""
        reports = self._taken()
        item.stash.setdefault(_REPORTS, []).extend(reports)
        expected, misuse = _expected(item)
        wrong = []
        for report in reports:
            errors = list(_errors(report))
            if not errors:
                warnings.warn(GpuWarning(report.text), stacklevel=1)
            elif any(expected.isdisjoint(names) for names in errors):
                wrong.append(report)
        told = distinct(wrong)
        lines = [line for report, _ in told for line in _lines(report)]
        item.user_properties.extend(("gpu_finding", line) for line in lines)
        # The first line is that of pytest's summary.
        message = "\n\n".join([*lines[:1], *(_text(*found) for found in told)])
        if when == "call" and expected and not has_failed:
            found = {name for report in item.stash[_REPORTS] for names in _errors(report) for name in names}
            if missing := sorted(expected - found):
                others = f"found were {', '.join(sorted(found))}" if found else "nothing was found"
                message = f"gpu_findings expects {', '.join(missing)}, and {others}\n\n{message}".rstrip()
        # Of a mark that the test has given itself.
        return f"{misuse}\n\n{message}".rstrip() if misuse and when == "call" else message

    # Results.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        message = item.stash.get(_HIDDEN, {}).get(report.when or "")
        if message and report.skipped and not _is_expected_to_fail(item, call):
            # It was skipped, or fails as expected for another reason; pytest shows neither.
            report.outcome, report.longrepr = "failed", message
            vars(report).pop("wasxfail", None)
        if self._sarif and report.when == "teardown":
            # An attribute, which xdist sends to the process that writes the file.
            found = item.stash.get(_REPORTS, [])
            documents = [(document, str(item.path)) for one in found for document in one.documents()]
            report.gpu_documents = documents  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._documents += map(tuple, getattr(report, "gpu_documents", []))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            session.config.workeroutput["gpu_launches"] = self._all_launches()  # type: ignore[attr-defined]
        elif self._sarif:
            try:
                documents, files = [list(part) for part in zip(*self._documents)] or ([], [])
                Path(self._sarif).write_text(sarif(documents, str(session.config.rootpath), files))
            except OSError as error:
                self._unwritten = f"--gpu-sarif: {self._sarif} cannot be written: {error.strerror}"
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # One that has died may have launched something.
        self._elsewhere += getattr(node, "workeroutput", {}).get("gpu_launches", 1)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._unwritten:
            terminalreporter.write_line(f"ERROR: {self._unwritten}", red=True)
        has_run = any(terminalreporter.stats.get(outcome) for outcome in ("passed", "failed", "xfailed", "xpassed"))
        if has_run and not self._all_launches():
            terminalreporter.write_line(_UNUSED, yellow=True)


def _is_expected_to_fail(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    """Whether a skipped test has not skipped itself, and has a mark by which any failure is expected."""
    outcomes = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
    if call.excinfo is None or isinstance(call.excinfo.value, outcomes):
        return False
    return not any(mark.kwargs.get("raises") for mark in item.iter_markers("xfail"))


def _values_of(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if not name.startswith("_")}


def _assign(settings: Settings, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(settings, name, value)


def _errors(report: Report) -> Iterator[set[str]]:
    """The names of each error of a report."""
    for finding in report.findings:
        if finding.severity == "error":
            yield {finding.tool, finding.kind}
    if report.trap:
        yield {"trap", report.trap.kind}


def _text(report: Report, launches: int) -> str:
    """What is wrong with so many launches, of which one is shown."""
    number = f"\n\n{launches} launches have these errors; the first is shown" if launches > 1 else ""
    return f"{report.text.rstrip()}{number}\n"


def _lines(report: Report) -> Iterator[str]:
    """A line for each error: what, where, and in which kernel."""
    for finding in report.findings:
        if finding.severity == "error":
            name = python_name(finding.kernel) or "-"
            yield f"{finding.tool} {finding.kind}{_place(finding.accesses)} in kernel {name}"
    if trap := report.trap:
        yield f"trap {trap.kind}{_place([trap, *trap.waiting])} in kernel {python_name(trap.kernel)}"


def _place(places: Sequence[Access | Trap | Waiting]) -> str:
    for place in places:
        if place.source:
            return f" at {place.source.file}:{place.source.line}"
    return next((f" at line {place.ptx_line} of the PTX" for place in places if place.ptx_line), "")


class _Finder(importlib.abc.MetaPathFinder):
    """Sees what is imported: a client of the CUDA driver finds ours, and Triton gets our backend when it is there.

    PyTorch answers that there is a GPU, where there is Triton for it: tests ask it before they import that.
    """

    def __init__(self) -> None:
        self._is_pending = False
        self._done: set[str] = set()

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name in CLIENTS and not cuda.is_enabled():
            cuda.enable()
        if name not in ("triton", "torch"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        # A folder of that name is no package of that name.
        if spec is None or spec.loader is None or spec.origin is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._done.add(name)
            if name == "torch" and _is_installed("triton"):
                importlib.import_module("triton")
            self._is_pending = self._is_pending or name == "triton"
            self.enable_triton()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def enable_triton(self) -> None:
        """Enables our backend, if Triton was imported since: not while that or our own package is only half there."""
        names = {"triton", "torch", "warpwright.triton", "warpwright.triton.switch"} - self._done
        if not self._is_pending or any(_is_beginning(sys.modules.get(name)) for name in names):
            return
        self._is_pending = False
        from . import triton

        # What is None stays as the settings have it.
        triton.enable(check=None, sm=None, cuda=_is_installed("torch"))


def _is_beginning(module: Any) -> bool:
    """Whether a module is being imported."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _is_installed(package: str) -> bool:
    spec = find_spec(package)
    return spec is not None and spec.origin is not None
