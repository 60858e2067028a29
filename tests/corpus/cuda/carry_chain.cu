// Big-integer arithmetic with carry chains: 256-bit add / subtract and 4x4 limb multiply, inline asm.
extern "C" __global__ void add256(const uint4* a, const uint4* b, uint4* o, unsigned* carry, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 x = a[2 * i], y = a[2 * i + 1], u = b[2 * i], v = b[2 * i + 1];
    unsigned c;
    asm("add.cc.u32 %0, %0, %9;\n\taddc.cc.u32 %1, %1, %10;\n\taddc.cc.u32 %2, %2, %11;\n\taddc.cc.u32 %3, %3, %12;\n\t"
        "addc.cc.u32 %4, %4, %13;\n\taddc.cc.u32 %5, %5, %14;\n\taddc.cc.u32 %6, %6, %15;\n\taddc.cc.u32 %7, %7, %16;\n\taddc.u32 %8, 0, 0;"
        : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w), "+r"(y.x), "+r"(y.y), "+r"(y.z), "+r"(y.w), "=r"(c)
        : "r"(u.x), "r"(u.y), "r"(u.z), "r"(u.w), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
    o[2 * i] = x;
    o[2 * i + 1] = y;
    carry[i] = c;
}
extern "C" __global__ void sub128(const ulonglong2* a, const ulonglong2* b, ulonglong2* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    ulonglong2 x = a[i], y = b[i];
    asm("sub.cc.u64 %0, %0, %2;\n\tsubc.u64 %1, %1, %3;" : "+l"(x.x), "+l"(x.y) : "l"(y.x), "l"(y.y));
    o[i] = x;
}
extern "C" __global__ void mul128(const uint2* a, const uint2* b, uint4* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint2 x = a[i], y = b[i];
    uint4 r;
    asm("mul.lo.u32 %0, %4, %6;\n\tmul.hi.u32 %1, %4, %6;\n\tmad.lo.cc.u32 %1, %5, %6, %1;\n\tmadc.hi.u32 %2, %5, %6, 0;\n\t"
        "mad.lo.cc.u32 %1, %4, %7, %1;\n\tmadc.hi.cc.u32 %2, %4, %7, %2;\n\taddc.u32 %3, 0, 0;\n\tmad.lo.cc.u32 %2, %5, %7, %2;\n\tmadc.hi.u32 %3, %5, %7, %3;"
        : "=&r"(r.x), "=&r"(r.y), "=&r"(r.z), "=&r"(r.w) : "r"(x.x), "r"(x.y), "r"(y.x), "r"(y.y));
    o[i] = r;
}
extern "C" __global__ void mulhi_all(const int* a, const int* b, int* o, long long* w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[4 * i] = __mulhi(a[i], b[i]); o[4 * i + 1] = __umulhi(a[i], b[i]); o[4 * i + 2] = __mul24(a[i], b[i]); o[4 * i + 3] = __umul24(a[i], b[i]);
    w[3 * i] = (long long)a[i] * b[i]; w[3 * i + 1] = __mul64hi(w[3 * i], a[i]); w[3 * i + 2] = __umul64hi(w[3 * i], b[i]);
}
