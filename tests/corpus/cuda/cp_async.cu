// Double-buffered copies global -> shared with cp.async: intrinsics, inline asm and cuda::memcpy_async.
#include <cuda_pipeline.h>
extern "C" __global__ void cp_async_sum(const float4* in, float* out, int tiles) {
    __shared__ float4 buf[2][128];
    int t = threadIdx.x;
    const float4* src = in + (size_t)blockIdx.x * tiles * 128;
    __pipeline_memcpy_async(&buf[0][t], &src[t], 16);
    __pipeline_commit();
    float acc = 0.f;
    for (int i = 0; i < tiles; ++i) {
        if (i + 1 < tiles) __pipeline_memcpy_async(&buf[(i + 1) & 1][t], &src[(i + 1) * 128 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = buf[i & 1][127 - t];
        acc += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    atomicAdd(out + blockIdx.x, acc);
}
extern "C" __global__ void cp_async_sizes(const char* in, int* out, int n) {
    __shared__ __align__(16) int buf[1024];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&buf[t], in + t * 4, 4);
    __pipeline_memcpy_async(&buf[256 + 2 * t], in + 1024 + t * 8, 8);
    int keep = t < n ? 16 : 0;
    unsigned dst = (unsigned)__cvta_generic_to_shared(&buf[768 + (t & 63) * 4]);
    if (t < 64) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst), "l"(in + 4096 + t * 16), "r"(keep));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = t; i < 1024; i += 256) out[i] = buf[1023 - i];
}
