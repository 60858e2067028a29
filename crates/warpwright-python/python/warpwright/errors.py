"""The exceptions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._names import python_name

if TYPE_CHECKING:
    from .report import Report


class WarpwrightError(Exception):
    """Something was refused: an argument, a launch, a text."""


class PtxError(WarpwrightError, ValueError):
    """A text is not PTX, or not PTX that the device runs. The message has the lines."""


class CompileError(WarpwrightError, ValueError):
    """A compiler refused a source. The message is its log."""


class FindingsError(WarpwrightError, AssertionError):
    """A launch was wrong: its findings or its trap, as text."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"kernel `{python_name(report.kernel)}`: {report.text}")
        self.report = report

    def __reduce__(self) -> tuple[type[FindingsError], tuple[Report]]:
        return type(self), (self.report,)
