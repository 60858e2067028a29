// Built with -rdc=true: external functions and variables, weak and inline symbols, exported device functions.
extern __device__ float external_scale;
extern __device__ float external_function(float x, int k);
extern __constant__ int external_table[];
__device__ int exported_counter = 3;
__device__ float exported_square(float x) { return x * x; }
template <typename T> __device__ __noinline__ T weak_clamp(T v, T lo, T hi) { return v < lo ? lo : v > hi ? hi : v; }
inline __device__ __noinline__ int inline_helper(int x) { static int calls[4]; return ++calls[x & 3]; }
static __device__ __noinline__ float internal_half(float x) { return x * 0.5f; }
extern "C" __global__ void rdc_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = external_function(in[i] * external_scale, external_table[i & 7]);
    out[i] = weak_clamp(exported_square(internal_half(v)), -1.f, 1.f) + weak_clamp<int>(i, 2, 9) + inline_helper(i);
    atomicAdd(&exported_counter, 1);
}
