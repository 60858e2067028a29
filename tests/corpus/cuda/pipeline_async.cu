// cuda::pipeline with two stages, block scope.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void pipeline_async(const int* in, int* out, int tiles) {
    __shared__ int buf[2][256];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const int* src = in + blockIdx.x * tiles * 256;
    int acc = 0;
    for (int issued = 0, done = 0; done < tiles; ++done) {
        for (; issued < tiles && issued < done + 2; ++issued) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, buf[issued & 1], src + issued * 256, cuda::aligned_size_t<16>(1024), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        acc += buf[done & 1][255 - threadIdx.x];
        block.sync();
        pipe.consumer_release();
    }
    out[blockIdx.x * 256 + threadIdx.x] = acc;
}
extern "C" __global__ void cg_memcpy_async(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    auto block = cg::this_thread_block();
    int base = blockIdx.x * blockDim.x;
    cg::memcpy_async(block, tile, in + base, sizeof(float) * blockDim.x);
    cg::wait(block);
    if (base + threadIdx.x < n) out[base + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
