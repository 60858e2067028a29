// One warp per tile, mma.sync of the other operand types (sm_80): bf16, tf32, s8, u8, s4, b1, f64, sparse f16.
extern "C" __global__ void mma_bf16(const unsigned* A, const unsigned* B, float* C) {
    int l = threadIdx.x;
    float d[4] = {C[l * 4], C[l * 4 + 1], C[l * 4 + 2], C[l * 4 + 3]};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 2]), "r"(B[l * 2 + 1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(B[l * 2]));
    for (int i = 0; i < 4; ++i) C[l * 4 + i] = d[i];
}
extern "C" __global__ void mma_tf32(const float* A, const float* B, float* C) {
    int l = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    unsigned a[4], b[2];
    for (int i = 0; i < 4; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[i]) : "f"(A[l * 4 + i]));
    for (int i = 0; i < 2; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b[i]) : "f"(B[l * 2 + i]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    for (int i = 0; i < 4; ++i) C[l * 4 + i] = d[i];
}
extern "C" __global__ void mma_int(const unsigned* A, const unsigned* B, int* C) {
    int l = threadIdx.x, d[4] = {0, 0, 0, 0}, e[2] = {0, 0};
    unsigned a0 = A[l * 4], a1 = A[l * 4 + 1], a2 = A[l * 4 + 2], a3 = A[l * 4 + 3], b0 = B[l * 2], b1 = B[l * 2 + 1];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(e[0]), "+r"(e[1]) : "r"(a0), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(e[0]), "+r"(e[1]) : "r"(a0), "r"(b0));
    for (int i = 0; i < 4; ++i) C[l * 6 + i] = d[i];
    C[l * 6 + 4] = e[0];
    C[l * 6 + 5] = e[1];
}
extern "C" __global__ void mma_f64(const double* A, const double* B, double* C) {
    int l = threadIdx.x;
    double d0 = C[l * 2], d1 = C[l * 2 + 1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d0), "+d"(d1) : "d"(A[l]), "d"(B[l]));
    C[l * 2] = d0;
    C[l * 2 + 1] = d1;
}
extern "C" __global__ void mma_sparse(const unsigned* A, const unsigned* B, const unsigned* E, float* C) {
    int l = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(A[l * 4]), "r"(A[l * 4 + 1]), "r"(A[l * 4 + 2]), "r"(A[l * 4 + 3]), "r"(B[l * 4]), "r"(B[l * 4 + 1]), "r"(B[l * 4 + 2]), "r"(B[l * 4 + 3]), "r"(E[l]));
    for (int i = 0; i < 4; ++i) C[l * 4 + i] = d[i];
}
