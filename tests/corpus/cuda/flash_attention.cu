// Attention with online softmax. One thread a query; K and V tiles in shared memory.
template <int D, int BK>
__device__ void attend(const float* Q, const float* K, const float* V, float* O, int n, float scale, bool causal) {
    __shared__ float k[BK][D], v[BK][D];
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    size_t head = (size_t)blockIdx.y * n * D;
    float qr[D], acc[D], m = -INFINITY, l = 0.f;
#pragma unroll
    for (int d = 0; d < D; ++d) { qr[d] = q < n ? Q[head + (size_t)q * D + d] * scale : 0.f; acc[d] = 0.f; }
    for (int k0 = 0; k0 < n; k0 += BK) {
        for (int e = threadIdx.x; e < BK * D; e += blockDim.x) {
            bool in = k0 + e / D < n;
            k[e / D][e % D] = in ? K[head + (size_t)k0 * D + e] : 0.f;
            v[e / D][e % D] = in ? V[head + (size_t)k0 * D + e] : 0.f;
        }
        __syncthreads();
        for (int j = 0; j < BK && k0 + j < n; ++j) {
            if (causal && k0 + j > q) break;
            float s = 0.f;
#pragma unroll
            for (int d = 0; d < D; ++d) s += qr[d] * k[j][d];
            float nm = fmaxf(m, s), c = __expf(m - nm), p = __expf(s - nm);
            l = l * c + p;
            m = nm;
#pragma unroll
            for (int d = 0; d < D; ++d) acc[d] = acc[d] * c + p * v[j][d];
        }
        __syncthreads();
    }
    if (q < n)
#pragma unroll
        for (int d = 0; d < D; ++d) O[head + (size_t)q * D + d] = acc[d] / l;
}
extern "C" __global__ void __launch_bounds__(64) flash_attention_d16(const float* Q, const float* K, const float* V, float* O, int n, float scale) {
    attend<16, 32>(Q, K, V, O, n, scale, false);
}
extern "C" __global__ void __launch_bounds__(64) flash_attention_d32_causal(const float* Q, const float* K, const float* V, float* O, int n, float scale) {
    attend<32, 16>(Q, K, V, O, n, scale, true);
}
