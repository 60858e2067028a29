// Bitonic sort of 1024 keys in shared memory, and one global merge step.
extern "C" __global__ void __launch_bounds__(512) bitonic_sort(unsigned* data) {
    __shared__ unsigned s[1024];
    unsigned t = threadIdx.x;
    s[t] = data[blockIdx.x * 1024 + t];
    s[t + 512] = data[blockIdx.x * 1024 + t + 512];
    for (unsigned k = 2; k <= 1024; k <<= 1)
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            __syncthreads();
            unsigned lo = 2 * t - (t & (j - 1)), hi = lo + j;
            bool up = (lo & k) == 0;
            unsigned a = s[lo], b = s[hi];
            if ((a > b) == up) { s[lo] = b; s[hi] = a; }
        }
    __syncthreads();
    data[blockIdx.x * 1024 + t] = s[t];
    data[blockIdx.x * 1024 + t + 512] = s[t + 512];
}
extern "C" __global__ void bitonic_step(float* keys, int* vals, int j, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, p = i ^ j;
    if (p > i && p < n) {
        float a = keys[i], b = keys[p];
        if ((a > b) == ((i & k) == 0)) {
            keys[i] = b; keys[p] = a;
            int v = vals[i]; vals[i] = vals[p]; vals[p] = v;
        }
    }
}
