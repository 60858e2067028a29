// sm_90: st.async, red.async, multimem, bulk copies inside a cluster, mbarrier transaction ops, cluster fences.
extern "C" __global__ void __cluster_dims__(2, 1, 1) push_next(const int *in, int *out) {
    __shared__ alignas(16) int inbox[64];
    __shared__ alignas(16) int bulk[64];
    __shared__ alignas(16) int src[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned rank, t = threadIdx.x, b = (unsigned)__cvta_generic_to_shared(&bar), slot = (unsigned)__cvta_generic_to_shared(&inbox[t]), rslot, rb;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 256;" ::"r"(b) : "memory");
    }
    inbox[t] = 0;
    src[t] = (int)t;
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rslot) : "r"(slot), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(b), "r"(rank ^ 1));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(rslot), "r"(in[blockIdx.x * 64 + t]), "r"(rb) : "memory");
    unsigned ok = 0;
    while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(b) : "memory");
    out[blockIdx.x * 64 + t] = inbox[t];
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    if (t == 0) asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%0], 512;" ::"r"(b) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(rslot), "r"(5), "r"(rb) : "memory");
    if (t == 0) {
        unsigned rbulk, s = (unsigned)__cvta_generic_to_shared(src), d = (unsigned)__cvta_generic_to_shared(bulk);
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rbulk) : "r"(d), "r"(rank ^ 1));
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(rbulk), "r"(s), "r"(rb) : "memory");
    }
    for (ok = 0; !ok;) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 1; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(b) : "memory");
    out[128 + blockIdx.x * 64 + t] = inbox[t] + bulk[t];
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
extern "C" __global__ void multimem_sum(float *mc, unsigned *mch, float *out) {
    float v, a, b, c, d;
    unsigned h;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(v) : "l"(mc + threadIdx.x) : "memory");
    asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(mc + threadIdx.x * 4) : "memory");
    asm volatile("multimem.ld_reduce.weak.global.min.f16x2 %0, [%1];" : "=r"(h) : "l"(mch) : "memory");
    asm volatile("multimem.red.release.gpu.global.add.f32 [%0], %1;" ::"l"(mc), "f"(v) : "memory");
    asm volatile("multimem.st.weak.global.f32 [%0], %1;" ::"l"(mc + threadIdx.x), "f"(a + b + c + d) : "memory");
    out[threadIdx.x] = v + (float)h;
}
