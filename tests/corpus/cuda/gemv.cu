// y = A x: one warp a row, vector loads through the read-only path; half weights too.
#include <cuda_fp16.h>
extern "C" __global__ void gemv_f32(const float4* __restrict__ A, const float4* __restrict__ x, float* __restrict__ y, int rows, int cols4) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float acc = 0.f;
    for (int i = lane; i < cols4; i += 32) {
        float4 a = __ldg(&A[(size_t)row * cols4 + i]), b = __ldg(&x[i]);
        acc += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int d = 16; d; d >>= 1) acc += __shfl_down_sync(~0u, acc, d);
    if (lane == 0) y[row] = acc;
}
extern "C" __global__ void gemv_half(const uint4* __restrict__ A, const uint4* __restrict__ x, half* __restrict__ y, int rows, int cols8) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    half2 acc = __float2half2_rn(0.f);
    for (int i = threadIdx.x; i < cols8; i += 32) {
        uint4 a = A[(size_t)row * cols8 + i], b = x[i];
        acc = __hfma2(*(half2*)&a.x, *(half2*)&b.x, acc);
        acc = __hfma2(*(half2*)&a.y, *(half2*)&b.y, acc);
        acc = __hfma2(*(half2*)&a.z, *(half2*)&b.z, acc);
        acc = __hfma2(*(half2*)&a.w, *(half2*)&b.w, acc);
    }
    float s = __low2float(acc) + __high2float(acc);
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) y[row] = __float2half_rn(s);
}
