// sm_120a: block-scaled mma with fp4 / fp8 operands.
extern "C" __global__ void mma_mxf4(const unsigned *A, const unsigned *B, const unsigned *SA, const unsigned *SB, float *C) {
    int l = threadIdx.x;
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0, 0}, %11, {0, 0};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 2]), "r"(B[l * 2 + 1]), "r"(SA[l]), "r"(SB[l]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 2]), "r"(B[l * 2 + 1]));
    for (int i = 0; i < 4; ++i) C[l * 4 + i] = d[i];
}
