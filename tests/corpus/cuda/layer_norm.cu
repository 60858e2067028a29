// Layer norm (Welford) and RMS norm, f32 and half.
#include <cuda_fp16.h>
struct Moments { float mean, m2, n; };
__device__ __forceinline__ Moments join(Moments a, Moments b) {
    float n = a.n + b.n;
    if (n == 0.f) return a;
    float d = b.mean - a.mean, f = b.n / n;
    return {a.mean + d * f, a.m2 + b.m2 + d * d * a.n * f, n};
}
extern "C" __global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* y, int cols, float eps) {
    __shared__ Moments part[32];
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;
    Moments m = {0.f, 0.f, 0.f};
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        m.n += 1.f;
        float d = x[i] - m.mean;
        m.mean += d / m.n;
        m.m2 += d * (x[i] - m.mean);
    }
    for (int d = 16; d; d >>= 1) {
        Moments o = {__shfl_down_sync(~0u, m.mean, d), __shfl_down_sync(~0u, m.m2, d), __shfl_down_sync(~0u, m.n, d)};
        m = join(m, o);
    }
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = m;
    __syncthreads();
    m = part[0];
    for (unsigned w = 1; w < blockDim.x / 32; ++w) m = join(m, part[w]);
    float inv = rsqrtf(m.m2 / m.n + eps);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = (x[i] - m.mean) * inv * gamma[i] + beta[i];
}
extern "C" __global__ void rms_norm_half(const half2* x, const half2* w, half2* y, int cols2, float eps) {
    __shared__ float part[32];
    x += (size_t)blockIdx.x * cols2;
    y += (size_t)blockIdx.x * cols2;
    float s = 0.f;
    for (int i = threadIdx.x; i < cols2; i += blockDim.x) {
        float2 v = __half22float2(x[i]);
        s += v.x * v.x + v.y * v.y;
    }
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
    __syncthreads();
    s = 0.f;
    for (unsigned k = 0; k < blockDim.x / 32; ++k) s += part[k];
    half2 r = __float2half2_rn(rsqrtf(s / (2 * cols2) + eps));
    for (int i = threadIdx.x; i < cols2; i += blockDim.x) y[i] = __hmul2(__hmul2(x[i], r), w[i]);
}
