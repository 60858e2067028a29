"""Reductions, scans, sorts, histograms, arg reductions, top-k, associative scans, gathers, atomics."""
import triton
import triton.language as tl


@triton.jit
def add2(a, b):
    return a + b


@triton.jit
def linear_step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def sum_rows(x_ptr, y_ptr, rows, cols, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols), other=0.0)
    tl.store(y_ptr + r, tl.sum(x, axis=1), mask=r < rows)
    tl.store(y_ptr + rows + r, tl.reduce(x, 1, add2) + tl.min(x, axis=1) - tl.max(x, axis=1), mask=r < rows)


@triton.jit
def sum_atomic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def cumsum(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    p = tl.program_id(0) * cols + c
    x = tl.load(x_ptr + p, mask=c < cols, other=0)
    tl.store(y_ptr + p, tl.cumsum(x, axis=0) + tl.cumsum(x, axis=0, reverse=True), mask=c < cols)


@triton.jit
def linear_scan(a_ptr, b_ptr, y_ptr, T, C: tl.constexpr, BT: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    t = tl.arange(0, BT)
    p = t[:, None] * (tl.num_programs(0) * C) + c[None, :]
    a = tl.load(a_ptr + p, mask=t[:, None] < T, other=1.0)
    b = tl.load(b_ptr + p, mask=t[:, None] < T, other=0.0)
    a, b = tl.associative_scan((a, b), 0, linear_step)
    tl.store(y_ptr + p, b, mask=t[:, None] < T)


@triton.jit
def sort_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    p = tl.program_id(0) * cols + c
    x = tl.load(x_ptr + p, mask=c < cols, other=float("inf"))
    tl.store(y_ptr + p, tl.sort(x), mask=c < cols)


@triton.jit
def top_k(x_ptr, y_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * cols + c, mask=c < cols, other=-float("inf"))
    tl.store(y_ptr + tl.program_id(0) * K + tl.arange(0, K), tl.topk(x, K))


@triton.jit
def argmax_rows(x_ptr, i_ptr, v_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * cols + c, mask=c < cols, other=-float("inf"))
    v, i = tl.max(x, axis=0, return_indices=True)
    tl.store(i_ptr + tl.program_id(0), i.to(tl.int64))
    tl.store(v_ptr + tl.program_id(0), v + tl.argmin(x, axis=0, tie_break_left=False))


@triton.jit
def histogram(x_ptr, bins_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=i < n), sem="relaxed", scope="gpu")


@triton.jit
def gather_flip(x_ptr, i_ptr, y_ptr, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)[:, None]
    c = tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + r * C + c)
    i = tl.load(i_ptr + r * C + c)
    g = tl.gather(x, i, axis=1)
    tl.store(y_ptr + c * R + r, tl.flip(g, 1) + tl.trans(tl.reshape(x, (C, R))))


@triton.jit
def atomics(i_ptr, f_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.atomic_max(i_ptr + i % 8, i, mask=m)
    tl.atomic_min(i_ptr + 8 + i % 8, i, mask=m, sem="acquire")
    tl.atomic_and(i_ptr + 16 + i % 8, i, mask=m)
    tl.atomic_or(i_ptr + 24 + i % 8, i, mask=m, sem="release", scope="sys")
    tl.atomic_xor(i_ptr + 32 + i % 8, i, mask=m, scope="cta")
    old = tl.atomic_add(f_ptr + i % 4, i.to(tl.float32), mask=m)
    tl.atomic_max(f_ptr + 4 + i % 4, old, mask=m)
    tl.store(out_ptr + i, tl.atomic_xchg(f_ptr + 8 + i, old, mask=m), mask=m)


@triton.jit
def welford(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    mean = tl.sum(x, 0) / n
    d = tl.where(i < n, x - mean, 0.0)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, tl.sum(d * d, 0) / n)
    tl.store(out_ptr + 2, tl.xor_sum(tl.where(i < n, x.to(tl.int32), 0), 0).to(tl.float32))


KERNELS = [
    ("sum_rows", sum_rows, "*fp32 *fp32 i32 i32", {"R": 8, "C": 256}, {}, [75, 80, 90]),
    ("sum_atomic", sum_atomic, "*fp32 *fp32 i32", {"BLOCK": 1024}, {}, [80]),
    ("cumsum", cumsum, "*i32 *i32 i32", {"BLOCK": 512}, {}, [75, 80]),
    ("linear_scan", linear_scan, "*fp32 *fp32 *fp32 i32!", {"C": 32, "BT": 64}, {}, [80]),
    ("sort_rows", sort_rows, "*fp32 *fp32 i32!", {"BLOCK": 128}, {}, [80]),
    ("top_k", top_k, "*fp32 *fp32 i32!", {"K": 8, "BLOCK": 128}, {}, [86]),
    ("argmax_rows", argmax_rows, "*fp16 *i64 *fp32 i32", {"BLOCK": 512}, {}, [80, 90]),
    ("histogram", histogram, "*i32 *i32 i32", {"BINS": 128, "BLOCK": 512}, {}, [75, 90]),
    ("gather_flip", gather_flip, "*fp32 *i32 *fp32", {"R": 32, "C": 32}, {}, [80]),
    ("atomics", atomics, "*i32 *fp32 *fp32 i32!", {"BLOCK": 128}, {}, [75, 80, 90]),
    ("welford", welford, "*fp32 *fp32 i32!", {"BLOCK": 256}, {"num_warps": 2}, [89]),
]
