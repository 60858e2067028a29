// pow, fmod, erf, gamma and sincos in double precision.
#define K1(NAME, EXPR) extern "C" __global__ void d_##NAME(const double* a, const double* b, double* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { double x = a[i], y = b[i]; o[i] = EXPR; } }
__device__ double both(double x) { double s, c; sincos(x, &s, &c); return s * c; }
K1(pow, pow(x, y)) K1(fmod, fmod(x, y)) K1(erf, erf(x)) K1(tgamma, tgamma(x)) K1(sincos, both(x)) K1(hypot, hypot(x, y)) K1(asin, asin(x)) K1(log1p, log1p(x)) K1(exp2, exp2(x)) K1(ilogb, ilogb(x))
