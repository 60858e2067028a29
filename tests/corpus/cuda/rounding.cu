// Every rounding-mode intrinsic of f32 and f64 arithmetic and the conversions between types.
extern "C" __global__ void rounding_f32(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    o += i * 40;
    o[0] = __fadd_rn(x, y); o[1] = __fadd_rz(x, y); o[2] = __fadd_ru(x, y); o[3] = __fadd_rd(x, y);
    o[4] = __fsub_rn(x, y); o[5] = __fsub_rz(x, y); o[6] = __fsub_ru(x, y); o[7] = __fsub_rd(x, y);
    o[8] = __fmul_rn(x, y); o[9] = __fmul_rz(x, y); o[10] = __fmul_ru(x, y); o[11] = __fmul_rd(x, y);
    o[12] = __fmaf_rn(x, y, x); o[13] = __fmaf_rz(x, y, x); o[14] = __fmaf_ru(x, y, x); o[15] = __fmaf_rd(x, y, x);
    o[16] = __fdiv_rn(x, y); o[17] = __fdiv_rz(x, y); o[18] = __fdiv_ru(x, y); o[19] = __fdiv_rd(x, y);
    o[20] = __frcp_rn(x); o[21] = __frcp_rz(x); o[22] = __frcp_ru(x); o[23] = __frcp_rd(x);
    o[24] = __fsqrt_rn(x); o[25] = __fsqrt_rz(x); o[26] = __fsqrt_ru(x); o[27] = __fsqrt_rd(x);
    o[28] = rintf(x); o[29] = truncf(x); o[30] = ceilf(x); o[31] = floorf(x); o[32] = roundf(x); o[33] = __saturatef(x);
    o[34] = __frsqrt_rn(x); o[35] = fdividef(x, y); o[36] = fminf(x, y); o[37] = fmaxf(x, y); o[38] = copysignf(x, y); o[39] = fabsf(x);
}
extern "C" __global__ void rounding_f64(const double* a, const double* b, double* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    o += i * 30;
    o[0] = __dadd_rn(x, y); o[1] = __dadd_rz(x, y); o[2] = __dadd_ru(x, y); o[3] = __dadd_rd(x, y);
    o[4] = __dmul_rn(x, y); o[5] = __dmul_rz(x, y); o[6] = __dmul_ru(x, y); o[7] = __dmul_rd(x, y);
    o[8] = __fma_rn(x, y, x); o[9] = __fma_rz(x, y, x); o[10] = __fma_ru(x, y, x); o[11] = __fma_rd(x, y, x);
    o[12] = __ddiv_rn(x, y); o[13] = __ddiv_rz(x, y); o[14] = __ddiv_ru(x, y); o[15] = __ddiv_rd(x, y);
    o[16] = __drcp_rn(x); o[17] = __drcp_rz(x); o[18] = __drcp_ru(x); o[19] = __drcp_rd(x);
    o[20] = __dsqrt_rn(x); o[21] = __dsqrt_rz(x); o[22] = __dsqrt_ru(x); o[23] = __dsqrt_rd(x);
    o[24] = rint(x); o[25] = trunc(x); o[26] = ceil(x); o[27] = floor(x); o[28] = fmin(x, y); o[29] = fmax(x, y);
}
extern "C" __global__ void convert_all(const float* f, const double* d, long long* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = f[i];
    double y = d[i];
    o += i * 40;
    o[0] = __float2int_rn(x); o[1] = __float2int_rz(x); o[2] = __float2int_ru(x); o[3] = __float2int_rd(x);
    o[4] = __float2uint_rn(x); o[5] = __float2uint_rz(x); o[6] = __float2ll_ru(x); o[7] = __float2ull_rd(x);
    o[8] = __double2int_rn(y); o[9] = __double2uint_rz(y); o[10] = __double2ll_ru(y); o[11] = __double2ull_rd(y);
    o[12] = __float_as_int(__double2float_rn(y)); o[13] = __float_as_int(__double2float_rz(y)); o[14] = __float_as_int(__double2float_ru(y)); o[15] = __float_as_uint(__double2float_rd(y));
    o[16] = __float_as_int(__int2float_rn(i * 77777777)); o[17] = __float_as_int(__uint2float_rz(i * 77777777u)); o[18] = __float_as_int(__ll2float_ru(o[6])); o[19] = __float_as_int(__ull2float_rd(o[7]));
    o[20] = __double_as_longlong(__ll2double_rn(o[10])); o[21] = __double_as_longlong(__ull2double_ru(o[11])); o[22] = __double_as_longlong(__int2double_rn(i)); o[23] = __double_as_longlong((double)x);
    o[24] = (signed char)(int)x; o[25] = (unsigned char)(unsigned)x; o[26] = (short)x; o[27] = (unsigned short)x; o[28] = (char)y; o[29] = lrintf(x); o[30] = llrint(y); o[31] = __double2hiint(y); o[32] = __double2loint(y);
    o[33] = __double_as_longlong(__hiloint2double(i, 5)); o[34] = x > 0; o[35] = isnan(y) ? 1 : 0; o[36] = isinf(x); o[37] = signbit(y); o[38] = lroundf(x); o[39] = (long long)(signed char)o[0] << 8;
}
extern "C" __global__ void inline_conversions(const float* f, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = f[i];
    unsigned r;
    unsigned short h;
    asm("cvt.rni.sat.f32.f32 %0, %1;" : "=r"(r) : "f"(x)); o[8 * i] = r;
    asm("cvt.rzi.ftz.s32.f32 %0, %1;" : "=r"(r) : "f"(x)); o[8 * i + 1] = r;
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(__float_as_int(x))); o[8 * i + 2] = r;
    asm("cvt.rn.ftz.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); o[8 * i + 3] = h;
    asm("cvt.rmi.f32.f32 %0, %1;" : "=r"(r) : "f"(x)); o[8 * i + 4] = r;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(i), "r"(i * 3), "r"(0)); o[8 * i + 5] = r;
    asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(r) : "r"(i), "r"(-i)); o[8 * i + 6] = r;
    asm("{.reg .pred q; testp.subnormal.f32 q, %1; selp.u32 %0, 1, 0, q;}" : "=r"(r) : "f"(x)); o[8 * i + 7] = r;
}
