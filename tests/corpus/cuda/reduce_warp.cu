// Warp-shuffle reduction; block result by a second pass over warps.
template <typename T, typename Op>
__device__ __forceinline__ T warp_reduce(T v, Op op) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v = op(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}
struct Add { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
struct Max { template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
struct Min { template <typename T> __device__ T operator()(T a, T b) const { return a < b ? a : b; } };

template <typename T, typename Op>
__global__ void reduce_warp(const T* __restrict__ in, T* __restrict__ out, int n, T identity) {
    __shared__ T part[32];
    Op op;
    T v = identity;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v = op(v, in[i]);
    v = warp_reduce(v, op);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < (blockDim.x + 31) / 32 ? part[lane] : identity;
        v = warp_reduce(v, op);
        if (lane == 0) out[blockIdx.x] = v;
    }
}
template __global__ void reduce_warp<float, Add>(const float*, float*, int, float);
template __global__ void reduce_warp<double, Max>(const double*, double*, int, double);
template __global__ void reduce_warp<int, Min>(const int*, int*, int, int);
template __global__ void reduce_warp<long long, Add>(const long long*, long long*, int, long long);
