// Block-quantised (32 weights of 4 bits, one half scale) matrix times int8-quantised vector with dp4a.
#include <cuda_fp16.h>
struct Block4 { half scale; unsigned char q[16]; };
struct Block8 { half scale; signed char q[32]; };
__device__ __forceinline__ int unaligned4(const void* p) {
    const unsigned short* h = (const unsigned short*)p;
    return h[0] | (h[1] << 16);
}
extern "C" __global__ void dequant_gemv(const Block4* W, const Block8* x, float* y, int rows, int blocks) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float acc = 0.f;
    for (int b = threadIdx.x; b < blocks; b += 32) {
        const Block4& w = W[(size_t)row * blocks + b];
        const Block8& v = x[b];
        int dot = 0, sum = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int packed = unaligned4(w.q + 4 * j), lo = packed & 0x0f0f0f0f, hi = (packed >> 4) & 0x0f0f0f0f;
            int a = unaligned4(v.q + 4 * j), c = unaligned4(v.q + 16 + 4 * j);
            dot = __dp4a(lo, a, dot);
            dot = __dp4a(hi, c, dot);
            sum = __dp4a(0x01010101, a, sum);
            sum = __dp4a(0x01010101, c, sum);
        }
        acc += __half2float(w.scale) * __half2float(v.scale) * (dot - 8 * sum);
    }
    for (int d = 16; d; d >>= 1) acc += __shfl_xor_sync(~0u, acc, d);
    if (threadIdx.x == 0) y[row] = acc;
}
extern "C" __global__ void dot_mixed(const int* a, const unsigned* b, int* out, unsigned* uout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    short2 s = make_short2((short)a[i], (short)(a[i] >> 16));
    out[i] = __dp4a(a[i], (int)b[i], i) + __dp2a_lo(s, make_char4(1, 2, 3, 4), 5);
    uout[i] = __dp4a((unsigned)a[i], b[i], 7u) + __dp2a_hi((unsigned)a[i], b[i], 0u);
}
