#include "cuda_min.h"
extern "C" __global__ void half_axpy(const _Float16 *x, _Float16 *y, float a, int n) {
    int i = global_id();
    if (i < n) y[i] = (_Float16)(a * (float)x[i] + (float)y[i]);
}
extern "C" __global__ void half_dot(const _Float16 *x, const _Float16 *y, _Float16 *o, int n) {
    _Float16 s = 0;
    for (int i = 0; i < n; ++i) s += x[i] * y[i];
    o[tid_x()] = s > (_Float16)1 ? s : -s;
}
