// Assorted instructions through inline asm (sm_80): f16x2 transcendental, relu arithmetic, 128-bit moves, movmatrix, bar.red, policies.
extern "C" __global__ void asm_half(const unsigned *a, unsigned *o) {
    unsigned x = a[threadIdx.x], y = a[threadIdx.x + 32], r;
    o += threadIdx.x * 12;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(r) : "r"(x)); o[0] = r;
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(r) : "r"(x)); o[1] = r;
    asm("fma.rn.relu.f16x2 %0, %1, %2, %1;" : "=r"(r) : "r"(x), "r"(y)); o[2] = r;
    asm("fma.rn.bf16x2 %0, %1, %2, %1;" : "=r"(r) : "r"(x), "r"(y)); o[3] = r;
    asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[4] = r;
    asm("max.ftz.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[5] = r;
    asm("add.rn.sat.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[6] = r;
    asm("set.gt.f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[7] = r;
    asm("{.reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.u32 %0, 1, 2, p; @q add.u32 %0, %0, 4;}" : "=r"(r) : "r"(x), "r"(y)); o[8] = r;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(__uint_as_float(x)), "f"(__uint_as_float(y))); o[9] = r;
    asm("neg.bf16x2 %0, %1;" : "=r"(r) : "r"(x)); o[10] = r;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(__uint_as_float(x)), "f"(__uint_as_float(y))); o[11] = r;
}
extern "C" __global__ void asm_float(const float *a, const double *d, float *o, double *od) {
    float x = a[threadIdx.x], y = a[threadIdx.x + 32], r;
    double u = d[threadIdx.x], v;
    o += threadIdx.x * 14;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); o[0] = r;
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); o[1] = r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); o[2] = r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); o[3] = r;
    asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[4] = r;
    asm("div.approx.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[5] = r;
    asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[6] = r;
    asm("max.NaN.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[7] = r;
    asm("copysign.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[8] = r;
    asm("mad.rn.sat.f32 %0, %1, %2, 0f3F000000;" : "=f"(r) : "f"(x), "f"(y)); o[9] = r;
    asm("slct.f32.s32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "r"((int)threadIdx.x - 16)); o[10] = r;
    asm("{.reg .pred p, q; setp.lt.and.f32 p|q, %1, %2, 1; selp.f32 %0, %1, %2, p; @!q neg.f32 %0, %0;}" : "=f"(r) : "f"(x), "f"(y)); o[11] = r;
    asm("{.reg .pred p; setp.equ.f32 p, %1, %2; setp.num.or.f32 p, %1, %2, !p; selp.f32 %0, 0f3F800000, 0f00000000, p;}" : "=f"(r) : "f"(x), "f"(y)); o[12] = r;
    asm("set.nan.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[13] = r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(v) : "d"(u)); od[4 * threadIdx.x] = v;
    asm("rsqrt.approx.f64 %0, %1;" : "=d"(v) : "d"(u)); od[4 * threadIdx.x + 1] = v;
    asm("mad.rm.f64 %0, %1, %1, 0d3FF8000000000000;" : "=d"(v) : "d"(u)); od[4 * threadIdx.x + 2] = v;
    asm("slct.f64.f32 %0, %1, 0d0000000000000000, %2;" : "=d"(v) : "d"(u), "f"(x)); od[4 * threadIdx.x + 3] = v;
}
extern "C" __global__ void asm_data(const uint4 *in, uint4 *out, unsigned *o, int n) {
    unsigned r, t = threadIdx.x;
    uint4 v = in[t];
    asm volatile("{.reg .b128 q; .reg .b64 lo, hi; mov.b64 lo, {%0, %1}; mov.b64 hi, {%2, %3}; mov.b128 q, {hi, lo}; mov.b128 {lo, hi}, q; mov.b64 {%0, %1}, lo; mov.b64 {%2, %3}, hi;}" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
    out[t] = v;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v.x)); o[6 * t] = r;
    asm volatile("{.reg .pred p; setp.gt.u32 p, %1, 7; barrier.cta.red.popc.aligned.u32 %0, 0, p;}" : "=r"(r) : "r"(v.y)); o[6 * t + 1] = r;
    asm volatile("{.reg .pred p; setp.gt.u32 p, %1, 7; bar.red.and.pred p, 1, 32, p; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "r"(v.y)); o[6 * t + 2] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(v.x), "r"(v.y), "r"(n)); o[6 * t + 3] = r;
    asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(r) : "r"(v.x), "r"(v.y), "r"(n)); o[6 * t + 4] = r;
    asm("{.reg .b16 a, b; .reg .b8 c; mov.b32 {a, b}, %1; mul.wide.u16 %0, a, b; sad.u32 %0, %0, %1, 3;}" : "=r"(r) : "r"(v.z)); o[6 * t + 5] = r;
    unsigned long long pol;
    asm volatile("createpolicy.cvt.L2.b64 %0, 0x14F0000000000000;" : "=l"(pol));
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(o) : "memory");
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(o + 200), "r"(r) : "memory");
    asm volatile("{ld.acquire.cta.global.v2.u32 {%0, %1}, [%2];}" : "=r"(v.x), "=r"(v.y) : "l"(in) : "memory");
    asm volatile("ld.weak.global.ca.v4.u16 {%0, %1, %2, %3}, [%4+8];" : "=h"(*(short *)&v.x), "=h"(*(short *)&v.y), "=h"(*(short *)&v.z), "=h"(*(short *)&v.w) : "l"(in));
    asm volatile("st.volatile.global.b8 [%0+-1], %1;" ::"l"((char *)(o + 300)), "r"(v.x ^ (unsigned)pol) : "memory");
    asm volatile("ldu.global.u32 %0, [%1];" : "=r"(r) : "l"(in)); o[256 + t] = r;
}
