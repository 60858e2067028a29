"""Programs that say `device="cuda"`."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("triton.language")
torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import warpwright  # noqa: E402
import warpwright.triton  # noqa: E402


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def doubled(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    out = tl.make_tensor_descriptor(out_ptr, [N, N], [N, 1], [N, N])
    out.store([0, 0], x.load([0, 0]) * 2)


class Square(torch.autograd.Function):
    """A function with a kernel in each direction."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        twice = torch.empty(x.shape, device="cuda")
        add[(1,)](x, x, twice, x.numel(), 64)
        assert twice.device.type == "cuda"
        return grad * twice


@pytest.fixture(autouse=True)
def cuda(virtual):
    warpwright.triton.enable(cuda=True)


CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
MADE = {
    "randn": lambda: torch.randn(3, device="cuda"),
    "tensor": lambda: torch.tensor([1.0], device="cuda:0"),
    "device": lambda: torch.zeros(3, device=torch.device("cuda")),
    "number": lambda: torch.zeros(3, device=0),
    "cuda": lambda: torch.ones(3).cuda(),
    "to": lambda: torch.ones(3).to("cuda", torch.float16),
    "to by number": lambda: torch.ones(3).to(0),
    "to by name": lambda: torch.ones(3).to(device="cuda"),
    "to of another": lambda: torch.ones(3).to(torch.ones(3, device="cuda")),
    "as_tensor": lambda: torch.as_tensor([1.0, 2.0], device="cuda"),
    "like": lambda: torch.empty_like(torch.ones(3, device="cuda")),
    "new": lambda: torch.ones(3, device="cuda").new_zeros(4),
    "arithmetic": lambda: 1 + torch.ones(3, device="cuda") * 2,
    "reduction": lambda: torch.ones(3, device="cuda").sum(),
    "view": lambda: torch.ones(4, device="cuda").view(2, 2)[0],
    "several": lambda: torch.ones(4, device="cuda").split(2)[1],
    "stack": lambda: torch.stack([torch.ones(4, device="cuda")]),
    "index": lambda: torch.ones(4, device="cuda").max(0).indices,
    "in place": lambda: torch.ones(4, device="cuda").mul_(2),
    "pinned": lambda: torch.ones(4, pin_memory=True).pin_memory().cuda(non_blocking=True),
    "parameter": lambda: torch.nn.Linear(3, 3).cuda().weight,
    "module": lambda: torch.nn.Linear(3, 3, device="cuda")(torch.ones(3, device="cuda")),
    "generator": lambda: torch.rand(3, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)),
    "type": lambda: torch.ones(3).type("torch.cuda.HalfTensor"),
}  # fmt: skip


@pytest.mark.parametrize("how", MADE)
def test_tensors_on_cuda(how):
    tensor = MADE[how]()
    assert (tensor.device, tensor.is_cuda, tensor.is_cpu, tensor.get_device()) == (CUDA, True, False, 0)


NOWHERE = {
    "cuda": lambda: torch.ones(3).cuda(3),
    "cuda by name": lambda: torch.ones(3).cuda(device="cuda:3"),
    "made": lambda: torch.ones(3, device="cuda:3"),
    "made by number": lambda: torch.ones(3, device=3),
    "to": lambda: torch.ones(3).to("cuda:3"),
    "to by number": lambda: torch.ones(3).to(3),
    "module": lambda: torch.nn.Linear(3, 3).cuda(3),
    "set_device": lambda: torch.cuda.set_device(3),
    "set_device by name": lambda: torch.cuda.set_device("cuda:3"),
    "set_default_device": lambda: torch.set_default_device("cuda:3"),
    "device": lambda: torch.cuda.device(3),
    "properties": lambda: torch.cuda.get_device_properties(3),
    "name": lambda: torch.cuda.get_device_name(torch.device("cuda", 3)),
    "capability": lambda: torch.cuda.get_device_capability("cuda:3"),
    "memory": lambda: torch.cuda.memory_allocated(device=3),
    "synchronize": lambda: torch.cuda.synchronize(3),
    "stream": lambda: torch.cuda.Stream(device="cuda:3"),
    "stream by number": lambda: torch.cuda.Stream(3),
    "current_stream": lambda: torch.cuda.current_stream(3),
    "generator": lambda: torch.Generator("cuda:3"),
    "accelerator": lambda: torch.accelerator.set_device_index(3),
}


@pytest.mark.parametrize("how", NOWHERE)
def test_there_is_one_device(how):
    with pytest.raises(RuntimeError, match="^CUDA error: invalid device ordinal"):
        NOWHERE[how]()


@pytest.mark.parametrize("device", [None, -1, 0, "cuda", "cuda:0", torch.device("cuda"), CUDA])
def test_the_device_is_named_in_each_way(device):
    torch.cuda.set_device(device)
    torch.cuda.synchronize(device)
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
        assert torch.cuda.get_device_capability(device) == (8, 0)
    if device != -1:
        assert torch.ones(3).cuda(device).device == CUDA


HOST = {
    "made": lambda: torch.ones(3),
    "moved": lambda: torch.ones(3, device="cuda").cpu(),
    "to": lambda: torch.ones(3, device="cuda").to("cpu"),
    "to of another": lambda: torch.ones(3, device="cuda").to(torch.ones(1)),
    "named": lambda: torch.zeros_like(torch.ones(3, device="cuda"), device="cpu"),
    "arithmetic": lambda: torch.ones(3) + 1,
}


@pytest.mark.parametrize("how", HOST)
def test_tensors_of_the_host(how):
    tensor = HOST[how]()
    assert (tensor.device, tensor.is_cuda, tensor.is_cpu, tensor.get_device()) == (CPU, False, True, -1)


def test_moving_copies():
    host = torch.ones(3)
    device = host.cuda()
    device += 1
    again = device.cpu()
    again += 1
    assert (host.tolist(), device.tolist(), again.tolist()) == ([1.0] * 3, [2.0] * 3, [3.0] * 3)
    assert device.cuda() is device
    assert host.cpu() is host


def test_default_device():
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(3).device == CUDA
        assert torch.get_default_device() == CUDA
    finally:
        torch.set_default_device("cpu")
    with torch.device("cuda"):
        assert torch.zeros(3).device == CUDA
    assert torch.zeros(3).device == CPU


def test_kernels_in_both_directions_of_autograd():
    x = torch.randn(64, device="cuda", requires_grad=True)
    Square.apply(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    assert x.grad.device == CUDA
    (gradient,) = torch.autograd.grad(Square.apply(x).sum(), x)
    torch.testing.assert_close(gradient, 2 * x.detach())


def test_a_module_trains():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = torch.randn(32, 8, device="cuda"), torch.randn(32, 1, device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    losses = [step() for _ in range(20)]
    assert losses[-1] < losses[0]
    assert {parameter.device for parameter in model.parameters()} == {CUDA}


def test_what_torch_cuda_answers():
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (8, 0)
    properties = torch.cuda.get_device_properties(0)
    assert (properties.major, properties.minor, properties.warp_size) == (8, 0, 32)
    stream = torch.cuda.Stream()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream), torch.cuda.device(0):
        begin.record()
        end.record(stream)
    torch.cuda.synchronize()
    assert begin.elapsed_time(end) > 0
    with pytest.raises(RuntimeError, match="CUDAGraph"):
        torch.cuda.CUDAGraph()


def test_kernels_draw_by_a_seed_and_an_offset():
    (generator,) = torch.cuda.default_generators
    for seed in (5, 2**64 - 1):
        torch.manual_seed(seed)
        state = generator.get_state()
        numbers = state.view(torch.int64)
        assert [int(number) % 2**64 for number in numbers] == [seed, 0]
        numbers[1] += 12
        assert (generator.initial_seed(), generator.get_offset()) == (seed, 0)
        generator.set_state(state)
        assert (generator.initial_seed(), generator.get_offset()) == (seed, 12)
        torch.cuda.manual_seed(seed)
        assert generator.get_offset() == 0


def test_kernels_find_what_they_find_on_the_host():
    x = torch.ones(100, device="cuda")
    out = torch.empty(100, device="cuda")
    add[(1,)](x, x, out, 100, 128)
    assert out.tolist() == [2.0] * 100
    with pytest.raises(warpwright.FindingsError) as caught:
        add[(1,)](x, torch.empty(100, device="cuda"), out, 100, 128)
    assert {finding.allocation.arguments for finding in caught.value.report.findings} == {("y_ptr",)}


PROGRAM = """
import torch, triton, triton.language as tl

@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i, mask=i < n)

x = torch.empty(1000, dtype=torch.int32, device="cuda")
fill[(4,)](x, {n}, 256)
print(x.cpu().sum().item(), triton.runtime.driver.active.get_active_torch_device())
"""


@pytest.mark.parametrize(
    "n, options, printed, status",
    [
        (1000, [], "499500 cuda:0\n", 0),
        (1001, [], "", 1),
        (1001, ["--on-findings", "continue"], "499500 cuda:0\n", 1),
        (1000, ["--no-device-cuda"], "", 1),
        (1000, ["--sm", "none"], "", 2),
    ],
)
def test_a_program_as_it_is(tmp_path, n, options, printed, status):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.format(n=n))
    command = [sys.executable, "-m", "warpwright.triton", *options, str(script)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == (printed, status), ended.stderr


def test_scratch_memory_is_where_the_program_allocates_it():
    warpwright.triton.enable(sm=90, cuda=True)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    x = torch.randn(16, 16, device="cuda")
    doubled[(1,)](x, out := torch.empty_like(x), 16)
    assert torch.equal(out, 2 * x)
