// sm_90a: a warp-specialised GEMM tile: a producer warpgroup feeds 128-byte-swizzled tiles by TMA, a consumer warpgroup runs wgmma m64n64k16.
#include <cuda.h>
#include <cuda_bf16.h>
__device__ __forceinline__ unsigned sp(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void wait(unsigned bar, unsigned parity) {
    asm volatile("{\n\t.reg .pred p;\nWAIT_%=:\n\tmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n\t@!p bra WAIT_%=;\n\t}" ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ unsigned long long desc(unsigned a) { return (unsigned long long)((a & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
constexpr int STAGES = 3;
struct Tiles { __nv_bfloat16 a[STAGES][64 * 64], b[STAGES][64 * 64]; };
extern "C" __global__ void __launch_bounds__(256, 1) wgmma_pipeline(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float *C, int n, int k) {
    extern __shared__ __align__(1024) unsigned char raw[];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    Tiles &s = *(Tiles *)raw;
    int steps = k / 64, row = blockIdx.y * 64, col = blockIdx.x * 64;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sp(&full[i])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(sp(&empty[i])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0)
            for (int i = 0; i < steps; ++i) {
                int st = i % STAGES;
                if (i >= STAGES) wait(sp(&empty[st]), (i / STAGES - 1) & 1);
                asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(sp(&full[st])), "r"(2 * 64 * 64 * 2) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(sp(s.a[st])), "l"(&A), "r"(i * 64), "r"(row), "r"(sp(&full[st])) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(sp(s.b[st])), "l"(&B), "r"(i * 64), "r"(col), "r"(sp(&full[st])) : "memory");
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
        float d[32];
        for (int i = 0; i < 32; ++i) d[i] = 0.f;
        for (int i = 0; i < steps; ++i) {
            int st = i % STAGES;
            wait(sp(&full[st]), (i / STAGES) & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int q = 0; q < 4; ++q)
                asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
                             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                               "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                             : "l"(desc(sp(s.a[st]) + q * 32)), "l"(desc(sp(s.b[st]) + q * 32)));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(sp(&empty[st])) : "memory");
        }
        int t = threadIdx.x - 128, w = t / 32, g = t % 32 / 4, c = t % 4 * 2;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            *(float2 *)&C[(size_t)(row + w * 16 + g) * n + col + j * 8 + c] = make_float2(d[4 * j], d[4 * j + 1]);
            *(float2 *)&C[(size_t)(row + w * 16 + g + 8) * n + col + j * 8 + c] = make_float2(d[4 * j + 2], d[4 * j + 3]);
        }
    }
}
