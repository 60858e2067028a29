"""Code scanning: where results of sources are that a program has in itself, and what is one result."""

from __future__ import annotations

import json
import pickle
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import warpwright
from warpwright import out, run
from warpwright.report import to_sarif

FILE = Path(__file__)

AS_IT_IS = """
extern "C" __global__ void k(int *x) {
    x[threadIdx.x] = 1;
    x[threadIdx.x + 1] = 2;  // as it is
}
"""

INLINED = """
__device__ void store(int *x) { *x = 1; }  // inlined
extern "C" __global__ void k(int *x) {
    store(x + threadIdx.x);
}
"""

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .b64 %rd<2>;
    ld.param.u64    %rd1, [x];
    st.global.u32   [%rd1+16], 1;
    ret;
}"""


def line_of(text: str) -> int:
    """The only line of this file that ends so."""
    (line,) = [number for number, line in enumerate(FILE.read_text().split("\n"), 1) if line.endswith(text)]
    return line


def results(*reports: warpwright.Report) -> list[dict[str, Any]]:
    (log,) = json.loads(to_sarif(reports, FILE.parent))["runs"]
    return log["results"]


def places(report: warpwright.Report) -> list[tuple[str, int]]:
    """The files and lines of the results."""
    found = [place["physicalLocation"] for result in results(report) for place in result["locations"]]
    return [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in found]


def launch(source: Any, args: Any = None, **options: Any) -> warpwright.Report:
    """A launch with a thread too many."""
    args = [np.zeros(4, np.int32)] if args is None else args
    _, report = run(source, 1, 4, args, **options)  # the call
    return report


CALL = line_of("# the call")


def test_lines_of_a_source_that_stands_in_the_file() -> None:
    assert places(launch(AS_IT_IS)) == [(FILE.name, line_of("// as it is"))]
    report = launch(
        textwrap.dedent("""\
            extern "C" __global__ void k(int *x) {
                x[threadIdx.x + 1] = 2;  // indented
            }""")
    )
    assert places(report) == [(FILE.name, line_of("// indented"))]
    report = launch('extern "C" __global__ void k(int *x) { x[4] = 1; }')  # of one line
    assert places(report) == [(FILE.name, line_of("# of one line"))]


def test_lines_of_ptx() -> None:
    assert places(launch(PTX)) == [(FILE.name, line_of("st.global.u32   [%rd1+16], 1;"))]


def test_a_source_that_is_made_is_at_the_call() -> None:
    made = AS_IT_IS.replace("x[", "(x + 1)[")
    report = launch(made)
    assert places(report) == [(FILE.name, CALL), (FILE.name, CALL)] and len(report.findings) == 2
    # The lines of the source are in the messages.
    told = [result["message"]["text"].splitlines()[-1] for result in results(report)]
    end = f"of the CUDA C++ that is launched at {FILE.name}:{CALL}"
    assert told == [f"It is at line 3 {end}", f"It is at line 4 {end}"]


def test_functions_that_were_inlined() -> None:
    report = launch(INLINED, [np.zeros(3, np.int32)])
    assert places(report) == [(FILE.name, line_of("// inlined"))]
    (call,) = results(report)[0]["relatedLocations"]
    assert call["physicalLocation"]["artifactLocation"]["uri"] == FILE.name
    assert call["physicalLocation"]["region"]["startLine"] == line_of("store(x + threadIdx.x);")


def test_what_is_at_no_line_is_at_the_call(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(AS_IT_IS)
    for source in (AS_IT_IS, kernel):
        report = launch(source, [out(8, np.int32)], check="initcheck")
        assert [finding.kind for finding in report.findings] == ["unwritten-output"]
        assert places(report) == [(FILE.name, CALL)]


def test_sources_in_files_stay_there(tmp_path: Path) -> None:
    for name, source, number in (("kernel.cu", AS_IT_IS, 4), ("kernel.ptx", PTX, 8)):
        kernel = tmp_path / name
        kernel.write_text(source)
        assert places(launch(kernel)) == [(kernel.as_uri(), number)]


def test_reports_and_copies_say_the_same_as_ever() -> None:
    report = launch(AS_IT_IS)
    source = report.findings[0].accesses[0].source
    assert source is not None and (source.file, source.line) == ("kernel.cu", 4)
    assert results(pickle.loads(pickle.dumps(report))) == results(report)


def test_equal_results_are_one() -> None:
    reports = [launch(AS_IT_IS), pickle.loads(pickle.dumps(launch(AS_IT_IS)))]
    (result,) = results(*reports)
    assert result["occurrenceCount"] == 2


def of_numba(kernel: str, line: int = 3) -> str:
    """What the driver tells of a launch."""
    place = {"ptx_line": 7, "ptx": "ret;", "source": {"file": "k.py", "line": line, "column": 1, "text": f"x[{line}]"}}
    access = {**place, "block": [0, 0, 0], "thread": [0, 0, 0], "action": "read", "space": "global", "address": 1}
    finding = {
        "tool": "memcheck", "kind": "null", "severity": "error", "message": "m", "kernel": kernel, "count": 1,
        "allocation": None, "accesses": [{**access, "bytes": 4}], "rendered": "",
    }  # fmt: skip
    return json.dumps({"version": 1, "event": "finding", "call": {"number": 1, "function": "f"}, **finding})


def test_numba_numbers_a_function_otherwise_in_each_process() -> None:
    def count(*documents: str) -> int:
        (log,) = json.loads(warpwright._warpwright.sarif(documents, "."))["runs"]
        return len(log["results"])

    first, second = "_ZN1m1kB2v1B5cw51cEi", "_ZN1m1kB3v12B5cw51cEi"
    assert count(of_numba(first), of_numba(second)) == 1
    # Another function, digest, instance or line.
    for other in ("_ZN1m1lB2v1B5cw51cEi", "_ZN1m1kB2v1B5cw52cEi", "_ZN1m1kB2v1B5cw51cEx", "_ZN1m1kB2v1Ei"):
        assert count(of_numba(first), of_numba(other)) == 2
    assert count(of_numba(first), of_numba(first, 4)) == 2


def test_a_line_that_reads_and_writes_has_two_results() -> None:
    report = launch("""
        extern "C" __global__ void k(int *x) {
            int i = threadIdx.x + 1;
            if (i < 9) x[i] = x[i] + 1;
        }
    """)
    assert len(report.findings) == 2
    assert len({result["message"]["text"] for result in results(report)}) == 2


def test_what_has_no_line_is_at_the_program() -> None:
    document = json.loads(of_numba("k"))
    del document["accesses"][0]["source"]
    documents = [json.dumps({**document, "kernel": kernel}) for kernel in "kl"]
    (log,) = json.loads(warpwright._warpwright.sarif(documents, "/r", ["/r/a.py", "/r/b.py"]))["runs"]
    found = [result["locations"][0]["physicalLocation"] for result in log["results"]]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in found] == [
        ("a.py", 1),
        ("b.py", 1),
    ]
