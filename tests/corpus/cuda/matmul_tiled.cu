// C = A * B with 16x16 tiles, and a register-blocked 64x64 variant.
extern "C" __global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float acc = 0.f;
    for (int k0 = 0; k0 < K; k0 += 16) {
        a[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.f;
        b[ty][tx] = col < N && k0 + ty < K ? B[(k0 + ty) * N + col] : 0.f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) acc = fmaf(a[ty][k], b[k][tx], acc);
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_blocked(const float* __restrict__ A, const float* __restrict__ B,
                                                                    float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[8][64], b[8][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        for (int e = t; e < 512; e += 256) {
            a[e % 8][e / 8] = A[(r0 + e / 8) * K + k0 + e % 8];
            b[e / 64][e % 64] = B[(k0 + e / 64) * N + c0 + e % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float4 av = *(const float4*)&a[k][ty * 4], bv = *(const float4*)&b[k][tx * 4];
            float x[4] = {av.x, av.y, av.z, av.w}, y[4] = {bv.x, bv.y, bv.z, bv.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *(float4*)&C[(r0 + ty * 4 + i) * N + c0 + tx * 4] = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
