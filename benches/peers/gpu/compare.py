"""Times peers at the shapes of a qualification, and writes one table with ratios.

See README.md beside this file.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    raise SystemExit(f"{error}: `pip install torch` has it; it also times the other peers") from error

SAMPLE_SECONDS = 2e-3
SAMPLES = 15


@dataclass
class Row:
    """A figure of ours, and what a peer takes for the same."""

    name: str
    ours: float
    peer: str
    theirs: float


class Clock:
    """Times work on a device as `warpwright qualify` does."""

    def __init__(self, device: torch.device):
        self.device = device
        self.is_gpu = device.type == "cuda"

    def sets(self, size: int) -> int:
        """Sets of buffers of so many bytes that do not fit in the L2 cache together."""
        if not self.is_gpu:
            return 2
        properties = torch.cuda.get_device_properties(self.device)
        l2 = getattr(properties, "L2_cache_size", 64 << 20)
        fitting = max(1, properties.total_memory // 4 // max(size, 1))
        return min(max(2, -(-3 * l2 // max(size, 1))), 64, fitting)

    def time(self, works: list[Callable[[], object]]) -> float:
        """Seconds of one of these equal pieces of work: the median of samples of replays of a graph of them all."""
        if not self.is_gpu:
            start = time.perf_counter()
            for work in works:
                work()
            return (time.perf_counter() - start) / len(works)
        # What is compiled or chosen at the first call is not captured.
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for work in works:
                work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for work in works:
                work()

        def sample(rounds: int) -> float:
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            for _ in range(rounds):
                graph.replay()
            after.record()
            torch.cuda.synchronize()
            return before.elapsed_time(after) / 1e3

        sample(1)
        rounds = min(max(1, math.ceil(SAMPLE_SECONDS / max(sample(1), 1e-9))), 10_000)
        return statistics.median(sample(rounds) for _ in range(SAMPLES)) / (rounds * len(works))


class Peers:
    """The peers of figures, found by the names of the figures."""

    def __init__(self, clock: Clock, tiny: bool):
        self.clock = clock
        self.tiny = tiny
        try:
            import triton_kernels

            self.triton = triton_kernels if clock.is_gpu else None
        except ImportError:
            self.triton = None

    def small(self, number: int, most: int) -> int:
        return min(number, most) if self.tiny else number

    def random(self, *shape: int, dtype=torch.float16) -> torch.Tensor:
        return torch.randn(shape, device=self.clock.device, dtype=torch.float32).to(dtype)

    def of(self, name: str) -> list[tuple[str, float]]:
        """The peers of a figure, with their seconds."""
        for pattern, method in [
            (r"copy by the driver", self.copy),
            (r"gemm f16 (\d+)x(\d+), (\d+) tokens", self.gemm),
            (r"gemv f16 (\d+)x(\d+), activations exact", self.gemv),
            (r"attention (\d+)/(\d+) heads of (\d+), f16 cache of (\d+) tokens, one query", self.decode),
            (r"attention (\d+)/(\d+) heads of (\d+), (\d+) tokens, causal", self.prefill),
        ]:
            if found := re.fullmatch(pattern, name):
                return method(*map(int, found.groups()))
        return []

    def copy(self) -> list[tuple[str, float]]:
        x = torch.randint(0, 1 << 30, (self.small(512 << 20, 1 << 16) // 4,), device=self.clock.device, dtype=torch.int32)
        y = torch.empty_like(x)
        seconds = self.clock.time([lambda: y.copy_(x)])
        # A second of this moves as many bytes as one of the qualification, whatever its size.
        return [("PyTorch copy_, for each GB", seconds / (2 * 4 * x.numel() / 1e9))]

    def gemm(self, n: int, k: int, tokens: int) -> list[tuple[str, float]]:
        n, k, tokens = self.small(n, 64), self.small(k, 64), self.small(tokens, 16)
        count = self.clock.sets(2 * (n * k + tokens * (n + k)))
        w = [self.random(n, k) for _ in range(count)]
        x = [self.random(tokens, k) for _ in range(count)]
        y = [self.random(tokens, n) for _ in range(count)]
        works = [lambda i=i: torch.matmul(x[i], w[i].T, out=y[i]) for i in range(count)]
        return [("PyTorch matmul", self.clock.time(works))]

    def gemv(self, n: int, k: int) -> list[tuple[str, float]]:
        n, k = self.small(n, 64), self.small(k, 64)
        count = self.clock.sets(2 * n * k)
        w = [self.random(n, k) for _ in range(count)]
        x = [self.random(k) for _ in range(count)]
        y = [self.random(n) for _ in range(count)]
        works = [lambda i=i: torch.mv(w[i], x[i], out=y[i]) for i in range(count)]
        peers = [("PyTorch mv", self.clock.time(works))]
        if self.triton:
            z = [self.random(n, dtype=torch.float32) for _ in range(count)]
            times = []
            for form in self.triton.FORMS:
                times.append(self.clock.time([lambda i=i, form=form: self.triton.gemv(w[i], x[i], z[i], form) for i in range(count)]))
            # A wrong kernel is no peer.
            torch.testing.assert_close(z[0], w[0].float() @ x[0].float(), rtol=1e-2, atol=1e-1)
            peers.append(("Triton", min(times)))
        return peers

    def attention(self, heads: int, kv_heads: int, dim: int, queries: int, keys: int) -> float:
        count = self.clock.sets(2 * dim * (2 * kv_heads * keys + 2 * heads * queries))
        q = [self.random(1, heads, queries, dim) for _ in range(count)]
        k = [self.random(1, kv_heads, keys, dim) for _ in range(count)]
        v = [self.random(1, kv_heads, keys, dim) for _ in range(count)]
        causal = queries == keys

        def work(i: int) -> torch.Tensor:
            return F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=causal, enable_gqa=True)

        return self.clock.time([lambda i=i: work(i) for i in range(count)])

    def decode(self, heads: int, kv_heads: int, dim: int, length: int) -> list[tuple[str, float]]:
        length = self.small(length, 64)
        return [("PyTorch scaled_dot_product_attention", self.attention(heads, kv_heads, dim, 1, length))]

    def prefill(self, heads: int, kv_heads: int, dim: int, length: int) -> list[tuple[str, float]]:
        length = self.small(length, 64)
        return [("PyTorch scaled_dot_product_attention", self.attention(heads, kv_heads, dim, length, length))]


def llama_bench(program: str, model: Path) -> float:
    """Seconds of a token, by llama.cpp."""
    command = [program, "-m", str(model), "-p", "0", "-n", "128", "-d", "512", "-fa", "1", "-ngl", "99", "-o", "json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return 1 / json.loads(output)[0]["avg_ts"]


def figures(report: dict) -> list[dict]:
    """The figures of a report, in its order."""
    items = [item for stage in report["stages"] for item in stage["items"]]
    findings = [finding for item in items for finding in item["findings"]]
    return [finding["figure"] for finding in findings if "figure" in finding]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="qualify.json")
    parser.add_argument("-o", "--output", type=Path, help="write the table to this file")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or cpu to see that the lines run")
    parser.add_argument("--llama-bench", help="llama.cpp's llama-bench")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="a model for it, such as Llama-3-8B=FILE.gguf")
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text())
    device = torch.device(arguments.device)
    peers = Peers(Clock(device), tiny=device.type == "cpu")
    models = dict(model.split("=", 1) for model in arguments.model)
    rows, missing = [], []
    if peers.triton is None:
        missing.append("Triton")
    if not arguments.llama_bench:
        missing.append("llama.cpp")
    tokens: dict[str, float] = {}
    for figure in figures(report):
        ours = figure["median"]
        if figure["name"] == "copy by the driver":
            ours /= figure["bytes"] / 1e9
        rows += [Row(figure["name"], ours, peer, theirs) for peer, theirs in peers.of(figure["name"])]
        name = figure["name"].split(" Q4_K_M")[0]
        if arguments.llama_bench and name in models and ", a token, " in figure["name"]:
            if name not in tokens:
                tokens[name] = llama_bench(arguments.llama_bench, Path(models[name]))
            rows.append(Row(figure["name"], ours, "llama.cpp", tokens[name]))
        print(f"{figure['name']}", file=sys.stderr)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "a processor, at tiny sizes: these times mean nothing"
    lines = [f"# Peers on {where}", "", f"Ours: {report['device']['name']}, {report['date']}. PyTorch {torch.__version__}."]
    if missing:
        lines.append(f"Left out: {', '.join(missing)}.")
    lines += ["", "| what | ours | peer | theirs | theirs / ours |", "| --- | ---: | --- | ---: | ---: |"]
    for row in rows:
        lines.append(f"| {row.name} | {row.ours * 1e6:.2f} µs | {row.peer} | {row.theirs * 1e6:.2f} µs | {row.theirs / row.ours:.2f} |")
    text = "\n".join(lines) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
