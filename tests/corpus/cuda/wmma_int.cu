// Integer tensor-core tiles with nvcuda::wmma: s8, u8, s4, b1.
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_s8(const signed char* A, const signed char* B, int* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> c;
    wmma::fill_fragment(c, 0);
    int r = blockIdx.y * 16, q = blockIdx.x * 16;
    for (int kk = 0; kk < k; kk += 16) {
        wmma::load_matrix_sync(a, A + r * k + kk, k);
        wmma::load_matrix_sync(b, B + q * k + kk, k);
        wmma::mma_sync(c, a, b, c, true);
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
extern "C" __global__ void wmma_u8(const unsigned char* A, const unsigned char* B, int* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, unsigned char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, unsigned char, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> c;
    wmma::fill_fragment(c, 0);
    int r = blockIdx.y * 32, q = blockIdx.x * 8;
    for (int kk = 0; kk < k; kk += 16) {
        wmma::load_matrix_sync(a, A + r * k + kk, k);
        wmma::load_matrix_sync(b, B + kk * n + q, n);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + q * 32 + r, c, 32, wmma::mem_col_major);
}
extern "C" __global__ void wmma_s4(const int* A, const int* B, int* C, int n, int k) {
    wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::s4, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::s4, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> c;
    wmma::fill_fragment(c, 0);
    int r = blockIdx.y * 8, q = blockIdx.x * 8;
    for (int kk = 0; kk < k; kk += 32) {
        wmma::load_matrix_sync(a, A + (r * k + kk) / 8, k);
        wmma::load_matrix_sync(b, B + (q * k + kk) / 8, k);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
extern "C" __global__ void wmma_b1(const unsigned* A, const unsigned* B, int* C, int n, int k) {
    using namespace wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> c;
    wmma::fill_fragment(c, 0);
    int r = blockIdx.y * 8, q = blockIdx.x * 8;
    for (int kk = 0; kk < k; kk += 128) {
        wmma::load_matrix_sync(a, A + (r * k + kk) / 32, k);
        wmma::load_matrix_sync(b, B + (q * k + kk) / 32, k);
        wmma::bmma_sync(c, a, b, c, bmmaBitOpXOR, bmmaAccumulateOpPOPC);
#if __CUDA_ARCH__ >= 800
        wmma::bmma_sync(c, a, b, c, bmmaBitOpAND, bmmaAccumulateOpPOPC);
#endif
    }
    wmma::store_matrix_sync(C + r * n + q, c, n, wmma::mem_row_major);
}
