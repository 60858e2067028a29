// mma.sync m16n8k16 (m16n8k8 on sm_75) with ldmatrix, through inline asm. One warp: C[16x8] += A[16xK] * B[Kx8].
#include <cuda_fp16.h>
__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void mma_f16(const half* A, const half* B, float* C, int n, int k) {
    __shared__ __align__(16) half a[16][24], b[8][24];
    int lane = threadIdx.x & 31, r0 = blockIdx.y * 16, c0 = blockIdx.x * 8;
    float d[4] = {0, 0, 0, 0};
    for (int kk = 0; kk < k; kk += 16) {
        *(uint4*)&a[lane / 2][lane % 2 * 8] = *(const uint4*)&A[(r0 + lane / 2) * k + kk + lane % 2 * 8];
        if (lane < 16) *(uint4*)&b[lane / 2][lane % 2 * 8] = *(const uint4*)&B[(c0 + lane / 2) * k + kk + lane % 2 * 8];
        __syncwarp();
        unsigned ra[4], rb[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(smem(&a[lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(rb[0]), "=r"(rb[1]) : "r"(smem(&b[lane % 8][lane / 8 % 2 * 8])));
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
#else
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[2]), "r"(ra[3]), "r"(rb[1]));
#endif
        __syncwarp();
    }
    int g = lane / 4, t = lane % 4;
    *(float2*)&C[(r0 + g) * n + c0 + 2 * t] = make_float2(d[0], d[1]);
    *(float2*)&C[(r0 + g + 8) * n + c0 + 2 * t] = make_float2(d[2], d[3]);
}
// ldmatrix.trans, f16 accumulators.
extern "C" __global__ void mma_f16_trans(const half* A, const half* B, half* C, int n, int k) {
    __shared__ __align__(16) half b[16][8];
    int lane = threadIdx.x & 31, r0 = blockIdx.y * 16, c0 = blockIdx.x * 8, g = lane / 4, t = lane % 4;
    unsigned d[2] = {0, 0};
    for (int kk = 0; kk < k; kk += 16) {
        if (lane < 16) *(uint4*)&b[lane][0] = *(const uint4*)&B[(kk + lane) * n + c0];
        __syncwarp();
        unsigned rb[2], a0 = *(const unsigned*)&A[(r0 + g) * k + kk + 2 * t], a1 = *(const unsigned*)&A[(r0 + g + 8) * k + kk + 2 * t];
        unsigned a2 = *(const unsigned*)&A[(r0 + g) * k + kk + 2 * t + 8], a3 = *(const unsigned*)&A[(r0 + g + 8) * k + kk + 2 * t + 8];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(smem(&b[lane % 16][0])));
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                     : "+r"(d[0]), "+r"(d[1]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(rb[0]), "r"(rb[1]));
#else
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                     : "+r"(d[0]), "+r"(d[1]) : "r"(a0), "r"(a1), "r"(rb[0]));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                     : "+r"(d[0]), "+r"(d[1]) : "r"(a2), "r"(a3), "r"(rb[1]));
#endif
        __syncwarp();
    }
    *(unsigned*)&C[(r0 + g) * n + c0 + 2 * t] = d[0];
    *(unsigned*)&C[(r0 + g + 8) * n + c0 + 2 * t] = d[1];
}
