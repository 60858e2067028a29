// Nested inlined functions and templates: with -lineinfo the PTX gets .loc ... function_name / inlined_at.
template <typename T> __device__ __forceinline__ T square(T x) { return x * x; }
__device__ __forceinline__ float poly(float x) {
    float y = square(x) + 1.f;
    return square(y) - x;
}
struct Acc {
    float total;
    __device__ __forceinline__ void add(float v) { total += poly(v); }
};
__device__ __noinline__ float outside(float x) { return square(x + 1.f); }
extern "C" __global__ void inline_lines(const float* in, float* out, int n) {
    Acc a = {0.f};
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        a.add(in[i]);
        if (in[i] < 0.f) a.total += outside(in[i]);
    }
    out[threadIdx.x] = a.total;
}
