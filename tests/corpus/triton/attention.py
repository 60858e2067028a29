"""Flash attention forward (causal and full), decode attention with a KV cache, rotary embedding."""
import triton
import triton.language as tl


@triton.jit
def flash_attention(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    m0 = tl.program_id(0) * BM
    base = tl.program_id(1).to(tl.int64) * T * D
    rm = m0 + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :], mask=rm[:, None] < T, other=0.0)
    mx = tl.full([BM], -float("inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    hi = min(m0 + BM, T) if CAUSAL else T
    for n0 in range(0, hi, BN):
        n = n0 + rn
        k = tl.load(k_ptr + base + n[None, :] * D + rd[:, None], mask=n[None, :] < T, other=0.0)
        s = tl.dot(q, k) * (scale * 1.44269504)
        ok = n[None, :] < T
        if CAUSAL:
            ok = ok & (rm[:, None] >= n[None, :])
        s = tl.where(ok, s, -1.0e30)
        nm = tl.maximum(mx, tl.max(s, axis=1))
        p = tl.exp2(s - nm[:, None])
        a = tl.exp2(mx - nm)
        l = l * a + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + n[:, None] * D + rd[None, :], mask=n[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        mx = nm
    tl.store(lse_ptr + tl.program_id(1) * T + rm, mx + tl.log2(l), mask=rm < T)
    tl.store(o_ptr + base + rm[:, None] * D + rd[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=rm[:, None] < T)


@triton.jit
def decode_attention(q_ptr, k_ptr, v_ptr, o_ptr, len_ptr, scale, max_len, D: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(0)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + h * D + rd).to(tl.float32) * scale
    n = tl.load(len_ptr)
    mx = -float("inf")
    l = 0.0
    acc = tl.zeros([D], tl.float32)
    for n0 in range(0, n, BN):
        rn = n0 + tl.arange(0, BN)
        p = (h * max_len + rn)[:, None] * D + rd[None, :]
        k = tl.load(k_ptr + p, mask=rn[:, None] < n, other=0.0).to(tl.float32)
        s = tl.where(rn < n, tl.sum(k * q[None, :], axis=1), -float("inf"))
        nm = tl.maximum(mx, tl.max(s, axis=0))
        w = tl.exp(s - nm)
        a = tl.exp(mx - nm)
        v = tl.load(v_ptr + p, mask=rn[:, None] < n, other=0.0).to(tl.float32)
        acc = acc * a + tl.sum(w[:, None] * v, axis=0)
        l = l * a + tl.sum(w, axis=0)
        mx = nm
    tl.store(o_ptr + h * D + rd, (acc / l).to(tl.float16))


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, heads, HALF: tl.constexpr):
    t = tl.program_id(0)
    h = tl.program_id(1)
    i = tl.arange(0, HALF)
    c = tl.load(cos_ptr + t * HALF + i)
    s = tl.load(sin_ptr + t * HALF + i)
    p = x_ptr + (t * heads + h) * 2 * HALF + i
    a = tl.load(p).to(tl.float32)
    b = tl.load(p + HALF).to(tl.float32)
    tl.store(p, (a * c - b * s).to(tl.bfloat16))
    tl.store(p + HALF, (b * c + a * s).to(tl.bfloat16))


QKV = "*{0} *{0} *{0} *{0} *fp32 fp32 i32!"
KERNELS = [
    ("flash_attention", flash_attention, QKV.format("fp16"), {"D": 64, "BM": 64, "BN": 64, "CAUSAL": False}, {}, [80, 90, 120]),
    ("flash_attention_causal", flash_attention, QKV.format("bf16"), {"D": 32, "BM": 64, "BN": 32, "CAUSAL": True}, {"num_stages": 2}, [80, 89, 90]),
    ("flash_attention_f32", flash_attention, QKV.format("fp32"), {"D": 16, "BM": 32, "BN": 32, "CAUSAL": True}, {}, [75]),
    ("decode_attention", decode_attention, "*fp16 *fp16 *fp16 *fp16 *i32 fp32 i32", {"D": 64, "BN": 32}, {}, [80, 90]),
    ("rope", rope, "*bf16 *fp32 *fp32 i32", {"HALF": 64}, {"num_warps": 1}, [80]),
]
