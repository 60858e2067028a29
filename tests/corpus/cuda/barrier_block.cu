// cuda::barrier: arrive / wait split, arrive_and_drop, async copies tracked by the barrier.
#include <cuda/barrier>
#include <cuda/std/utility>
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void barrier_split(const float* in, float* out, int n) {
    __shared__ block_barrier bar;
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    s[t] = i < n ? in[i] : 0.f;
    auto token = bar.arrive();
    float mine = s[t] * 2.f;
    bar.wait(cuda::std::move(token));
    if (i < n) out[i] = mine + s[(t + 1) % blockDim.x];
}
extern "C" __global__ void barrier_copy(const int4* in, int4* out) {
    __shared__ block_barrier bar;
    __shared__ alignas(16) int4 s[128];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&s[threadIdx.x], &in[blockIdx.x * 128 + threadIdx.x], cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();
    out[blockIdx.x * 128 + threadIdx.x] = s[127 - threadIdx.x];
}
