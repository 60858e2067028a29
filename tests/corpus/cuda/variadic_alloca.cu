// Variadic device functions, alloca, unreachable and noreturn paths, unroll pragmas, assume.
#include <cstdarg>
#include <cstddef>
__device__ __noinline__ double sum_of(int n, ...) {
    va_list ap;
    va_start(ap, n);
    double s = 0;
    for (int i = 0; i < n; ++i) {
        if (i % 3 == 0) s += va_arg(ap, int);
        else if (i % 3 == 1) s += va_arg(ap, double);
        else s += (double)va_arg(ap, long long);
    }
    va_end(ap);
    return s;
}
extern "C" __global__ void variadic(double *out) {
    int t = threadIdx.x;
    out[t] = sum_of(3, t, 0.5 * t, (long long)t << 33) + sum_of(1, 7) + sum_of(4, 1, 2.0, 3ll, 4);
}
extern "C" __global__ void stack_alloc(const int *sizes, int *out) {
    int n = sizes[threadIdx.x] & 63;
    int *v = (int *)__builtin_alloca((n + 1) * sizeof(int));
    v[0] = 1;
    for (int i = 1; i <= n; ++i) v[i] = (v[i - 1] * 5 + i) % 1009;
    int s = 0;
    for (int i = n; i >= 0; --i) s = s * 3 + v[i];
    out[threadIdx.x] = s;
}
[[noreturn]] __device__ __noinline__ void die() { __trap(); }
extern "C" __global__ void no_return(const int *x, int *out, int n) {
    int t = threadIdx.x;
    if (x[t] < 0) die();
    switch (x[t] & 3) {
        case 0: out[t] = 1; break;
        case 1: out[t] = 5; break;
        case 2: out[t] = 9; break;
        case 3: out[t] = -2; break;
        default: __builtin_unreachable();
    }
    __builtin_assume(n > 0);
    int s = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) s += x[i];
#pragma unroll 3
    for (int i = 0; i < n; ++i) s ^= x[i] * i;
    if (__builtin_expect(s == 0, 0)) return;
    out[t] += s;
    if (t == 63) asm volatile("exit;");
}
