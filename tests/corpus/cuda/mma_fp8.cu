// mma.sync with fp8 operands (sm_89) and conversions f32 <-> e4m3 / e5m2.
#include <cuda_fp8.h>
extern "C" __global__ void mma_fp8(const unsigned* A, const unsigned* B, float* C) {
    int l = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 2]), "r"(B[l * 2 + 1]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 2]), "r"(B[l * 2 + 1]));
    for (int i = 0; i < 4; ++i) C[l * 4 + i] = d[i];
}
