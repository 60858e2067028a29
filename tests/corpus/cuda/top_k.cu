// Top-k by repeated argmax in a block; argmax over rows.
extern "C" __global__ void argmax_rows(const float* x, int* idx, float* val, int cols) {
    __shared__ float sv[32];
    __shared__ int si[32];
    x += (size_t)blockIdx.x * cols;
    float best = -INFINITY;
    int at = -1;
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        if (x[i] > best || at < 0) { best = x[i]; at = i; }
    for (int d = 16; d; d >>= 1) {
        float ov = __shfl_down_sync(~0u, best, d);
        int oi = __shfl_down_sync(~0u, at, d);
        if (oi >= 0 && (at < 0 || ov > best || (ov == best && oi < at))) { best = ov; at = oi; }
    }
    if ((threadIdx.x & 31) == 0) { sv[threadIdx.x >> 5] = best; si[threadIdx.x >> 5] = at; }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / 32; ++w)
            if (si[w] >= 0 && (sv[w] > best || (sv[w] == best && si[w] < at))) { best = sv[w]; at = si[w]; }
        idx[blockIdx.x] = at;
        val[blockIdx.x] = best;
    }
}
template <int K>
__device__ void insert(float (&v)[K], int (&ix)[K], float x, int i) {
    if (x <= v[K - 1]) return;
    v[K - 1] = x;
    ix[K - 1] = i;
#pragma unroll
    for (int k = K - 1; k > 0; --k)
        if (v[k] > v[k - 1]) { float t = v[k]; v[k] = v[k - 1]; v[k - 1] = t; int s = ix[k]; ix[k] = ix[k - 1]; ix[k - 1] = s; }
}
extern "C" __global__ void top_k(const float* x, int* idx, float* val, int cols) {
    constexpr int K = 4;
    __shared__ float sv[64 * K];
    __shared__ int si[64 * K];
    x += (size_t)blockIdx.x * cols;
    float v[K];
    int ix[K];
    for (int k = 0; k < K; ++k) { v[k] = -INFINITY; ix[k] = -1; }
    for (int i = threadIdx.x; i < cols; i += 64) insert(v, ix, x[i], i);
    for (int k = 0; k < K; ++k) { sv[threadIdx.x * K + k] = v[k]; si[threadIdx.x * K + k] = ix[k]; }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int e = K; e < 64 * K; ++e) insert(v, ix, sv[e], si[e]);
        for (int k = 0; k < K; ++k) { idx[blockIdx.x * K + k] = ix[k]; val[blockIdx.x * K + k] = v[k]; }
    }
}
