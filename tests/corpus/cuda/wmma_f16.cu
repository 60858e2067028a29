// One warp computes a 16x16 tile with nvcuda::wmma, f16 inputs; several shapes, layouts and accumulators.
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
template <int M, int N, int K, typename ALay, typename BLay, typename Acc>
__global__ void wmma_gemm(const half* A, const half* B, Acc* C, int m, int n, int k, Acc scale) {
    wmma::fragment<wmma::matrix_a, M, N, K, half, ALay> a;
    wmma::fragment<wmma::matrix_b, M, N, K, half, BLay> b;
    wmma::fragment<wmma::accumulator, M, N, K, Acc> c, d;
    wmma::fill_fragment(c, (Acc)0.0f);
    int r = blockIdx.y * M, q = blockIdx.x * N;
    constexpr bool arow = __is_same(ALay, wmma::row_major), brow = __is_same(BLay, wmma::row_major);
    for (int kk = 0; kk < k; kk += K) {
        wmma::load_matrix_sync(a, arow ? A + r * k + kk : A + kk * m + r, arow ? k : m);
        wmma::load_matrix_sync(b, brow ? B + kk * n + q : B + q * k + kk, brow ? n : k);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::load_matrix_sync(d, C + r * n + q, n, wmma::mem_row_major);
#pragma unroll
    for (int i = 0; i < d.num_elements; ++i) d.x[i] = c.x[i] * scale + d.x[i];
    wmma::store_matrix_sync(C + r * n + q, d, n, wmma::mem_row_major);
}
using Row = wmma::row_major;
using Col = wmma::col_major;
template __global__ void wmma_gemm<16, 16, 16, Row, Row, float>(const half*, const half*, float*, int, int, int, float);
template __global__ void wmma_gemm<16, 16, 16, Row, Col, half>(const half*, const half*, half*, int, int, int, half);
template __global__ void wmma_gemm<32, 8, 16, Col, Row, float>(const half*, const half*, float*, int, int, int, float);
template __global__ void wmma_gemm<8, 32, 16, Col, Col, half>(const half*, const half*, half*, int, int, int, half);
