#include "cuda_min.h"
extern "C" __global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K) {
    static __shared__ float a[16][16], b[16][16];
    int tx = tid_x(), ty = __nvvm_read_ptx_sreg_tid_y(), row = __nvvm_read_ptx_sreg_ctaid_y() * 16 + ty, col = ctaid_x() * 16 + tx;
    float acc = 0;
    for (int k = 0; k < K; k += 16) {
        a[ty][tx] = row < M && k + tx < K ? A[row * K + k + tx] : 0;
        b[ty][tx] = col < N && k + ty < K ? B[(k + ty) * N + col] : 0;
        barrier();
        for (int j = 0; j < 16; ++j) acc += a[ty][j] * b[j][tx];
        barrier();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
