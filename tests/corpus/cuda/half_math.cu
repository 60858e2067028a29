// half and half2 intrinsics: arithmetic, comparisons, conversions, transcendental functions.
#include <cuda_fp16.h>
extern "C" __global__ void half2_ops(const half2* a, const half2* b, half2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half2 x = a[i], y = b[i];
    half2* o = out + i * 16;
    o[0] = __hadd2(x, y); o[1] = __hsub2(x, y); o[2] = __hmul2(x, y); o[3] = __h2div(x, y);
    o[4] = __hfma2(x, y, x); o[5] = __hadd2_sat(x, y); o[6] = __hfma2_sat(x, y, y); o[7] = __habs2(__hneg2(x));
    o[8] = __hmin2(x, y); o[9] = __hmax2(x, y); o[10] = __heq2(x, y); o[11] = __hltu2(x, y);
    o[12] = __lowhigh2highlow(x); o[13] = __halves2half2(__low2half(x), __high2half(y)); o[14] = __hisnan2(x); o[15] = h2rint(x);
}
extern "C" __global__ void half_funcs(const half* a, half* out, int* ints, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half x = a[i];
    half* o = out + i * 16;
    o[0] = hexp(x); o[1] = hlog(x); o[2] = hsqrt(x); o[3] = hrsqrt(x); o[4] = hsin(x); o[5] = hcos(x); o[6] = hexp2(x); o[7] = hlog2(x);
    o[8] = hceil(x); o[9] = hfloor(x); o[10] = htrunc(x); o[11] = hrcp(x); o[12] = hexp10(x); o[13] = __hmul_rn(x, x); o[14] = __hadd_rn(x, x); o[15] = -x;
    ints[4 * i] = __half2int_rn(x); ints[4 * i + 1] = __half2uint_rz(x); ints[4 * i + 2] = __half2short_ru(x); ints[4 * i + 3] = (x > __float2half(1.f)) + 2 * __hisinf(x);
}
extern "C" __global__ void half_casts(const float* f, const double* d, const long long* l, half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half* o = out + i * 8;
    o[0] = __float2half_rn(f[i]); o[1] = __float2half_rz(f[i]); o[2] = __float2half_ru(f[i]); o[3] = __float2half_rd(f[i]);
    o[4] = __double2half(d[i]); o[5] = __ll2half_rn(l[i]); o[6] = __ushort_as_half(0x3c00); o[7] = __int2half_rz((int)l[i]);
}
