// Matrix transpose through a padded shared tile; several element types.
template <typename T, int TILE, int ROWS>
__device__ void transpose_body(const T* __restrict__ in, T* __restrict__ out, int w, int h) {
    __shared__ T tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS)
        if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS)
        if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void transpose_f32(const float* in, float* out, int w, int h) { transpose_body<float, 32, 8>(in, out, w, h); }
extern "C" __global__ void transpose_f64(const double* in, double* out, int w, int h) { transpose_body<double, 16, 4>(in, out, w, h); }
extern "C" __global__ void transpose_u8(const unsigned char* in, unsigned char* out, int w, int h) { transpose_body<unsigned char, 32, 16>(in, out, w, h); }
extern "C" __global__ void transpose_inplace(int* m, int n) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n && c < r) { int a = m[r * n + c]; m[r * n + c] = m[c * n + r]; m[c * n + r] = a; }
}
