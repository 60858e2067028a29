// Single-precision math library: fast intrinsics and full versions (sinf with its slow path, erf, gamma ...).
#define K1(NAME, EXPR) extern "C" __global__ void m_##NAME(const float* a, float* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float x = a[i]; o[i] = EXPR; } }
K1(sinf, sinf(x)) K1(cosf, cosf(x)) K1(tanf, tanf(x)) K1(expf, expf(x)) K1(exp2f, exp2f(x)) K1(exp10f, exp10f(x)) K1(logf, logf(x)) K1(log2f, log2f(x))
K1(log1pf, log1pf(x)) K1(expm1f, expm1f(x)) K1(tanhf, tanhf(x)) K1(sinhf, sinhf(x)) K1(asinf, asinf(x)) K1(atanf, atanf(x)) K1(erff, erff(x)) K1(erfcf, erfcf(x))
K1(sqrtf, sqrtf(x)) K1(rsqrtf, rsqrtf(x)) K1(cbrtf, cbrtf(x)) K1(fast, __sinf(x) + __cosf(x) * __expf(x) + __logf(x) + __powf(x, 1.5f) + __exp10f(x) + __log2f(x) + __tanf(x))
K1(gelu, 0.5f * x * (1.f + erff(x * 0.70710678f))) K1(sigmoid, 1.f / (1.f + expf(-x))) K1(softplus, log1pf(expf(x)))
