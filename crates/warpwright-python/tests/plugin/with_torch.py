"""Kernels of Triton on tensors of PyTorch."""

import pytest
import torch

# Asked before Triton is there.
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

from with_triton import double, without_mask  # noqa: E402


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_right(device):
    x = torch.ones(100, device=device)
    y = torch.empty_like(x)
    double[(1,)](x, y, 100, BLOCK=128)
    assert (y == 2).all()


def test_out_of_bounds():
    without_mask[(1,)](torch.ones(100), 100, BLOCK=128)
