"""4-bit and 8-bit dequantisation matrix products and quantisation kernels."""
import triton
import triton.language as tl


@triton.jit
def dequant_gemv(q_ptr, scale_ptr, x_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    acc = tl.zeros([BR], tl.float32)
    for c0 in range(0, cols, BC):
        j = c0 // 2 + tl.arange(0, BC // 2)
        q = tl.load(q_ptr + r[:, None] * (cols // 2) + j[None, :], mask=r[:, None] < rows, other=0)
        lo = (q & 15).to(tl.float32) - 8.0
        hi = (q >> 4).to(tl.float32) - 8.0
        s = tl.load(scale_ptr + r[:, None] * (cols // 32) + (j // 16)[None, :], mask=r[:, None] < rows, other=0.0).to(tl.float32)
        xe = tl.load(x_ptr + 2 * j).to(tl.float32)
        xo = tl.load(x_ptr + 2 * j + 1).to(tl.float32)
        acc += tl.sum(s * (lo * xe[None, :] + hi * xo[None, :]), axis=1)
    tl.store(y_ptr + r, acc.to(tl.float16), mask=r < rows)


@triton.jit
def dequant_matmul(a_ptr, q_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + k + rk[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(q_ptr + (k + rk)[:, None] * N + rn[None, :], mask=rn[None, :] < N, other=0)
        acc = tl.dot(a, w.to(tl.float16), acc)
    s = tl.load(scale_ptr + rn, mask=rn < N, other=0.0)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], (acc * s[None, :]).to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def quantise_rows(x_ptr, q_ptr, scale_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x), axis=0) / 127.0, 1e-12)
    r = x / s
    q = tl.where(r >= 0, r + 0.5, r - 0.5).to(tl.int8)
    tl.store(q_ptr + row * cols + c, q, mask=c < cols)
    tl.store(scale_ptr + row, s)


@triton.jit
def unpack_pairs(q_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i, mask=i < n, other=0)
    both = tl.interleave((q & 15).to(tl.float16), (q >> 4).to(tl.float16))
    o = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + o, both, mask=o < 2 * n)


KERNELS = [
    ("dequant_gemv", dequant_gemv, "*u8 *fp16 *fp16 *fp16 i32 i32", {"BR": 16, "BC": 128}, {}, [75, 80, 90]),
    ("dequant_matmul", dequant_matmul, "*fp16 *i8 *fp32 *fp16 i32 i32 i32", {"BM": 32, "BN": 64, "BK": 32}, {}, [80, 90]),
    ("quantise_rows", quantise_rows, "*bf16 *i8 *fp32 i32", {"BLOCK": 1024}, {}, [80]),
    ("unpack_pairs", unpack_pairs, "*u8 *fp16 i32", {"BLOCK": 256}, {}, [86]),
]
