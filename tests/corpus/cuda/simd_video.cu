// SIMD-in-a-word intrinsics and saturating / average / absolute-difference arithmetic.
extern "C" __global__ void simd_bytes(const unsigned* a, const unsigned* b, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    o += i * 16;
    o[0] = __vadd4(x, y); o[1] = __vaddss4(x, y); o[2] = __vaddus4(x, y); o[3] = __vsub4(x, y); o[4] = __vsubss4(x, y); o[5] = __vabsdiffs4(x, y);
    o[6] = __vavgu4(x, y); o[7] = __vmaxs4(x, y); o[8] = __vminu4(x, y); o[9] = __vcmpeq4(x, y); o[10] = __vcmpgts4(x, y); o[11] = __vsadu4(x, y);
    o[12] = __vsads4(x, y); o[13] = __vneg4(x); o[14] = __vsetltu4(x, y); o[15] = __vabs4(x);
}
extern "C" __global__ void simd_halves(const unsigned* a, const unsigned* b, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    o += i * 12;
    o[0] = __vadd2(x, y); o[1] = __vaddss2(x, y); o[2] = __vsubus2(x, y); o[3] = __vabsdiffu2(x, y); o[4] = __vavgs2(x, y); o[5] = __vmaxu2(x, y);
    o[6] = __vmins2(x, y); o[7] = __vcmpgeu2(x, y); o[8] = __vsetne2(x, y); o[9] = __vhaddu2(x, y); o[10] = __viaddmax_s16x2(x, y, x); o[11] = __vimin3_s16x2(x, y, x);
}
extern "C" __global__ void scalar_sat(const int* a, const int* b, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i], r;
    o += i * 12;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[0] = r;
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[1] = r;
    asm("mad.hi.sat.s32 %0, %1, %2, %1;" : "=r"(r) : "r"(x), "r"(y)); o[2] = r;
    o[3] = __sad(x, y, 5); o[4] = __usad(x, y, 6u); o[5] = __hadd(x, y); o[6] = __rhadd(x, y); o[7] = __uhadd(x, y); o[8] = abs(x); o[9] = max(x, y); o[10] = umin(x, y);
    o[11] = __viaddmax_s32_relu(x, y, 3) + __vimax3_s32(x, y, i);
}
extern "C" __global__ void video_asm(const unsigned* a, const unsigned* b, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r;
    o += i * 9;
    asm("vadd.s32.s32.u32.sat %0, %1.b1, %2.h1;" : "=r"(r) : "r"(x), "r"(y)); o[0] = r;
    asm("vsub.u32.u32.u32.add %0, %1.b0, %2.b3, %1;" : "=r"(r) : "r"(x), "r"(y)); o[1] = r;
    asm("vabsdiff.u32.u32.u32.add %0, %1.b2, %2.b2, %2;" : "=r"(r) : "r"(x), "r"(y)); o[2] = r;
    asm("vmax.s32.s32.s32 %0, %1.h0, %2.h1;" : "=r"(r) : "r"(x), "r"(y)); o[3] = r;
    asm("vshl.u32.u32.u32.wrap %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[4] = r;
    asm("vmad.s32.s32.s32.shr7 %0, %1.b0, %2.b1, %1;" : "=r"(r) : "r"(x), "r"(y)); o[5] = r;
    asm("vset.u32.u32.lt %0, %1.b0, %2.b1;" : "=r"(r) : "r"(x), "r"(y)); o[6] = r;
    asm("vadd4.u32.u32.u32.sat %0, %1, %2, %1;" : "=r"(r) : "r"(x), "r"(y)); o[7] = r;
    asm("vabsdiff4.u32.s32.s32.add %0, %1, %2, %1;" : "=r"(r) : "r"(x), "r"(y)); o[8] = r;
}
