// wmma types that came with sm_80: bf16, tf32, f64.
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
extern "C" __global__ void wmma_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.f);
    int r = blockIdx.y * 16, q = blockIdx.x * 16;
    for (int kk = 0; kk < k; kk += 16) {
        wmma::load_matrix_sync(a, A + r * k + kk, k);
        wmma::load_matrix_sync(b, B + q * k + kk, k);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
extern "C" __global__ void wmma_tf32(const float* A, const float* B, float* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
    wmma::fill_fragment(c, 0.f);
    int r = blockIdx.y * 16, q = blockIdx.x * 16;
    for (int kk = 0; kk < k; kk += 8) {
        wmma::load_matrix_sync(a, A + r * k + kk, k);
        wmma::load_matrix_sync(b, B + kk * n + q, n);
#pragma unroll
        for (int i = 0; i < a.num_elements; ++i) a.x[i] = wmma::__float_to_tf32(a.x[i]);
#pragma unroll
        for (int i = 0; i < b.num_elements; ++i) b.x[i] = wmma::__float_to_tf32(b.x[i]);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
extern "C" __global__ void wmma_f64(const double* A, const double* B, double* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
    int r = blockIdx.y * 8, q = blockIdx.x * 8;
    wmma::load_matrix_sync(c, C + r * n + q, n, wmma::mem_row_major);
    for (int kk = 0; kk < k; kk += 4) {
        wmma::load_matrix_sync(a, A + r * k + kk, k);
        wmma::load_matrix_sync(b, B + q * k + kk, k);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
