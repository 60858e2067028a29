// sm_90: thread block clusters, distributed shared memory, cluster barriers, elect, griddepcontrol, stmatrix.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int* in, int* bins, int n) {
    __shared__ int h[128];
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    for (int i = threadIdx.x; i < 128; i += blockDim.x) h[i] = 0;
    cluster.sync();
    for (int i = cluster.thread_rank() + (blockIdx.x / 2) * cluster.size(); i < n; i += gridDim.x * blockDim.x) {
        int b = in[i] & 255;
        int* remote = cluster.map_shared_rank(h, b / 128);
        atomicAdd(remote + b % 128, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < 128; i += blockDim.x) atomicAdd(&bins[rank * 128 + i], h[i]);
}
extern "C" __global__ void cluster_asm(const float* in, float* out) {
    __shared__ float s[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned rank, size, remote, mine = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]), b = (unsigned)__cvta_generic_to_shared(&bar), rb;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    unsigned cx, nx, ic;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(cx)); asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(nx)); asm volatile("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(ic));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(mine), "r"((rank + 1) % size));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(b), "r"((rank + 1) % size));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(in[blockIdx.x * 64 + threadIdx.x]) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(rb) : "memory");
    unsigned ok = 0;
    while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0, 1000; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(b) : "memory");
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(mine) : "memory");
    unsigned gr;
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(gr) : "r"(remote));
    out[blockIdx.x * 64 + threadIdx.x] = v + (float)(cx >= nx) + (ic > 1) + (gr > size);
    asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
}
extern "C" __global__ void hopper_misc(const unsigned* in, unsigned* out) {
    __shared__ alignas(16) unsigned short s[256];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    unsigned leader, pred;
    asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(pred));
    unsigned addr = (unsigned)__cvta_generic_to_shared(&s[(threadIdx.x & 31) * 8]);
    unsigned v0 = in[threadIdx.x * 4], v1 = in[threadIdx.x * 4 + 1], v2 = in[threadIdx.x * 4 + 2], v3 = in[threadIdx.x * 4 + 3];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr), "r"(v0), "r"(v1), "r"(v2), "r"(v3) : "memory");
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x] + leader + pred;
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};" ::"r"(addr), "r"(v1), "r"(v2) : "memory");
    __syncwarp();
    out[32 + threadIdx.x] = s[threadIdx.x * 2];
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
extern "C" __global__ void __launch_bounds__(128, 2, 4) bounded_cluster(int* p) { atomicAdd(p, (int)cg::this_cluster().num_blocks()); }
