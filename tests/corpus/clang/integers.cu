#include "cuda_min.h"
extern "C" __global__ void wide(const __int128 *a, const __int128 *b, __int128 *o, int n) {
    int i = global_id();
    if (i >= n) return;
    o[4 * i] = a[i] * b[i];
    o[4 * i + 1] = a[i] + b[i];
    o[4 * i + 2] = a[i] >> ((int)b[i] & 127);
    o[4 * i + 3] = a[i] < b[i] ? a[i] : b[i];
}
extern "C" __global__ void bits(const u32 *a, const u64 *b, u64 *o, int n) {
    int i = global_id();
    if (i >= n) return;
    u32 x = a[i];
    u64 y = b[i];
    o[8 * i] = __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ctz(x | 2);
    o[8 * i + 1] = __builtin_bitreverse32(x) + __builtin_bswap32(x);
    o[8 * i + 2] = __builtin_rotateleft32(x, 5) ^ __builtin_rotateright32(x, i);
    o[8 * i + 3] = __builtin_popcountll(y) + __builtin_clzll(y | 1);
    o[8 * i + 4] = __builtin_rotateleft64(y, 17) + __builtin_bswap64(y);
    o[8 * i + 5] = y / (x | 1) + y % (x | 1);
    o[8 * i + 6] = (signed char)x * (short)y + (unsigned short)(y >> 7);
    u32 s;
    o[8 * i + 7] = __builtin_add_overflow(x, (u32)y, &s) + s;
}
extern "C" __global__ void atomics(int *p, u64 *q, float *f, double *d) {
    __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_max(p + 1, (int)tid_x(), __ATOMIC_ACQ_REL);
    __atomic_fetch_xor(q, 5ull, __ATOMIC_RELAXED);
    u64 e = 0;
    __atomic_compare_exchange_n(q + 1, &e, 7ull, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    q[2] = __atomic_exchange_n(q + 3, e, __ATOMIC_RELEASE);
    __nvvm_membar_gl();
    *(volatile float *)f = *(volatile float *)(f + 1);
    d[tid_x()] = __builtin_sqrt(d[tid_x()]) + __builtin_floor(d[1]) + __builtin_fabs(d[2]) + __builtin_rint(d[3]) + __builtin_trunc(d[4]);
    f[tid_x()] = __builtin_ceilf(f[2]) / f[3] + __builtin_copysignf(f[4], f[5]) + __builtin_fminf(f[6], f[7]) + (float)(int)f[8] + (float)q[4];
}
