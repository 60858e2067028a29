// Sum with cooperative groups: tiled partitions, reduce, coalesced groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void reduce_coop(const int* in, int* out, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int acc = 0;
    for (int i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) acc += in[i];
    acc = cg::reduce(tile, acc, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(out, acc);
}
extern "C" __global__ void reduce_coop_f(const float* in, float* out, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    float m = -INFINITY;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) m = fmaxf(m, in[i]);
    m = cg::reduce(tile, m, cg::greater<float>());
    if (tile.thread_rank() == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 8] = m;
}
extern "C" __global__ void coop_compact(const int* in, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) {
        auto g = cg::coalesced_threads();
        int base = 0;
        if (g.thread_rank() == 0) base = atomicAdd(count, (int)g.size());
        base = g.shfl(base, 0);
        out[base + g.thread_rank()] = in[i];
    }
}
extern "C" __global__ void coop_scan(const int* in, int* out, int n) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    int s = cg::inclusive_scan(tile, v, cg::plus<int>());
    int e = cg::exclusive_scan(tile, v, cg::plus<int>());
    if (i < n) out[i] = s * 1000 + e;
}
