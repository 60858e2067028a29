// sm_90: tensor maps: tiled 2D load and store through cuda::ptx and inline asm, prefetch, multicast, 1D to 5D.
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda.h>
namespace ptx = cuda::ptx;
extern "C" __global__ void tensor_2d(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out, int x, int y) {
    __shared__ alignas(128) int tile[16][32];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&in) : "memory");
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    int coords[2] = {x + (int)blockIdx.x * 32, y + (int)blockIdx.y * 16};
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, coords, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    for (int e = threadIdx.x; e < 512; e += blockDim.x) (&tile[0][0])[e] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, coords, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
extern "C" __global__ void tensor_kinds(const __grid_constant__ CUtensorMap m, int c) {
    __shared__ alignas(128) char buf[4096];
    __shared__ alignas(8) unsigned long long bar;
    unsigned d = (unsigned)__cvta_generic_to_shared(buf), b = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x != 0) return;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 5;" ::"r"(b));
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(d), "l"(&m), "r"(c), "r"(b) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %2, %2}], [%3], %4;" ::"r"(d), "l"(&m), "r"(c), "r"(b), "l"(0x14F0000000000000ull) : "memory");
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2, %2}], [%3], {%4, %4};" ::"r"(d), "l"(&m), "r"(c), "r"(b), "h"((short)1) : "memory");
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %2, %2, %2, %2}], [%3], %4;" ::"r"(d), "l"(&m), "r"(c), "r"(b), "h"((short)3) : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %1}];" ::"l"(&m), "r"(c) : "memory");
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %1}], [%2];" ::"l"(&m), "r"(c), "r"(d) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
}
