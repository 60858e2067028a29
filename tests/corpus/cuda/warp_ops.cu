// Votes, matches, shuffles of every kind and type, redux, active masks, barriers with counts, named barriers.
#include <cuda_fp16.h>
extern "C" __global__ void votes(const int* x, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] : 0;
    unsigned m = 0xffffffffu;
    o += i * 8;
    o[0] = __all_sync(m, v > 0); o[1] = __any_sync(m, v > 10); o[2] = __ballot_sync(m, v & 1);
    int pred;
    o[3] = __match_any_sync(m, v); o[4] = __match_all_sync(m, v, &pred); o[5] = pred;
    o[6] = __match_any_sync(m, (long long)v << 20); o[7] = __activemask();
}
extern "C" __global__ void shuffles(float* f, double* d, long long* l, half2* h, int* o) {
    int t = threadIdx.x;
    unsigned m = ~0u;
    f[t] = __shfl_sync(m, f[t], (t + 3) & 31) + __shfl_up_sync(m, f[t], 2) + __shfl_down_sync(m, f[t], 4, 16) + __shfl_xor_sync(m, f[t], 8, 8);
    d[t] = __shfl_sync(m, d[t], 0); l[t] = __shfl_xor_sync(m, l[t], 16); h[t] = __shfl_down_sync(m, h[t], 1);
    int v;
    asm("{.reg .pred p; shfl.sync.up.b32 %0|p, %1, 1, 0, 0xffffffff; @!p mov.s32 %0, -1;}" : "=r"(v) : "r"(t * 5));
    o[t] = v;
}
extern "C" __global__ void reduce_sync(const int* x, const unsigned* u, int* o, unsigned* q) {
#if __CUDA_ARCH__ >= 800
    int t = threadIdx.x;
    o[3 * t] = __reduce_add_sync(~0u, x[t]); o[3 * t + 1] = __reduce_min_sync(~0u, x[t]); o[3 * t + 2] = __reduce_max_sync(~0u, x[t]);
    q[4 * t] = __reduce_and_sync(~0u, u[t]); q[4 * t + 1] = __reduce_or_sync(~0u, u[t]); q[4 * t + 2] = __reduce_xor_sync(~0u, u[t]); q[4 * t + 3] = __reduce_max_sync(0xffffu, u[t]);
#endif
}
extern "C" __global__ void sync_kinds(const int* x, int* o, int n) {
    int t = threadIdx.x, v = x[t];
    o[4 * t] = __syncthreads_count(v > 0); o[4 * t + 1] = __syncthreads_and(v > 1); o[4 * t + 2] = __syncthreads_or(v > 2);
    __syncwarp(0xffffffff);
    if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("barrier.sync 2, %0;" ::"r"(n) : "memory");
    if (t < 32) asm volatile("bar.arrive 3, 128;" ::: "memory");
    else if (t < 128) asm volatile("barrier.cta.sync.aligned 3, 128;" ::: "memory");
    unsigned lt, le, eq, ge, gt, lane, warp, nw, sm;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt)); asm("mov.u32 %0, %%lanemask_le;" : "=r"(le)); asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge)); asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt)); asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp)); asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(nw)); asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    o[4 * t + 3] = (lt ^ le ^ eq ^ ge ^ gt) + lane + (warp < nw) + (sm >= 0);
}
