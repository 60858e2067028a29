// sm_100: 256-bit loads and stores, packed f32x2 arithmetic, three-input min/max.
extern "C" __global__ void wide_add(const float* a, const float* b, float* o, int n8) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n8) return;
    float x[8], y[8];
    asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7]) : "l"(a + 8 * i));
    asm volatile("ld.global.nc.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=f"(y[0]), "=f"(y[1]), "=f"(y[2]), "=f"(y[3]), "=f"(y[4]), "=f"(y[5]), "=f"(y[6]), "=f"(y[7]) : "l"(b + 8 * i));
    for (int k = 0; k < 8; ++k) x[k] += y[k];
    asm volatile("st.global.v8.f32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};" ::"f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]), "l"(o + 8 * i) : "memory");
}
// a: 4 n elements, b: n, o: 5 n, m: n; n a multiple of 4.
extern "C" __global__ void packed_fma(const float2* a, const float2* b, float2* o, float* m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = *(const unsigned long long*)&a[i], y = *(const unsigned long long*)&b[i], r;
    asm("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(r) : "l"(x), "l"(y));
    asm("add.rn.ftz.f32x2 %0, %0, %1;" : "+l"(r) : "l"(y));
    asm("mul.rz.f32x2 %0, %0, %1;" : "+l"(r) : "l"(y));
    *(unsigned long long*)&o[i] = r;
    float v;
    asm("max.f32 %0, %1, %2, %3;" : "=f"(v) : "f"(a[i].x), "f"(a[i].y), "f"(b[i].x));
    m[i] = v;
    longlong4_32a w = *(const longlong4_32a*)(a + 4 * i);
    w.x ^= w.w;
    *(longlong4_32a*)(o + n + 4 * i) = w;
}
