// lop3, prmt, shf, bfe, bfi, popc, clz, brev, bfind, fns, szext, bmsk.
extern "C" __global__ void bit_ops32(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r;
    unsigned* o = out + i * 20;
    o[0] = __popc(x); o[1] = __clz(x); o[2] = __brev(x); o[3] = __ffs(x);
    o[4] = (x & y) | (~x & (y >> 3)); o[5] = (x & y) ^ (x | 0x55aa55aa); o[6] = __byte_perm(x, y, y & 0x7777);
    o[7] = __funnelshift_l(x, y, 7); o[8] = __funnelshift_rc(x, y, y); o[9] = __funnelshift_lc(x, y, y); o[10] = __funnelshift_r(x, y, y);
    o[11] = (x >> 5) & 0x3ff; o[12] = (x & 0xffff00ff) | ((y & 0xff) << 8);
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"(9)); o[13] = r;
    asm("bfe.s32 %0, %1, 4, 12;" : "=r"(r) : "r"(x)); o[14] = r;
    asm("bfi.b32 %0, %1, %2, 6, 11;" : "=r"(r) : "r"(x), "r"(y)); o[15] = r;
    asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x)); o[16] = r;
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(r) : "r"(x)); o[17] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(r) : "r"(x), "r"(y), "r"(x + y)); o[18] = r;
    asm("{.reg .pred p; setp.ne.u32 p, %1, 0; lop3.or.b32 %0|p, %1, %2, 255, 0x96, p; @p add.u32 %0, %0, 1;}" : "=r"(r) : "r"(x), "r"(y)); o[19] = r;
}
extern "C" __global__ void bit_ops64(const unsigned long long* a, unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], r;
    unsigned long long* o = out + i * 8;
    o[0] = __popcll(x); o[1] = __clzll(x); o[2] = __brevll(x); o[3] = __ffsll(x);
    asm("bfe.u64 %0, %1, 20, 30;" : "=l"(r) : "l"(x)); o[4] = r;
    asm("bfi.b64 %0, %1, %2, 40, 8;" : "=l"(r) : "l"(x), "l"(x >> 9)); o[5] = r;
    unsigned s;
    asm("bfind.u64 %0, %1;" : "=r"(s) : "l"(x)); o[6] = s;
    o[7] = (x << 13) | (x >> 51);
}
extern "C" __global__ void bit_fields(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], r;
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(13)); out[4 * i] = r;
    asm("szext.clamp.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(i)); out[4 * i + 1] = r;
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(i & 31), "r"(7)); out[4 * i + 2] = r;
    out[4 * i + 3] = __fns(x, 3, 2);
}
