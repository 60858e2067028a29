// Longer single-precision functions: gamma, bessel, inverse error functions, pow, fmod, remainder, frexp, hypot, norm.
#define K1(NAME, EXPR) extern "C" __global__ void m_##NAME(const float* a, const float* b, float* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float x = a[i], y = b[i]; o[i] = EXPR; } }
__device__ float frexp_sum(float x) { int e; float m = frexpf(x, &e); return m + e; }
__device__ float modf_sum(float x) { float w; float f = modff(x, &w); return f * 2 + w; }
__device__ float remquo_sum(float x, float y) { int q; float r = remquof(x, y, &q); return r + q; }
K1(tgammaf, tgammaf(x)) K1(lgammaf, lgammaf(x)) K1(j0f, j0f(x)) K1(powf, powf(x, y)) K1(fmodf, fmodf(x, y)) K1(remainderf, remainderf(x, y)) K1(hypotf, hypotf(x, y))
K1(atan2f, atan2f(x, y)) K1(erfinvf, erfinvf(x)) K1(normcdff, normcdff(x)) K1(frexp, frexp_sum(x)) K1(modf, modf_sum(x)) K1(remquo, remquo_sum(x, y)) K1(ldexpf, ldexpf(x, (int)y))
K1(nextafterf, nextafterf(x, y)) K1(fdimf, fdimf(x, y)) K1(norm3df, norm3df(x, y, 1.f)) K1(rcbrtf, rcbrtf(x)) K1(sinpif, sinpif(x)) K1(logbf, logbf(x)) K1(acoshf, acoshf(x))
