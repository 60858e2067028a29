// bfloat16 scalar and pair intrinsics; SwiGLU activation.
#include <cuda_bf16.h>
typedef __nv_bfloat16 bf16;
typedef __nv_bfloat162 bf162;
extern "C" __global__ void bf162_ops(const bf162* a, const bf162* b, bf162* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bf162 x = a[i], y = b[i];
    bf162* o = out + i * 12;
    o[0] = __hadd2(x, y); o[1] = __hsub2(x, y); o[2] = __hmul2(x, y); o[3] = __hfma2(x, y, y); o[4] = __hmin2(x, y);
    o[6] = __habs2(x); o[7] = __hneg2(y);
#if __CUDA_ARCH__ >= 800
    o[5] = __hmax2_nan(x, y); o[8] = __hfma2_relu(x, y, x);
#endif
    o[9] = __floats2bfloat162_rn(1.5f * i, 2.f); o[10] = __hgt2(x, y); o[11] = h2exp(x);
}
extern "C" __global__ void swiglu(const bf162* gate, const bf162* up, bf162* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 g = __bfloat1622float2(gate[i]), u = __bfloat1622float2(up[i]);
    out[i] = __floats2bfloat162_rn(g.x / (1.f + __expf(-g.x)) * u.x, g.y / (1.f + __expf(-g.y)) * u.y);
}
extern "C" __global__ void bf16_funcs(const bf16* a, bf16* out, float* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bf16 x = a[i];
    out[8 * i] = hexp(x); out[8 * i + 1] = hlog2(x); out[8 * i + 2] = hrsqrt(x); out[8 * i + 3] = htanh(x); out[8 * i + 4] = hceil(x);
    out[8 * i + 5] = __float2bfloat16_rz(f[i]); out[8 * i + 6] = __hfma(x, x, x); out[8 * i + 7] = __int2bfloat16_rn(i);
    f[i] = __bfloat162float(x);
}
