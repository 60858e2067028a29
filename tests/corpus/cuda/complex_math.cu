// Complex arithmetic: cuda::std::complex and cuComplex; Julia sets and a complex dot product.
#include <cuda/std/complex>
#include <cuComplex.h>
using cplx = cuda::std::complex<float>;
extern "C" __global__ void julia(int *out, int w, int h, float cr, float ci, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    cplx z(3.f * x / w - 1.5f, 3.f * y / h - 1.5f), c(cr, ci);
    int k = 0;
    while (k < limit && cuda::std::norm(z) < 4.f) { z = z * z + c; ++k; }
    out[y * w + x] = k;
}
extern "C" __global__ void complex_dot(const cuDoubleComplex *a, const cuDoubleComplex *b, cuDoubleComplex *out, int n) {
    cuDoubleComplex s = make_cuDoubleComplex(0, 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) s = cuCfma(cuConj(a[i]), b[i], s);
    for (int d = 16; d; d >>= 1) { s.x += __shfl_xor_sync(~0u, s.x, d); s.y += __shfl_xor_sync(~0u, s.y, d); }
    if (threadIdx.x == 0) *out = cuCdiv(s, make_cuDoubleComplex(cuCabs(s) + 1.0, 0));
}
extern "C" __global__ void complex_exp(const cplx *in, cplx *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = cuda::std::exp(in[i]) / (in[i] + cplx(1.f, 0.f));
}
