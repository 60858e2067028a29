"""Launches: what arguments become, what a launch has, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("triton.language")
torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import warpwright  # noqa: E402
import warpwright.triton  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402


@triton.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def value(out_ptr, value):
    tl.store(out_ptr, value)


@triton.jit
def typed(
    out_ptr, half: tl.float16, brain: tl.bfloat16, wide: tl.float64, small: tl.int8, sign: tl.int16, bit: tl.int1
):
    tl.store(out_ptr, half)
    tl.store(out_ptr + 1, brain)
    tl.store(out_ptr + 2, wide)
    tl.store(out_ptr + 3, small)
    tl.store(out_ptr + 4, sign)
    tl.store(out_ptr + 5, bit.to(tl.float64))


@triton.jit
def of_tuples(pair, out_ptr, rest, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(pair[0] + i) + tl.load(pair[1] + i)
    if rest[0] is not None:
        x += tl.load(rest[0] + i)
    tl.store(out_ptr + i, x * rest[1] + rest[2])


@triton.jit
def indices(out_ptr, Y, Z):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out_ptr + (x * Y + y) * Z + z, x * 100 + y * 10 + z)


@triton.jit
def of_descriptors(x, out, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.program_id(0) * M, tl.program_id(1) * N
    out.store([m, n], x.load([m, n]) + 1)


@triton.jit
def descriptor_in_kernel(x_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [M, N])
    out = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns, 1], [M, N])
    m, n = tl.program_id(0) * M, tl.program_id(1) * N
    out.store([m, n], x.load([m, n]) + 1)


@triton.jit
def reduced_over_devices(x_ptr):
    x_ptrs = x_ptr + tl.arange(0, 32)
    instruction: tl.constexpr = "multimem.ld_reduce.relaxed.sys.global.add.u32 $0, [$1];"
    x = tl.inline_asm_elementwise(instruction, "=r,l", [x_ptrs], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(x_ptrs, x)


@triton.jit
def product_of_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sum = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        sum = tl.dot(a.load([m, k]), b.load([n, k]).T, sum)
    c.store([m, n], sum.to(tl.float16))


@triton.jit
def sines(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, libdevice.asin(tl.load(x_ptr + i)))


@triton.jit
def printing(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("x: ", tl.load(x_ptr + tl.arange(0, BLOCK)))


@triton.jit(debug=True)
def asserting(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x < 10, "x is below ten")  # bug


@triton.jit
def ticket(total_ptr, order_ptr):
    tl.store(order_ptr + tl.program_id(0), tl.atomic_add(total_ptr, 1))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(c_ptr + i * N + j, tl.dot(tl.load(a_ptr + i * N + j), tl.load(b_ptr + i * N + j)))


runs = []


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, pre_hook=lambda args: runs.append(args["BLOCK"])) for block in (64, 128, 256)
    ],
    key=["n"],
)
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


N, BLOCK = 1000, 256
GRID = (triton.cdiv(N, BLOCK),)


@pytest.mark.parametrize("make", [torch.from_numpy, lambda array: array], ids=["torch", "NumPy"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("number", [int, np.int32, np.int64], ids=lambda number: number.__name__)
def test_tensors_and_arrays_are_written_where_they_are(make, dtype, number):
    x = np.arange(N).astype(dtype)
    out = np.zeros_like(x)
    scale[GRID](make(x), make(out), number(2), number(N), BLOCK)
    assert np.array_equal(out, x * 2)


@pytest.mark.parametrize(
    "given",
    [0, 1, -1, 7, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, True, np.int16(-5), np.uint64(9)],
)
def test_whole_numbers(given):
    out = torch.zeros(1, dtype=torch.uint64 if given >= 2**63 else torch.int64)
    value[(1,)](out, given)
    assert out.item() == given


@pytest.mark.parametrize(
    "given", [0.0, 1.0, -2.5, 1e30, float("inf"), float("-inf"), 1e300, np.float32(0.1), np.float64(3)]
)
def test_floats(given):
    out = torch.zeros(1)
    value[(1,)](out, given)
    with np.errstate(over="ignore"):
        assert out.item() == float(np.float32(given))


def test_annotated_types():
    out = torch.zeros(6, dtype=torch.float64)
    typed[(1,)](out, 1.5, 2.25, 0.1, -7, 300, True)
    assert out.tolist() == [1.5, 2.25, 0.1, -7, 300, 1]


def test_a_number_that_its_type_cannot_hold():
    with pytest.raises(OverflowError):
        typed[(1,)](torch.zeros(6, dtype=torch.float64), 1.5, 2.25, 0.1, 200, 300, True)


@pytest.mark.parametrize("third", [None, torch.arange(64.0)], ids=["none", "tensor"])
def test_tuples(third):
    x, y, out = torch.arange(64.0), torch.ones(64), torch.empty(64)
    of_tuples[(1,)]((x, y), out, (third, 3.0, 1), 64)
    assert torch.equal(out, (x + y + (0 if third is None else third)) * 3 + 1)


def test_grids():
    out = torch.empty(2, 3, 4, dtype=torch.int32)
    indices[lambda meta: (2, meta["Y"], 4)](out, 3, 4)
    x, y, z = np.indices((2, 3, 4))
    assert np.array_equal(out.numpy(), x * 100 + y * 10 + z)
    indices[(0, 3, 4)](out, 3, 4)
    indices[(1,)](out, 1, 1)


@pytest.mark.parametrize("shape", [(32, 64), (30, 48), (17, 16)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("sm", [80, 90, 100, 120])
def test_tensor_descriptors(shape, dtype, sm):
    warpwright.triton.enable(sm=sm)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8))
    x = torch.randn(shape).to(dtype)
    out, again = torch.empty_like(x), torch.empty_like(x)
    grid = (triton.cdiv(shape[0], 16), triton.cdiv(shape[1], 16))
    of_descriptors[grid](*(TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, out)), 16, 16)
    descriptor_in_kernel[grid](x, again, *shape, 16, 16)
    assert torch.equal(out, x + 1)
    assert torch.equal(again, x + 1)


@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("sm", [80, 90, 100, 120])
def test_products_of_descriptors(sm, specialised):
    warpwright.triton.enable(sm=sm)
    a, b = torch.randint(-3, 4, (100, 104)).half(), torch.randint(-3, 4, (88, 104)).half()
    c = torch.empty(100, 88, dtype=torch.float16)
    shapes = (a, [64, 32]), (b, [64, 32]), (c, [64, 64])
    descriptors = [TensorDescriptor.from_tensor(tensor, shape) for tensor, shape in shapes]
    product_of_descriptors[(2, 2)](*descriptors, 104, 64, 64, 32, specialised, num_warps=4, num_stages=3)
    assert torch.equal(c, (a.float() @ b.float().T).half())


def test_libdevice():
    x = torch.linspace(-1, 1, 64)
    out = torch.empty(64)
    sines[(1,)](x, out, 64)
    torch.testing.assert_close(out, torch.asin(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("sm", [80, 90, 100, 103, 120])
def test_tensor_cores(dtype, sm):
    warpwright.triton.enable(sm=sm)
    a, b, c = torch.randn(32, 32).to(dtype), torch.randn(32, 32).to(dtype), torch.empty(32, 32)
    product[(1,)](a, b, c, 32)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("order", ["issue", "reverse", "random:1", "random:2"])
def test_orders(order):
    warpwright.triton.enable(order=order)
    total = torch.zeros(1, dtype=torch.int32)
    ticket[(8,)](total, order_of := torch.empty(8, dtype=torch.int32))
    assert sorted(order_of.tolist()) == list(range(8))
    if order in ("reverse", "random:1", "random:2"):
        assert order_of.tolist() != list(range(8))


def test_device_print(capsys):
    printing[(1,)](torch.arange(32, dtype=torch.int32), 32, num_warps=1)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(int(line.split()[-1]) for line in lines) == list(range(32))


def test_device_assert():
    asserting[(1,)](torch.arange(10, dtype=torch.int32)[:8], 8)
    with pytest.raises(warpwright.FindingsError) as caught:
        asserting[(1,)](torch.arange(16, dtype=torch.int32), 16)
    trap = caught.value.report.trap
    first = asserting.fn.__code__.co_firstlineno
    assert (trap.source.file, trap.source.line) == (__file__, first + 3)


def test_autotuning_runs_each_configuration_once_and_then_the_best():
    runs.clear()
    x, out = torch.arange(float(N)), torch.empty(N)
    tuned[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, out, N)
    assert sorted(runs[:3]) == [64, 128, 256]
    assert len(runs) == 4
    assert torch.equal(out, x + 1)


def test_a_program_can_measure():
    x, out = torch.arange(float(N)), torch.empty(N)
    assert triton.testing.do_bench(lambda: scale[GRID](x, out, 2.0, N, BLOCK), warmup=1, rep=1) > 0


def test_hooks_and_reports():
    seen = []
    hooks = triton.knobs.runtime
    enter, leave = hooks.launch_enter_hook, hooks.launch_exit_hook
    hooks.launch_enter_hook = lambda metadata: seen.append(("enter", metadata.get()["name"]))
    hooks.launch_exit_hook = lambda metadata: seen.append(("exit", metadata.get()["name"]))
    remove = warpwright.on_report(lambda report: seen.append((report.kernel, report.ok)))
    try:
        value[(1,)](torch.zeros(1), 1.0)
    finally:
        remove()
        hooks.launch_enter_hook, hooks.launch_exit_hook = enter, leave
    assert seen == [("enter", "value"), ("value", True), ("exit", "value")]


def test_compiled_kernels_have_their_ptx_and_no_machine_code():
    kernel = value.warmup(torch.float32, 1.0, grid=(1,))
    assert "cubin" not in kernel.asm
    assert kernel.asm["ptx"].encode() == kernel.asm["vgpu"]
    out = torch.zeros(1)
    kernel[(1, 1, 1)](out, 4.0)
    assert out.item() == 4.0


def test_other_targets():
    out = torch.zeros(1)
    value[(1,)](out, 1.0)
    warpwright.triton.enable(sm=86)
    value[(1,)](out, 2.0)
    assert triton.runtime.driver.active.get_current_target().arch == 86
    assert out.item() == 2.0


def test_what_the_virtual_gpu_has_not_is_refused_by_the_name_of_a_target_that_does_without():
    warpwright.triton.enable(sm=100)
    with pytest.raises(ValueError, match="sm=80"):
        reduced_over_devices[(1,)](torch.zeros(32, dtype=torch.int32))


def test_clusters():
    warpwright.triton.enable(sm=90)
    x, out = torch.randn(1000), torch.empty(1000)
    scale[(2,)](x, out, 2.0, 1000, 512, num_ctas=2)
    assert torch.equal(out, 2 * x)
    warpwright.triton.enable(sm=80)
    with pytest.raises(ValueError, match="sm=90|SM90"):
        scale[(2,)](x, out, 2.0, 1000, 512, num_ctas=2)


@pytest.mark.parametrize("argument", ["a text", 1j, object()], ids=["str", "complex", "object"])
def test_arguments_that_are_none(argument):
    with pytest.raises(TypeError):
        value[(1,)](torch.zeros(1), argument)


def test_a_target_that_is_none():
    with pytest.raises(ValueError, match="target"):
        warpwright.triton.enable(sm="Hopper")


def test_disable_restores_what_was_there():
    def state():
        patched = [torch.empty, torch.Tensor.data_ptr, torch.Tensor.new_empty, torch.cuda.is_available, torch.Generator]
        drivers = [triton.runtime.JITFunction.run, triton.runtime.driver._active]
        return dict(triton.backends.backends), patched, drivers, dict(vars(warpwright.settings))

    warpwright.triton.disable()
    before = state()
    warpwright.triton.enable(check="memcheck", order="reverse", cuda=True)
    warpwright.triton.enable(sm=86)
    assert state() != before
    warpwright.triton.disable()
    assert state() == before


def test_importing_changes_nothing():
    program = (
        "import triton.backends; before = dict(triton.backends.backends)\n"
        "import warpwright, warpwright.triton, triton\n"
        "assert triton.backends.backends == before and triton.runtime.driver._active is None"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_compiler_is_needed(tmp_path):
    environment = {
        **os.environ,
        "PATH": str(tmp_path),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "CC": "/no/compiler",
    }
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, triton, triton.language as tl\n"
        "@triton.jit\n"
        "def twice(x_ptr, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n"
        "    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))\n"
        "x = np.arange(64, dtype=np.float32)\n"
        "twice[(1,)](x, 64)\n"
        "print(x.sum(), sys.argv[1:])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "warpwright.triton", "--check", "memcheck,initcheck", str(program), "--check", "me"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (ended.stdout, ended.returncode) == ("4032.0 ['--check', 'me']\n", 0), ended.stderr


def test_launches_are_quick():
    """At least 2,000 launches of a tiny kernel in a second, by the best of some tries."""
    warpwright.settings.check = "memcheck"
    x, out = torch.arange(float(N)), torch.empty(N)
    scale[(1,)](x, out, 2.0, 32, 32, num_warps=1)

    def seconds():
        begin = time.perf_counter()
        for _ in range(200):
            scale[(1,)](x, out, 2.0, 32, 32, num_warps=1)
        return time.perf_counter() - begin

    assert min(seconds() for _ in range(5)) < 0.1
