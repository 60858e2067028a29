// Cross-entropy loss and gradient, Adam step, embedding lookup, KV-cache append, beam mask.
#include <cuda_fp16.h>
extern "C" __global__ void cross_entropy(const float* logits, const int* target, float* loss, float* grad, int V) {
    __shared__ float red[8];
    const float* x = logits + (size_t)blockIdx.x * V;
    float m = -INFINITY, s = 0.f;
    for (int i = threadIdx.x; i < V; i += 256) m = fmaxf(m, x[i]);
    for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = m;
    __syncthreads();
    for (int k = 0; k < 8; ++k) m = fmaxf(m, red[k]);
    __syncthreads();
    for (int i = threadIdx.x; i < V; i += 256) s += expf(x[i] - m);
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0.f;
    for (int k = 0; k < 8; ++k) s += red[k];
    int t = target[blockIdx.x];
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(s) + m - x[t];
    for (int i = threadIdx.x; i < V; i += 256) grad[(size_t)blockIdx.x * V + i] = expf(x[i] - m) / s - (i == t ? 1.f : 0.f);
}
extern "C" __global__ void adam(float* p, const half* g, float* m, float* v, half* p16, float lr, float b1, float b2, float eps, float wd, int step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float gr = __half2float(g[i]), mi = m[i] = b1 * m[i] + (1 - b1) * gr, vi = v[i] = b2 * v[i] + (1 - b2) * gr * gr;
    float mh = mi / (1 - powf(b1, (float)step)), vh = vi / (1 - powf(b2, (float)step));
    p[i] -= lr * (mh / (sqrtf(vh) + eps) + wd * p[i]);
    p16[i] = __float2half(p[i]);
}
extern "C" __global__ void embed(const int* ids, const uint4* table, uint4* out, int dim8, int vocab) {
    int id = ids[blockIdx.x];
    for (int i = threadIdx.x; i < dim8; i += blockDim.x) out[(size_t)blockIdx.x * dim8 + i] = (unsigned)id < (unsigned)vocab ? table[(size_t)id * dim8 + i] : make_uint4(0, 0, 0, 0);
}
extern "C" __global__ void kv_append(const half* k, const half* v, half* const* kpages, half* const* vpages, const int* slot, int page, int dim) {
    int s = slot[blockIdx.x];
    if (s < 0) return;
    size_t at = (size_t)(s % page) * dim;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) { kpages[s / page][at + i] = k[blockIdx.x * dim + i]; vpages[s / page][at + i] = v[blockIdx.x * dim + i]; }
}
