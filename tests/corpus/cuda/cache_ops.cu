// Cache operators, prefetches, eviction policies, discard, applypriority, read-only loads of every width.
extern "C" __global__ void cache_loads(const int* a, const float4* b, const double* d, const unsigned char* c, const short2* s, int* o, float4* q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = __ldg(a + i) + __ldca(a + i) + __ldcg(a + i) + __ldcs(a + i) + __ldlu(a + i) + __ldcv(a + i) + __ldg(c + i) + __ldg(s + i).y;
    float4 f = __ldcs(b + i);
    f.x += (float)__ldcg(d + i);
    __stwb(o + i, v); __stcg(o + n + i, v); __stcs(q + i, f); __stwt(o + 2 * n + i, v);
}
extern "C" __global__ void hints(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x, y, z;
    unsigned long long pol, pol2;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a + i + 64)); asm volatile("prefetch.global.L1 [%0];" ::"l"(a + i + 32)); asm volatile("prefetchu.L1 [%0];" ::"l"(a + i));
#if __CUDA_ARCH__ >= 800
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(a + i + 96));
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(pol));
    asm volatile("createpolicy.range.L2::evict_first.b64 %0, [%1], 0x1000, 0x10000;" : "=l"(pol2) : "l"(a));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(x) : "l"(a + i), "l"(pol));
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(y) : "l"(a + i));
    asm volatile("ld.global.L1::evict_last.L2::256B.f32 %0, [%1];" : "=f"(z) : "l"(a + i));
    asm volatile("st.global.L1::evict_first.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(o + i), "f"(x + y), "l"(pol2) : "memory");
    if ((i & 31) == 0) { asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(o + i) : "memory"); asm volatile("discard.global.L2 [%0], 128;" ::"l"(o + n + i) : "memory"); }
#else
    x = a[i]; y = z = 0.f; pol = pol2 = 0;
    o[i] = x + y;
#endif
    o[2 * n + i] = z + (float)(pol + pol2);
    unsigned sp, loc, con;
    asm("{.reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(sp) : "l"(o)); asm("{.reg .pred p; isspacep.local p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(loc) : "l"(&x)); asm("{.reg .pred p; isspacep.const p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(con) : "l"(o));
    o[3 * n + i] = sp + 2 * loc + 4 * con + 8 * __isShared(o) + 16 * __isGlobal(o) + 32 * __isConstant(o) + 64 * __isLocal(o);
}
