// Row softmax: one block a row, and an online one-pass variant with one warp a row.
extern "C" __global__ void softmax_block(const float* in, float* out, int cols) {
    __shared__ float red[32];
    const float* x = in + (size_t)blockIdx.x * cols;
    float* y = out + (size_t)blockIdx.x * cols;
    int lane = threadIdx.x & 31, w = threadIdx.x >> 5, nw = blockDim.x >> 5;
    float m = -3.402823466e38f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, x[i]);
    for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (lane == 0) red[w] = m;
    __syncthreads();
    m = lane < nw ? red[lane] : -3.402823466e38f;
    for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    __syncthreads();
    float s = 0.f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) { float e = expf(x[i] - m); y[i] = e; s += e; }
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (lane == 0) red[w] = s;
    __syncthreads();
    s = lane < nw ? red[lane] : 0.f;
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    float inv = 1.f / s;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] *= inv;
}
extern "C" __global__ void softmax_online(const float* in, float* out, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float* x = in + (size_t)row * cols;
    float m = -INFINITY, s = 0.f;
    for (int i = lane; i < cols; i += 32) {
        float v = x[i], nm = fmaxf(m, v);
        s = s * __expf(m - nm) + __expf(v - nm);
        m = nm;
    }
    for (int d = 16; d; d >>= 1) {
        float om = __shfl_xor_sync(~0u, m, d), os = __shfl_xor_sync(~0u, s, d), nm = fmaxf(m, om);
        float a = m == -INFINITY ? 0.f : __expf(m - nm), b = om == -INFINITY ? 0.f : __expf(om - nm);
        s = s * a + os * b;
        m = nm;
    }
    for (int i = lane; i < cols; i += 32) out[(size_t)row * cols + i] = __fdividef(__expf(x[i] - m), s);
}
