"""Our own Numba kernels, with the signatures they are compiled for."""
import math

import numba
from numba import cuda, types as T

f4 = T.Array(T.float32, 1, "C")
f8 = T.Array(T.float64, 1, "C")
f4x2 = T.Array(T.float32, 2, "C")
f8x2a = T.Array(T.float64, 2, "A")
i4 = T.Array(T.int32, 1, "C")
i8 = T.Array(T.int64, 1, "C")
u1 = T.Array(T.uint8, 1, "C")
c8 = T.Array(T.complex128, 1, "C")


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def reduce_sum(x, out):
    s = cuda.shared.array(128, T.float32)
    t = cuda.threadIdx.x
    acc = T.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        acc += x[i]
    s[t] = acc
    cuda.syncthreads()
    w = 64
    while w > 0:
        if t < w:
            s[t] += s[t + w]
        cuda.syncthreads()
        w //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


def matmul(a, b, c):
    sa = cuda.shared.array((16, 16), T.float32)
    sb = cuda.shared.array((16, 16), T.float32)
    r, q = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    acc = T.float32(0)
    for k in range(0, a.shape[1], 16):
        sa[tx, ty] = a[r, k + ty] if r < a.shape[0] and k + ty < a.shape[1] else 0
        sb[tx, ty] = b[k + tx, q] if q < b.shape[1] and k + tx < b.shape[0] else 0
        cuda.syncthreads()
        for j in range(16):
            acc += sa[tx, j] * sb[j, ty]
        cuda.syncthreads()
    if r < c.shape[0] and q < c.shape[1]:
        c[r, q] = acc


def laplace(u, v):
    i, j = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def math_mix(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        y[i] = math.sin(v) * math.exp(-v * v) + math.sqrt(abs(v)) + math.erf(v) + math.floor(v) + math.pow(abs(v), 0.75) + math.atan2(v, 2.0)


def mandelbrot(out, w, h, limit):
    i = cuda.grid(1)
    if i < w * h:
        c = complex(-2.0 + 3.0 * (i % w) / w, -1.5 + 3.0 * (i // w) / h)
        z = 0j
        k = 0
        while k < limit and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c
            k += 1
        out[i] = k


def integers(a, b, o):
    i = cuda.grid(1)
    if i < a.size:
        x = a[i]
        y = b[i]
        if y != 0:
            o[i] = x // y + x % y + (x << 3) ^ (y >> 2)
        else:
            o[i] = cuda.popc(x) + cuda.clz(x) + cuda.brev(x)


def warp_scan(x, o):
    i = cuda.grid(1)
    v = x[i]
    lane = cuda.laneid
    d = 1
    while d < 32:
        u = cuda.shfl_up_sync(0xFFFFFFFF, v, d)
        if lane >= d:
            v += u
        d *= 2
    o[i] = v + cuda.ballot_sync(0xFFFFFFFF, v > 0)


def histogram(x, bins):
    i = cuda.grid(1)
    local = cuda.local.array(8, T.int32)
    for k in range(8):
        local[k] = 0
    for j in range(i, x.size, cuda.gridsize(1)):
        local[x[j] & 7] += 1
    for k in range(8):
        cuda.atomic.add(bins, k, local[k])
    cuda.atomic.max(bins, 8, i)
    cuda.atomic.compare_and_swap(bins[9:], 0, 1)


def complex_scale(z, s):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = z[i] * s / (1 + abs(z[i]))


def print_errors(x):
    i = cuda.grid(1)
    if i < x.size and x[i] < 0:
        print("negative", i, x[i])


# name, function, argument types, compute capabilities, options
KERNELS = [
    ("saxpy", saxpy, (T.float32, f4, f4), [52, 75, 80, 90], {}),
    ("saxpy-lineinfo", saxpy, (T.float32, f4, f4), [80], {"lineinfo": True}),
    ("saxpy-debug", saxpy, (T.float32, f4, f4), [75], {"debug": True, "opt": False}),
    ("reduce_sum", reduce_sum, (f4, f4), [60, 75, 80], {}),
    ("matmul", matmul, (f4x2, f4x2, f4x2), [80, 89], {}),
    ("laplace", laplace, (f8x2a, f8x2a), [80], {}),
    ("math_mix", math_mix, (f8, f8), [75], {}),
    ("math_mix-fast", math_mix, (f4, f4), [86], {"fastmath": True}),
    ("mandelbrot", mandelbrot, (i4, T.int32, T.int32, T.int32), [80], {}),
    ("integers", integers, (i8, i8, i8), [75, 90], {}),
    ("warp_scan", warp_scan, (i4, i4), [80], {}),
    ("histogram", histogram, (u1, i4), [80], {}),
    ("complex_scale", complex_scale, (c8, T.float64), [75], {}),
    ("print_errors", print_errors, (f4,), [80], {}),
]
