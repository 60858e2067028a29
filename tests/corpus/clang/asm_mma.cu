#include "cuda_min.h"
// Tensor-core builtins and inline asm through clang.
extern "C" __global__ void wmma16(const int *a, const int *b, float *d) {
    int fa[8], fb[8];
    float fc[8] = {0}, fd[8];
    __hmma_m16n16k16_ld_a(fa, a, 16, 0);
    __hmma_m16n16k16_ld_b(fb, b, 16, 1);
    __hmma_m16n16k16_mma_f32f32(fd, fa, fb, fc, 1, 0);
    __hmma_m16n16k16_st_c_f32(d, fd, 16, 0);
}
extern "C" __global__ void mma_asm(const u32 *a, const u32 *b, float *d) {
    u32 l = tid_x();
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[2 * l]), "r"(a[2 * l + 1]), "r"(b[l]));
    for (int i = 0; i < 4; ++i) d[4 * l + i] = c[i];
}
