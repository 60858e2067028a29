// Prefix sums: Hillis-Steele, Blelloch, warp-shuffle.
extern "C" __global__ void scan_hillis(const int* in, int* out, int n) {
    __shared__ int buf[2][512];
    int t = threadIdx.x, base = blockIdx.x * 512, cur = 0;
    buf[0][t] = base + t < n ? in[base + t] : 0;
    __syncthreads();
    for (int d = 1; d < 512; d <<= 1) {
        int v = buf[cur][t];
        if (t >= d) v += buf[cur][t - d];
        buf[cur ^ 1][t] = v;
        cur ^= 1;
        __syncthreads();
    }
    if (base + t < n) out[base + t] = buf[cur][t];
}
extern "C" __global__ void scan_blelloch(const float* in, float* out, float* sums, int n) {
    extern __shared__ float tmp[];
    int t = threadIdx.x, m = 2 * blockDim.x, base = blockIdx.x * m, offset = 1;
    tmp[2 * t] = base + 2 * t < n ? in[base + 2 * t] : 0.f;
    tmp[2 * t + 1] = base + 2 * t + 1 < n ? in[base + 2 * t + 1] : 0.f;
    for (int d = m >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) tmp[offset * (2 * t + 2) - 1] += tmp[offset * (2 * t + 1) - 1];
        offset <<= 1;
    }
    if (t == 0) { if (sums) sums[blockIdx.x] = tmp[m - 1]; tmp[m - 1] = 0.f; }
    for (int d = 1; d < m; d <<= 1) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int ai = offset * (2 * t + 1) - 1, bi = offset * (2 * t + 2) - 1;
            float x = tmp[ai];
            tmp[ai] = tmp[bi];
            tmp[bi] += x;
        }
    }
    __syncthreads();
    if (base + 2 * t < n) out[base + 2 * t] = tmp[2 * t];
    if (base + 2 * t + 1 < n) out[base + 2 * t + 1] = tmp[2 * t + 1];
}
extern "C" __global__ void scan_warp(const long long* in, long long* out, int n) {
    __shared__ long long warp_sum[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, w = threadIdx.x >> 5;
    long long v = i < n ? in[i] : 0;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        long long o = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += o;
    }
    if (lane == 31) warp_sum[w] = v;
    __syncthreads();
    if (w == 0) {
        long long s = warp_sum[lane];
#pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
            long long o = __shfl_up_sync(~0u, s, d);
            if (lane >= d) s += o;
        }
        warp_sum[lane] = s;
    }
    __syncthreads();
    if (w > 0) v += warp_sum[w - 1];
    if (i < n) out[i] = v;
}
