"""Row softmax, layer norm forward and backward, RMS norm, cross entropy."""
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, x_stride, y_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + offs, mask=offs < cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + offs, (e / tl.sum(e, axis=0)).to(y_ptr.dtype.element_ty), mask=offs < cols)


@triton.jit
def softmax_rows(x_ptr, y_ptr, rows, cols, R: tl.constexpr, C: tl.constexpr):
    for r0 in tl.range(tl.program_id(0) * R, rows, tl.num_programs(0) * R, num_stages=3):
        r = r0 + tl.arange(0, R)
        c = tl.arange(0, C)
        mask = (r[:, None] < rows) & (c[None, :] < cols)
        p = r[:, None] * cols + c[None, :]
        x = tl.load(x_ptr + p, mask=mask, other=-float("inf"))
        tl.store(y_ptr + p, tl.softmax(x, dim=1), mask=mask)


@triton.jit
def layer_norm_fwd(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    acc = tl.zeros([BLOCK], tl.float32)
    for off in range(0, cols, BLOCK):
        c = off + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + c, mask=c < cols, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / cols
    var = tl.zeros([BLOCK], tl.float32)
    for off in range(0, cols, BLOCK):
        c = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + c, mask=c < cols, other=0.0).to(tl.float32)
        x = tl.where(c < cols, x - mean, 0.0)
        var += x * x
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, cols, BLOCK):
        c = off + tl.arange(0, BLOCK)
        m = c < cols
        x = tl.load(x_ptr + c, mask=m, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(w_ptr + c, mask=m).to(tl.float32) + tl.load(b_ptr + c, mask=m).to(tl.float32)
        tl.store(y_ptr + c, y.to(tl.float16), mask=m)


@triton.jit
def layer_norm_bwd(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, stride, cols, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < cols
    x = tl.load(x_ptr + row * stride + c, mask=m, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + c, mask=m, other=0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=m, other=0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.where(m, (x - mean) * rstd, 0.0)
    wdy = tl.where(m, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / cols
    c2 = tl.sum(wdy, axis=0) / cols
    tl.store(dx_ptr + row * stride + c, ((wdy - (xhat * c1 + c2)) * rstd).to(tl.float16), mask=m)
    slot = row % GROUP
    while tl.atomic_cas(lock_ptr + slot, 0, 1) == 1:
        pass
    first = tl.load(lock_ptr + GROUP + slot)
    pw = dy * xhat
    pb = dy
    if first == 0:
        tl.atomic_xchg(lock_ptr + GROUP + slot, 1)
    else:
        pw += tl.load(dw_ptr + slot * cols + c, mask=m)
        pb += tl.load(db_ptr + slot * cols + c, mask=m)
    tl.store(dw_ptr + slot * cols + c, pw, mask=m)
    tl.store(db_ptr + slot * cols + c, pb, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + slot, 0)


@triton.jit
def rms_norm(x_ptr, w_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(y_ptr + row * cols + c, (x * r * tl.load(w_ptr + c, mask=c < cols)).to(tl.bfloat16), mask=c < cols)


@triton.jit
def cross_entropy(logits_ptr, target_ptr, loss_ptr, V, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for off in range(0, V, BLOCK):
        c = off + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + c, mask=c < V, other=-float("inf"))
        nm = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - nm) + tl.sum(tl.exp(x - nm), axis=0)
        m = nm
    t = tl.load(target_ptr + row)
    tl.store(loss_ptr + row, tl.log(s) + m - tl.load(logits_ptr + row * stride + t))


KERNELS = [
    ("softmax", softmax, "*fp32 *fp32 i32 i32 i32", {"BLOCK": 1024}, {}, [75, 80, 90]),
    ("softmax-f16", softmax, "*fp16! *fp16! i32! i32! i32!", {"BLOCK": 512}, {"num_warps": 2}, [80]),
    ("softmax_rows", softmax_rows, "*fp32 *fp32 i32 i32", {"R": 4, "C": 128}, {}, [80, 90]),
    ("layer_norm_fwd", layer_norm_fwd, "*fp16 *fp16 *fp16 *fp16 *fp32 *fp32 i32 i32 fp32", {"BLOCK": 1024}, {"num_warps": 8}, [75, 86, 90]),
    ("layer_norm_bwd", layer_norm_bwd, "*fp16 *fp16 *fp32 *fp32 *fp16 *fp16 *fp32 *fp32 *i32 i32 i32", {"GROUP": 64, "BLOCK": 512}, {}, [80, 90]),
    ("rms_norm", rms_norm, "*bf16 *fp32 *bf16 i32 fp32", {"BLOCK": 2048}, {"num_warps": 8}, [80, 120]),
    ("cross_entropy", cross_entropy, "*fp32 *i64 *fp32 i32 i32", {"BLOCK": 1024}, {}, [80]),
]
