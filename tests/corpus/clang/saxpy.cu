#include "cuda_min.h"
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    for (int i = global_id(); i < n; i += nctaid_x() * ntid_x()) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void daxpy(double a, const double *__restrict__ x, double *__restrict__ y, u64 n) {
    u64 i = global_id();
    if (i < n) y[i] = __builtin_fma(a, x[i], y[i]);
}
