"""Operators that are registered for CUDA, under `device="cuda"`."""

from __future__ import annotations

import gc
import math
import sys

import pytest

pytest.importorskip("triton.language")
torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import warpwright.triton  # noqa: E402
from torch.library import Library  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")


@triton.jit
def add_7(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 7, mask=i < n)


def seven_more(x, *_):
    assert x.device.type == "cuda"
    out = torch.empty(x.shape, device="cuda")
    add_7[(1,)](x, out, x.numel(), 64)
    return out


@pytest.fixture(autouse=True)
def cuda(virtual):
    warpwright.triton.enable(cuda=True)


@pytest.fixture
def aten():
    library = Library("aten", "IMPL")
    yield library
    library._destroy()


@pytest.fixture
def launches():
    """The names of the kernels of all launches."""
    names = []
    remove = warpwright.on_report(lambda report: names.append(report.kernel))
    yield names
    remove()


def ones(device="cuda"):
    return torch.ones(4, device=device)


def test_an_operator_of_pytorch_is_overridden_on_cuda_alone(aten, launches):
    aten.impl("exp", seven_more, "CUDA")
    result = torch.exp(ones())
    assert (result.tolist(), result.device.type, launches) == ([8.0] * 4, "cuda", ["add_7"])
    assert ones().exp().tolist() == [8.0] * 4
    assert torch.exp(ones("cpu")).tolist() == pytest.approx([math.e] * 4)
    assert torch.cos(0 * ones()).tolist() == [1.0] * 4 and len(launches) == 2


def test_a_library_may_have_the_key(launches):
    library = Library("aten", "IMPL", "CUDA")
    library.impl(torch.ops.aten.exp.default, seven_more)
    assert torch.exp(ones()).tolist() == [8.0] * 4
    library._destroy()
    assert torch.exp(ones()).tolist() == pytest.approx([math.e] * 4)
    assert launches == ["add_7"]


def test_a_library_that_dies_takes_its_kernels_along(launches):
    library = Library("aten", "IMPL", "CUDA")
    library.impl("exp", seven_more)
    del library
    gc.collect()
    assert torch.exp(ones()).tolist() == pytest.approx([math.e] * 4) and launches == []


def test_the_last_library_counts(aten):
    aten.impl("exp", seven_more, "CUDA")
    later = Library("aten", "IMPL", "CUDA")
    later.impl("exp", torch.neg, allow_override=True)
    assert torch.exp(ones()).tolist() == [-1.0] * 4
    later._destroy()
    assert torch.exp(ones()).tolist() == [8.0] * 4


def test_overloads_are_operators_of_their_own(aten, launches):
    aten.impl("add.Tensor", lambda x, y: seven_more(x), "CUDA")
    assert torch.add(ones(), ones()).tolist() == [8.0] * 4
    assert torch.add(ones(), ones(), out=ones()).tolist() == [2.0] * 4


def test_what_pytorch_composes_calls_operators_on_cuda(aten, launches):
    aten.impl("addmm", lambda bias, x, y, **_: seven_more(x @ y + bias), "CUDA")
    linear = torch.nn.Linear(4, 4, device="cuda")
    with torch.no_grad():
        linear.weight.fill_(1)
        linear.bias.fill_(1)
    # `linear` transposes the weight first, and `gelu`'s argument is made between the two.
    assert linear(ones()[None]).tolist() == [[12.0] * 4] and launches == ["add_7"]


@pytest.mark.parametrize("key", ["CUDA", "AutogradCUDA"])
def test_a_composed_operator_is_overridden_as_a_whole(aten, launches, key):
    aten.impl("square", seven_more, key)
    x = ones().requires_grad_(key == "AutogradCUDA")
    assert torch.square(x).tolist() == [8.0] * 4
    assert torch.square(2 * ones("cpu")).tolist() == [4.0] * 4
    with torch.inference_mode():
        assert torch.square(ones()).tolist() == [8.0] * 4
    assert launches == ["add_7"] * 2


def test_what_is_not_called_is_told(aten):
    with pytest.warns(UserWarning, match="^aten::exp: what is registered for AutogradCUDA is not called"):
        aten.impl("exp", seven_more, "AutogradCUDA")


def test_what_makes_tensors_is_overridden_by_its_device(aten, launches):
    asked = []

    def sevens(size, *, dtype=None, layout=None, device=None, pin_memory=None):
        asked.append(device)
        return seven_more(torch.zeros(size, device=device))

    aten.impl("ones", sevens, "CUDA")
    assert torch.ones(4).tolist() == [1.0] * 4 and asked == []
    assert torch.ones(4, device="cuda").tolist() == [7.0] * 4
    assert asked == [torch.device("cuda", 0)] and launches == ["add_7"]


def test_backwards_too(aten, launches):
    aten.impl("exp", seven_more, "CUDA")
    aten.impl("neg", seven_more, "CUDA")
    x = ones().requires_grad_()
    torch.exp(x).sum().backward()
    # The gradient is the result, of the kernel.
    assert x.grad.tolist() == [8.0] * 4
    y = ones().requires_grad_()
    torch.cos(y).sum().backward()
    assert len(launches) == 2


def test_operators_of_the_program(launches):
    @torch.library.custom_op("warpwright_tests::on_cuda", mutates_args=(), device_types="cuda")
    def on_cuda(x: torch.Tensor) -> torch.Tensor:
        return seven_more(x)

    @torch.library.custom_op("warpwright_tests::anywhere", mutates_args=())
    def anywhere(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape, device=x.device)

    @anywhere.register_kernel("cuda")
    def _(x):
        return seven_more(x)

    @torch.library.custom_op("warpwright_tests::of_no_device", mutates_args=())
    def of_no_device(x: torch.Tensor) -> torch.Tensor:
        return seven_more(x)

    @on_cuda.register_autograd
    def _(context, gradient):
        return seven_more(gradient.contiguous())

    assert on_cuda(ones()).tolist() == anywhere(ones()).tolist() == of_no_device(ones()).tolist() == [8.0] * 4
    assert anywhere(ones("cpu")).tolist() == [0.0] * 4
    with pytest.raises(NotImplementedError):
        on_cuda(ones("cpu"))
    assert launches == ["add_7"] * 3
    x = ones().requires_grad_()
    on_cuda(x).sum().backward()
    assert x.grad.tolist() == [8.0] * 4 and len(launches) == 5


def test_operators_by_a_schema(launches):
    torch.library.define("warpwright_tests::by_schema", "(Tensor x) -> Tensor")
    torch.library.impl("warpwright_tests::by_schema", "cuda", seven_more)
    assert torch.ops.warpwright_tests.by_schema(ones()).tolist() == [8.0] * 4 and launches == ["add_7"]


@pytest.mark.skipif(not hasattr(torch.library, "triton_op"), reason="this PyTorch has no triton_op")
def test_operators_of_triton(launches):
    @torch.library.triton_op("warpwright_tests::of_triton", mutates_args=())
    def of_triton(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape, device="cuda")
        torch.library.wrap_triton(add_7)[(1,)](x, out, x.numel(), 64)
        return out

    assert of_triton(ones()).tolist() == [8.0] * 4 and launches == ["add_7"]


def test_errors_of_kernels_are_raised(aten):
    def beyond(x):
        out = torch.empty(2, device="cuda")
        add_7[(1,)](x, out, 4, 64)
        return out

    aten.impl("exp", beyond, "CUDA")
    with pytest.raises(warpwright.FindingsError):
        torch.exp(ones())
    # The modes are as before.
    assert torch.ones(1, device="cuda").is_cuda
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_libraries_outlast_what_was_enabled(aten, launches):
    @torch.library.custom_op("warpwright_tests::outlasting", mutates_args=())
    def outlasting(x: torch.Tensor) -> torch.Tensor:
        return seven_more(x)

    aten.impl("exp", seven_more, "CUDA")
    aten.impl("square", seven_more, "CUDA")
    left = ones()
    warpwright.triton.disable()
    assert torch.exp(left).tolist() == pytest.approx([math.e] * 4)
    assert torch.square(left).tolist() == [1.0] * 4
    with pytest.raises(AssertionError):
        outlasting(left)
    assert launches == []
    warpwright.triton.enable(cuda=True)
    for operator in (torch.exp, torch.square, outlasting):
        assert operator(ones()).tolist() == [8.0] * 4
    assert launches == ["add_7"] * 3


def test_what_was_registered_before_is_told(launches):
    warpwright.triton.disable()
    impl = Library.impl

    @torch.library.custom_op("warpwright_tests::early", mutates_args=(), device_types="cuda")
    def early(x: torch.Tensor) -> torch.Tensor:
        return seven_more(x)

    library = Library("aten", "IMPL")
    library.impl("exp", seven_more, "CUDA")
    try:
        with pytest.warns(UserWarning, match=r"^aten::exp: what is registered for CUDA before"):
            warpwright.triton.enable(cuda=True)
        assert early(ones()).tolist() == [8.0] * 4 and launches == ["add_7"]
    finally:
        library._destroy()
    warpwright.triton.disable()
    assert Library.impl is impl and sys.modules["torch.library"].Library is Library
