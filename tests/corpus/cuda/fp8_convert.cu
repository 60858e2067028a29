// Conversions between f32 / f16 / bf16 and fp8, and a scaled fp8 dequantisation.
#include <cuda_fp8.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void quant_fp8(const float4* in, __nv_fp8x4_e4m3* out, float inv_scale, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = in[i];
    v.x *= inv_scale; v.y *= inv_scale; v.z *= inv_scale; v.w *= inv_scale;
    out[i] = __nv_fp8x4_e4m3(v);
}
extern "C" __global__ void dequant_fp8(const __nv_fp8x2_e5m2* in, float2* out, float scale, int n2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n2) return;
    float2 v = (float2)in[i];
    out[i] = make_float2(v.x * scale, v.y * scale);
}
extern "C" __global__ void half_fp8(const __half2* in, __nv_fp8x2_e4m3* e4, __nv_fp8x2_e5m2* e5, __half2* back, int n2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n2) return;
    e4[i] = __nv_fp8x2_e4m3(in[i]);
    e5[i] = __nv_fp8x2_e5m2(in[i]);
    back[i] = __hadd2((__half2)e4[i], (__half2)e5[i]);
}
extern "C" __global__ void fp8_scalar(const double* d, const __nv_bfloat16* b, __nv_fp8_e4m3* o, float* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[2 * i] = __nv_fp8_e4m3(d[i]);
    o[2 * i + 1] = __nv_fp8_e4m3(b[i]);
    f[i] = (float)o[2 * i] - (float)o[2 * i + 1];
}
