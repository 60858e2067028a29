// Single-pass sum: the last block to finish adds the partial results.
__device__ unsigned int blocks_done = 0;
extern "C" __global__ void reduce_last_block(const float* in, float* partial, float* result, int n) {
    __shared__ float s[128];
    __shared__ bool last;
    unsigned t = threadIdx.x;
    float acc = 0.f;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) acc += in[i];
    s[t] = acc;
    __syncthreads();
    for (int w = 64; w > 0; w >>= 1) {
        if (t < w) s[t] += s[t + w];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        unsigned ticket = atomicInc(&blocks_done, gridDim.x - 1);
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        volatile float* p = partial;
        float sum = 0.f;
        for (unsigned i = t; i < gridDim.x; i += 128) sum += p[i];
        s[t] = sum;
        __syncthreads();
        for (int w = 64; w > 0; w >>= 1) {
            if (t < w) s[t] += s[t + w];
            __syncthreads();
        }
        if (t == 0) *result = s[0];
    }
}
