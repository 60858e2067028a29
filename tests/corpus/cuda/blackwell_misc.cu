// sm_100a: fp4 / fp6 conversions, stochastic rounding, cluster launch control, wide redux.
extern "C" __global__ void narrow_floats(const float *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3];
    unsigned r;
    unsigned short h;
    asm("{.reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; cvt.u16.u8 %0, t;}" : "=h"(h) : "f"(a), "f"(b)); out[8 * i] = h;
    asm("{.reg .b8 t; .reg .b16 u; mov.b16 {t, _}, %1; cvt.rn.f16x2.e2m1x2 %0, t;}" : "=r"(r) : "h"(h)); out[8 * i + 1] = r;
    asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(c), "f"(d)); out[8 * i + 2] = h;
    asm("cvt.rn.f16x2.e2m3x2 %0, %1;" : "=r"(r) : "h"(h)); out[8 * i + 3] = r;
    asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(h) : "f"(a), "f"(c)); out[8 * i + 4] = h;
    asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(r) : "h"(h)); out[8 * i + 5] = r;
    asm("cvt.rs.f16x2.f32 %0, %1, %2, %3;" : "=r"(r) : "f"(b), "f"(d), "r"(i * 2654435761u)); out[8 * i + 6] = r;
    asm("cvt.rs.satfinite.e4m3x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(i * 40503u)); out[8 * i + 7] = r;
}
extern "C" __global__ void float_redux(const float *in, float *out) {
    float v = in[threadIdx.x], r;
    asm volatile("redux.sync.min.f32 %0, %1, 0xffffffff;" : "=f"(r) : "f"(v)); out[2 * threadIdx.x] = r;
    asm volatile("redux.sync.max.abs.NaN.f32 %0, %1, 0xffffffff;" : "=f"(r) : "f"(v)); out[2 * threadIdx.x + 1] = r;
}
extern "C" __global__ void steal_work(int *out) {
    __shared__ alignas(16) unsigned long long resp[2];
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), q = (unsigned)__cvta_generic_to_shared(resp), phase = 0, x = blockIdx.x;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
    __syncthreads();
    for (;;) {
        if (threadIdx.x == 0) {
            asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(q), "r"(b) : "memory");
            asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], 16;" ::"r"(b) : "memory");
        }
        atomicAdd(&out[x], (int)threadIdx.x);
        unsigned ok = 0;
        while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(b), "r"(phase) : "memory");
        phase ^= 1;
        asm volatile("{.reg .pred p; .reg .b128 r; ld.shared.b128 r, [%2]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %0, 1, 0, p; @p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, _, _, _}, r;}" : "=r"(ok), "+r"(x) : "r"(q) : "memory");
        if (!ok) break;
        asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
        __syncthreads();
    }
}
