// sm_90: cp.async.bulk global -> shared -> global with mbarrier transaction counts, plus bulk reduction and prefetch.
__device__ __forceinline__ unsigned sp(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void wait_parity(unsigned bar, unsigned parity) {
    asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra DONE_%=;\n\tbra LAB_WAIT_%=;\n\tDONE_%=:\n\t}" ::"r"(bar), "r"(parity) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) bulk_scale(const float* in, float* out, float* sums, float f, int tiles) {
    __shared__ alignas(128) float buf[2][1024];
    __shared__ alignas(8) unsigned long long bar[2];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sp(&bar[s])));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    for (int i = 0; i < tiles; ++i) {
        int s = i & 1;
        size_t at = ((size_t)blockIdx.x * tiles + i) * 1024;
        if (t == 0) {
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sp(&bar[s])), "r"(4096) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sp(buf[s])), "l"(in + at), "r"(4096), "r"(sp(&bar[s])) : "memory");
        }
        wait_parity(sp(&bar[s]), (i >> 1) & 1);
        for (int e = t; e < 1024; e += 128) buf[s][e] *= f;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + at), "r"(sp(buf[s])), "r"(4096) : "memory");
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sums), "r"(sp(buf[s])), "r"(4096) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (i + 1 < tiles) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in + at + 1024), "r"(4096));
        }
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
