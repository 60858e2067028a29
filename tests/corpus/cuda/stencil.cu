// Stencils in one, two and three dimensions.
#define R 3
__constant__ float coef[2 * R + 1];
extern "C" __global__ void stencil_1d(const float* in, float* out, int n) {
    __shared__ float s[256 + 2 * R];
    int g = blockIdx.x * 256 + threadIdx.x, l = threadIdx.x + R;
    s[l] = g < n ? in[g] : 0.f;
    if (threadIdx.x < R) {
        s[l - R] = g >= R ? in[g - R] : 0.f;
        s[l + 256] = g + 256 < n ? in[g + 256] : 0.f;
    }
    __syncthreads();
    float acc = 0.f;
#pragma unroll
    for (int k = -R; k <= R; ++k) acc += coef[k + R] * s[l + k];
    if (g < n) out[g] = acc;
}
extern "C" __global__ void stencil_2d(const double* in, double* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    size_t i = (size_t)y * w + x;
    out[i] = 0.25 * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]) - in[i];
}
extern "C" __global__ void stencil_3d(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz, float c0, float c1) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny, i = y * nx + x;
    float below = in[i], here = in[i + plane];
    for (int z = 1; z < nz - 1; ++z) {
        i += plane;
        float above = in[i + plane];
        out[i] = c0 * here + c1 * (below + above + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
        below = here;
        here = above;
    }
}
