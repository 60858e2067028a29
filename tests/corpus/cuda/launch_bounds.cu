// Launch bounds, maximum registers, block size attributes.
template <int N>
__device__ float heavy(const float* x, int i) {
    float v[N];
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = x[i + k];
    float s = 0.f;
#pragma unroll
    for (int k = 0; k < N; ++k) s += v[k] * v[N - 1 - k];
    return s;
}
extern "C" __global__ void __launch_bounds__(256) bounds_1(const float* x, float* y) { y[threadIdx.x] = heavy<8>(x, threadIdx.x); }
extern "C" __global__ void __launch_bounds__(128, 4) bounds_2(const float* x, float* y) { y[threadIdx.x] = heavy<16>(x, threadIdx.x); }
extern "C" __global__ void __maxnreg__(32) max_regs(const float* x, float* y) { y[threadIdx.x] = heavy<12>(x, threadIdx.x); }
extern "C" __global__ void __launch_bounds__(1024, 1) bounds_3(const double* x, double* y) { y[threadIdx.x] = x[threadIdx.x] + 1.0; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((64, 2, 1), (2, 1, 1)) sized(float* y) { y[blockIdx.x * 128 + threadIdx.y * 64 + threadIdx.x] = 1.f; }
#endif
