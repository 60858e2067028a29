// y = alpha * x + y with a grid-stride loop, for several element types.
template <typename T>
__global__ void axpy(T alpha, const T* __restrict__ x, T* __restrict__ y, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        y[i] = alpha * x[i] + y[i];
}
template __global__ void axpy<float>(float, const float*, float*, size_t);
template __global__ void axpy<double>(double, const double*, double*, size_t);
template __global__ void axpy<int>(int, const int*, int*, size_t);
template __global__ void axpy<long long>(long long, const long long*, long long*, size_t);
template __global__ void axpy<short>(short, const short*, short*, size_t);
template __global__ void axpy<unsigned char>(unsigned char, const unsigned char*, unsigned char*, size_t);

extern "C" __global__ void saxpy4(float alpha, const float4* __restrict__ x, float4* __restrict__ y, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 a = x[i], b = y[i];
    b.x = fmaf(alpha, a.x, b.x);
    b.y = fmaf(alpha, a.y, b.y);
    b.z = fmaf(alpha, a.z, b.z);
    b.w = fmaf(alpha, a.w, b.w);
    y[i] = b;
}
