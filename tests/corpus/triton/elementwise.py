"""Vector add, GELU, SwiGLU, clamp / where chains, casts, integer arithmetic."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def swiglu(g_ptr, u_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    g = tl.load(g_ptr + offs, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
    u = tl.load(u_ptr + offs, mask=mask, other=0.0, cache_modifier=".cg").to(tl.float32)
    tl.store(out_ptr + offs, (g * tl.sigmoid(g) * u).to(tl.bfloat16), mask=mask, cache_modifier=".cs")


@triton.jit
def math_mix(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1.0)
    y = tl.exp(x) + tl.log(tl.abs(x) + 1.0) + tl.sin(x) * tl.cos(x) + tl.sqrt_rn(tl.abs(x)) + tl.rsqrt(tl.abs(x) + 1.0) + tl.exp2(x) + tl.log2(tl.abs(x) + 2.0)
    y += tl.floor(x) - tl.ceil(x) + tl.div_rn(x, 3.0) + tl.fma(x, x, y) + libdevice.tanh(x) + libdevice.pow(tl.abs(x), 1.5)
    tl.store(out_ptr + offs, tl.where(y > 100.0, 100.0, tl.maximum(y, -100.0, propagate_nan=tl.PropagateNan.ALL)), mask=mask)


@triton.jit
def int_mix(a_ptr, b_ptr, out_ptr, wide_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(a_ptr + offs, mask=mask, other=1)
    b = tl.load(b_ptr + offs, mask=mask, other=1)
    d = tl.where(b == 0, 1, b)
    r = (a // d) ^ (a % d) + tl.cdiv(a, 16) - (a << 3) + (a >> 2) + tl.umulhi(a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)).to(tl.int32)
    tl.store(out_ptr + offs, tl.minimum(r, ~a | b), mask=mask)
    tl.store(wide_ptr + offs, a.to(tl.int64) * b + (a.to(tl.int8).to(tl.int64) // d.to(tl.int64)), mask=mask)


@triton.jit
def casts(x_ptr, h_ptr, b_ptr, f8_ptr, d_ptr, i_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(h_ptr + offs, x.to(tl.float16, fp_downcast_rounding="rtz"), mask=mask)
    tl.store(b_ptr + offs, x.to(tl.bfloat16), mask=mask)
    tl.store(f8_ptr + offs, x.to(tl.float8e5), mask=mask)
    tl.store(d_ptr + offs, x.to(tl.float64) * 1.5, mask=mask)
    tl.store(i_ptr + offs, x.to(tl.int32).to(tl.int8), mask=mask)


B = {"BLOCK": 1024}
KERNELS = [
    ("vector_add", vector_add, "*fp32 *fp32 *fp32 i32", B, {}, [75, 80, 89, 90, 100, 120]),
    ("vector_add-masked", vector_add, "*fp16! *fp16! *fp16! i32!", B, {}, [80]),
    ("gelu", gelu, "*bf16 *bf16 i32", B, {}, [80, 90]),
    ("swiglu", swiglu, "*bf16 *bf16 *bf16 i32", B, {}, [80, 90]),
    ("math_mix", math_mix, "*fp32 *fp32 i32", {"BLOCK": 256}, {}, [75, 90]),
    ("int_mix", int_mix, "*i32 *i32 *i32 *i64 i32!", {"BLOCK": 256}, {}, [80]),
    ("casts", casts, "*fp32 *fp16 *bf16 *fp8e5 *fp64 *i8 i32", {"BLOCK": 512}, {}, [80, 89]),
]
