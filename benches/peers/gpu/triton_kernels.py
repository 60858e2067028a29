"""Products of a matrix and a vector in Triton."""

import torch
import triton
import triton.language as tl


@triton.jit
def _gemv(w, x, y, n, k, rows: tl.constexpr, columns: tl.constexpr):
    """`y = w · x` for `rows` rows of the row-major `n × k` matrix `w` in each program."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    inside = row < n
    total = tl.zeros((rows, columns), tl.float32)
    for start in range(0, k, columns):
        column = start + tl.arange(0, columns)
        known = column < k
        part = tl.load(x + column, mask=known, other=0.0).to(tl.float32)
        at = row[:, None].to(tl.int64) * k + column[None, :]
        weights = tl.load(w + at, mask=inside[:, None] & known[None, :], other=0.0)
        total += weights.to(tl.float32) * part[None, :]
    tl.store(y + row, tl.sum(total, axis=1), mask=inside)


# Rows and columns of a program, and its warps: the best of these is compared.
FORMS = [(1, 1024, 4), (2, 1024, 4), (4, 512, 4), (4, 1024, 8), (8, 512, 8)]


def gemv(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, form: tuple[int, int, int]) -> None:
    """Launches the product in one of `FORMS`."""
    n, k = w.shape
    rows, columns, warps = form
    _gemv[(triton.cdiv(n, rows),)](w, x, y, n, k, rows=rows, columns=columns, num_warps=warps)
