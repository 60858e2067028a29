// Tree reduction in shared memory, one partial sum per block.
extern "C" __global__ void reduce_shared(const float* in, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float acc = 0.f;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) acc += in[i];
    s[t] = acc;
    __syncthreads();
#pragma unroll
    for (int w = 128; w > 0; w >>= 1) {
        if (t < w) s[t] += s[t + w];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_dynamic(const double* in, double* out, int n) {
    extern __shared__ double sd[];
    int t = threadIdx.x;
    double acc = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) acc += in[i];
    sd[t] = acc;
    __syncthreads();
    for (int w = blockDim.x / 2; w > 0; w >>= 1) {
        if (t < w) sd[t] += sd[t + w];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sd[0];
}
