"""Matrix products: several element types, grouped launch order, split-k, batched, grouped problem list."""
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACT: tl.constexpr, ACC: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    band = GROUP * tiles_n
    first = pid // band * GROUP
    height = min(tiles_m - first, GROUP)
    tm = first + pid % band % height
    tn = pid % band // height
    rm = (tm * BM + tl.arange(0, BM)) % M
    rn = (tn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * lda + rk[None, :]
    b = b_ptr + rk[:, None] * ldb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        a += BK
        b += BK * ldb
    if ACT == "relu":
        acc = tl.maximum(acc, 0)
    om = tm * BM + tl.arange(0, BM)
    on = tn * BN + tl.arange(0, BN)
    tl.store(c_ptr + om[:, None] * ldc + on[None, :], acc.to(c_ptr.dtype.element_ty), mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def matmul_split_k(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        kk = rk + k * BK * SPLIT
        x = tl.load(a_ptr + rm[:, None] * K + kk[None, :], mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
        y = tl.load(b_ptr + rn[None, :] * K + kk[:, None], mask=(rn[None, :] < N) & (kk[:, None] < K), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


@triton.jit
def grouped_gemm(a_ptrs, b_ptrs, c_ptrs, sizes, groups, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        m = tl.load(sizes + 3 * g)
        n = tl.load(sizes + 3 * g + 1)
        k = tl.load(sizes + 3 * g + 2)
        nt = tl.cdiv(n, BN)
        count = tl.cdiv(m, BM) * nt
        while tile >= last and tile < last + count:
            a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            rm = (tile - last) // nt * BM + tl.arange(0, BM)
            rn = (tile - last) % nt * BN + tl.arange(0, BN)
            rk = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), tl.float32)
            for kk in range(0, tl.cdiv(k, BK)):
                q = kk * BK + rk
                x = tl.load(a + rm[:, None] * k + q[None, :], mask=(rm[:, None] < m) & (q[None, :] < k), other=0.0)
                y = tl.load(b + q[:, None] * n + rn[None, :], mask=(q[:, None] < k) & (rn[None, :] < n), other=0.0)
                acc += tl.dot(x, y)
            tl.store(c + rm[:, None] * n + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))
            tile += SMS
        last += count


@triton.jit
def matmul_descriptor(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(tl.float16))


def tile(bm, bn, bk, acc=tl.float32, act=""):
    return {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "ACT": act, "ACC": acc}


I = " i32! i32! i32! i32 i32 i32"
W4 = {"num_warps": 4, "num_stages": 3}
KERNELS = [
    ("matmul_f16", matmul, "*fp16 *fp16 *fp16" + I, tile(64, 64, 32, act="relu"), W4, [75, 80, 90, 120]),
    ("matmul_bf16", matmul, "*bf16 *bf16 *bf16" + I, tile(128, 64, 32), W4, [80, 89, 100]),
    ("matmul_tf32", matmul, "*fp32 *fp32 *fp32" + I, tile(64, 64, 16), W4, [80, 90]),
    ("matmul_i8", matmul, "*i8 *i8 *i32" + I, tile(64, 64, 64, tl.int32), W4, [80, 90]),
    ("matmul_f8", matmul, "*fp8e4nv *fp8e4nv *fp16" + I, tile(64, 64, 64), W4, [89, 90]),
    ("matmul_f8e5", matmul, "*fp8e5 *fp8e5 *bf16" + I, tile(64, 64, 64), W4, [80, 90]),
    ("matmul_f64", matmul, "*fp64 *fp64 *fp64" + I, tile(32, 32, 16, tl.float64), W4, [80]),
    ("matmul_small", matmul, "*fp16 *fp16 *fp32" + I, tile(16, 16, 16), {"num_warps": 1, "num_stages": 2}, [75, 86]),
    ("matmul_f16_4stage", matmul, "*fp16 *fp16 *fp16" + I, tile(128, 128, 64), {"num_warps": 8, "num_stages": 4}, [80]),
    ("matmul_split_k", matmul_split_k, "*fp32 *fp32 *fp32 i32 i32 i32", {"BM": 32, "BN": 32, "BK": 16, "SPLIT": 4}, {}, [75, 80]),
    ("grouped_gemm", grouped_gemm, "*i64 *i64 *i64 *i32 i32!", {"SMS": 84, "BM": 64, "BN": 64, "BK": 32}, W4, [80, 90]),
    ("matmul_descriptor", matmul_descriptor, "*fp16 *fp16 *fp16 i32 i32 i32", {"BM": 64, "BN": 64, "BK": 64}, W4, [80, 90, 100]),
]
