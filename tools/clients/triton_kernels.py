"""Kernels of Triton on whatever driver they find, launched through PyTorch, with results held against PyTorch's own.

Each check prints `ok NAME` or `failed NAME: why`. PyTorch's kernels are machine code, so that tensors are made and
compared on the host, and only copied to the device.
"""

import sys

import torch
import triton
import triton.language as tl

# Before any thread of the driver is there, all of which would begin with this mode.
FLUSHES = torch.set_flush_denormal(True)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + i, power / tl.sum(power, 0), mask=i < columns)


@triton.jit
def matmul_kernel(a, b, c, N, K, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    rows = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    columns = tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    inner = tl.arange(0, K_TILE)
    sums = tl.zeros((M_TILE, N_TILE), tl.float32)
    for k in range(0, K, K_TILE):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        sums += tl.dot(left, tl.load(b + (k + inner)[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


@triton.jit
def histogram_kernel(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.atomic_add(counts + tl.load(x + i, mask=inside), 1, mask=inside)


@triton.jit
def scan_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


def flushed_denormals():
    """Denormal numbers are added as they are, whatever the host's threads do with theirs."""
    if not FLUSHES:
        return
    bits = torch.arange(1, 4097, dtype=torch.int32)
    x = bits.cuda().view(torch.float32)
    out = torch.empty(4096, device="cuda", dtype=torch.float32)
    add_kernel[(16,)](x, x, out, 4096, BLOCK=256)
    torch.testing.assert_close(out.view(torch.int32).cpu(), bits * 2, rtol=0, atol=0)


def vector_add():
    x, y = torch.randn(1000), torch.randn(1000)
    out = torch.empty(1000, device="cuda")
    add_kernel[(4,)](x.cuda(), y.cuda(), out, 1000, BLOCK=256)
    torch.testing.assert_close(out.cpu(), x + y, rtol=0, atol=0)


def softmax():
    x = torch.randn(8, 100)
    out = torch.empty(8, 100, device="cuda")
    softmax_kernel[(8,)](x.cuda(), out, 100, BLOCK=128)
    torch.testing.assert_close(out.cpu(), torch.softmax(x, 1))


def matmul(dtype):
    a, b = torch.randn(64, 96).to(dtype), torch.randn(96, 64).to(dtype)
    out = torch.empty(64, 64, device="cuda")
    matmul_kernel[(2, 2)](a.cuda(), b.cuda(), out, 64, 96, M_TILE=32, N_TILE=32, K_TILE=32)
    # Of float32, tl.dot takes the ten bits that tensor cores take.
    near = {"rtol": 1e-2, "atol": 5e-2} if dtype == torch.float32 else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(out.cpu(), a.float() @ b.float(), **near)


def histogram():
    x = torch.randint(0, 16, (3000,), dtype=torch.int32)
    counts = torch.zeros(16, dtype=torch.int32).cuda()
    histogram_kernel[(12,)](x.cuda(), counts, 3000, BLOCK=256)
    torch.testing.assert_close(counts.cpu().long(), torch.bincount(x, minlength=16))


def scan():
    x = torch.randint(-9, 9, (512,), dtype=torch.int32)
    out = torch.empty(512, dtype=torch.int32, device="cuda")
    scan_kernel[(1,)](x.cuda(), out, BLOCK=512)
    torch.testing.assert_close(out.cpu(), x.cumsum(0).int())


def main():
    torch.manual_seed(1)
    checks = {
        "flushed_denormals": flushed_denormals,
        "vector_add": vector_add,
        "softmax": softmax,
        "matmul_float16": lambda: matmul(torch.float16),
        "matmul_bfloat16": lambda: matmul(torch.bfloat16),
        "matmul_float32": lambda: matmul(torch.float32),
        "histogram": histogram,
        "scan": scan,
    }
    failed = False
    for name, check in checks.items():
        try:
            check()
            print(f"ok {name}", flush=True)
        except Exception as error:  # Whatever a client may raise.
            failed = True
            print(f"failed {name}: {error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    print(f"PyTorch {torch.__version__}, Triton {triton.__version__}")
    sys.exit(main())
