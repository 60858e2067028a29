// sm_90: cuda::barrier with transaction counts and memcpy_async_tx; annotated pointers; cuda::apply_access_property.
#include <cuda/barrier>
#include <cuda/annotated_ptr>
#include <cuda/std/utility>
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void barrier_tx(const int *in, int *out) {
    __shared__ alignas(16) int s[256];
    __shared__ barrier bar;
    if (threadIdx.x == 0) { init(&bar, blockDim.x); }
    __syncthreads();
    barrier::arrival_token tok;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(s, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(s)), bar);
        tok = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
    } else tok = bar.arrive();
    bar.wait(cuda::std::move(tok));
    out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void annotated(cuda::annotated_ptr<const float, cuda::access_property::persisting> a, cuda::annotated_ptr<float, cuda::access_property::streaming> b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2.f;
}
