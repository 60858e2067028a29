#include "cuda_min.h"
extern "C" __global__ void __launch_bounds__(256) reduce(const int *in, int *out, int n) {
    static __shared__ int s[256];
    int t = tid_x(), acc = 0;
    for (int i = global_id(); i < n; i += nctaid_x() * 256) acc += in[i];
    s[t] = acc;
    barrier();
    for (int w = 128; w > 0; w >>= 1) {
        if (t < w) s[t] += s[t + w];
        barrier();
    }
    if (t == 0) __atomic_fetch_add(out, s[0], __ATOMIC_RELAXED);
}
#if __CUDA_ARCH__ >= 700
extern "C" __global__ void warp_max(const float *in, float *out) {
    float v = in[global_id()];
    for (int d = 16; d; d >>= 1) v = __builtin_fmaxf(v, __nvvm_shfl_sync_bfly_f32(~0u, v, d, 31));
    if ((tid_x() & 31) == 0) out[global_id() / 32] = v;
}
#endif
