// Double-precision math library with its slow paths (local-memory Payne-Hanek reduction).
#define K1(NAME, EXPR) extern "C" __global__ void d_##NAME(const double* a, const double* b, double* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { double x = a[i], y = b[i]; o[i] = EXPR; } }
K1(sin, sin(x)) K1(cos, cos(x)) K1(exp, exp(x)) K1(log, log(x)) K1(sqrt, sqrt(x) + rsqrt(y)) K1(div, x / y) K1(tanh, tanh(x)) K1(atan2, atan2(x, y)) K1(floor, floor(x) + round(y)) K1(cbrt, cbrt(x))
