"""Dropout with Philox, convolution, transpose, inline asm, print and assert, special registers, block pointers."""
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid


@triton.jit
def dropout(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(tl.rand(seed, i) > p, x / (1 - p), 0.0), mask=i < n)


@triton.jit
def random_fill(u_ptr, g_ptr, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(u_ptr + i, a ^ b ^ c ^ d)
    tl.store(g_ptr + i, tl.randn(seed, i))


@triton.jit
def conv3x3(x_ptr, w_ptr, y_ptr, C, H, W, K, BP: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    py = p // W
    px = p % W
    acc = tl.zeros((BP, BK), tl.float32)
    for t in range(9):
        y = py + t // 3 - 1
        x = px + t % 3 - 1
        inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
        for c0 in range(0, C, BC):
            c = c0 + tl.arange(0, BC)
            a = tl.load(x_ptr + (y * W + x)[:, None] * C + c[None, :], mask=inside[:, None] & (c[None, :] < C), other=0.0)
            w = tl.load(w_ptr + (t * C + c)[:, None] * K + k[None, :], mask=(c[:, None] < C) & (k[None, :] < K), other=0.0)
            acc = tl.dot(a, w, acc)
    tl.store(y_ptr + p[:, None] * K + k[None, :], acc.to(tl.float16), mask=(p[:, None] < H * W) & (k[None, :] < K))


@triton.jit
def transpose(x_ptr, y_ptr, rows, cols, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(y_ptr + c[:, None] * rows + r[None, :], tl.trans(x), mask=(c[:, None] < cols) & (r[None, :] < rows))


@triton.jit
def inline_asm(a_ptr, b_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    y = tl.inline_asm_elementwise("{ .reg .b32 t; lop3.b32 t, $1, $2, 255, 0x6a; shf.l.wrap.b32 $0, t, t, 7; }", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1)
    z = tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, 0x5140;", "=r,r,r", [a.to(tl.int8), b.to(tl.int8)], dtype=tl.int8, is_pure=True, pack=4)
    tl.store(y_ptr + i, y + z.to(tl.int32))


@triton.jit
def print_assert(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.device_print("x =", x)
    tl.device_assert(x >= 0.0, "negative input")
    tl.store(x_ptr + i, tl.sqrt(x), mask=i < n)


@triton.jit
def timers(o_ptr):
    tl.store(o_ptr + 2 * tl.program_id(0), globaltimer())
    tl.store(o_ptr + 2 * tl.program_id(0) + 1, smid().to(tl.int64) + tl.program_id(1) + tl.num_programs(2))


@triton.jit
def conv1d_causal(x_ptr, w_ptr, y_ptr, T, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for k in tl.static_range(TAPS):
        s = t - k
        acc += tl.load(w_ptr + k) * tl.load(x_ptr + s, mask=(s >= 0) & (s < T), other=0.0)
    tl.store(y_ptr + t, acc, mask=t < T)


@triton.jit
def adam(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, b1, b2, eps, c1, c2, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    g = tl.load(g_ptr + i, mask=k, other=0.0).to(tl.float32)
    m = b1 * tl.load(m_ptr + i, mask=k) + (1 - b1) * g
    v = b2 * tl.load(v_ptr + i, mask=k) + (1 - b2) * g * g
    tl.store(m_ptr + i, m, mask=k)
    tl.store(v_ptr + i, v, mask=k)
    p = tl.load(p_ptr + i, mask=k)
    tl.store(p_ptr + i, p - lr * (m * c1) / (tl.sqrt(v * c2) + eps), mask=k)


@triton.jit
def copy_2d_descriptor(x_ptr, y_ptr, rows, cols, R: tl.constexpr, C: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, cols], strides=[cols, 1], block_shape=[R, C])
    y = tl.make_tensor_descriptor(y_ptr, shape=[rows, cols], strides=[cols, 1], block_shape=[R, C])
    at = [tl.program_id(0) * R, tl.program_id(1) * C]
    y.store(at, x.load(at) * 2)


KERNELS = [
    ("dropout", dropout, "*fp32 *fp32 i32 fp32 i32!", {"BLOCK": 256}, {}, [75, 80]),
    ("random_fill", random_fill, "*i32 *fp32 i64!", {"BLOCK": 128}, {}, [80]),
    ("conv3x3", conv3x3, "*fp16 *fp16 *fp16 i32 i32! i32! i32", {"BP": 64, "BK": 32, "BC": 16}, {}, [75, 80]),
    ("transpose", transpose, "*fp32 *fp32 i32 i32", {"B": 32}, {}, [80, 90]),
    ("inline_asm", inline_asm, "*i32 *i32 *i32", {"BLOCK": 512}, {}, [80]),
    ("print_assert", print_assert, "*fp32 i32!", {"BLOCK": 128}, {"debug": True}, [80, 90]),
    ("timers", timers, "*i64", {}, {"num_warps": 1}, [75, 90]),
    ("conv1d_causal", conv1d_causal, "*fp32 *fp32 *fp32 i32!", {"TAPS": 4, "BLOCK": 256}, {}, [75, 89]),
    ("adam", adam, "*fp32 *bf16 *fp32 *fp32 i32 fp32 fp32 fp32 fp32 fp32 fp32", {"BLOCK": 512}, {}, [80]),
    ("copy_2d_descriptor", copy_2d_descriptor, "*fp32 *fp32 i32 i32", {"R": 32, "C": 32}, {}, [90, 120]),
]
