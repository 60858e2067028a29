// Small dense solvers: LU without pivoting in shared memory, Cholesky, Jacobi eigenvalues of 3x3, quaternion rotation, k-means step.
extern "C" __global__ void lu_factor(double *A, int n) {
    extern __shared__ double s[];
    double *a = A + (size_t)blockIdx.x * n * n;
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) s[i] = a[i];
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        double inv = 1.0 / s[k * n + k];
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) s[i * n + k] *= inv;
        __syncthreads();
        int m = n - k - 1;
        for (int e = threadIdx.x; e < m * m; e += blockDim.x) { int i = k + 1 + e / m, j = k + 1 + e % m; s[i * n + j] -= s[i * n + k] * s[k * n + j]; }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) a[i] = s[i];
}
extern "C" __global__ void cholesky4(const float *A, float *L, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float l[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        float d = A[t * 16 + j * 5];
#pragma unroll
        for (int k = 0; k < j; ++k) d -= l[j][k] * l[j][k];
        l[j][j] = sqrtf(d);
#pragma unroll
        for (int i = j + 1; i < 4; ++i) {
            float v = A[t * 16 + i * 4 + j];
#pragma unroll
            for (int k = 0; k < j; ++k) v -= l[i][k] * l[j][k];
            l[i][j] = v / l[j][j];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) L[t * 16 + i * 4 + j] = j <= i ? l[i][j] : 0.f;
}
extern "C" __global__ void rotate_points(const float4 *q, const float3 *p, float3 *o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 r = q[i];
    float3 v = p[i];
    float inv = rnorm4df(r.x, r.y, r.z, r.w);
    float3 u = make_float3(r.x * inv, r.y * inv, r.z * inv);
    float w = r.w * inv, tx = 2 * (u.y * v.z - u.z * v.y), ty = 2 * (u.z * v.x - u.x * v.z), tz = 2 * (u.x * v.y - u.y * v.x);
    o[i] = make_float3(v.x + w * tx + u.y * tz - u.z * ty, v.y + w * ty + u.z * tx - u.x * tz, v.z + w * tz + u.x * ty - u.y * tx);
}
extern "C" __global__ void kmeans_assign(const float2 *pts, const float2 *centres, int k, int *label, float2 *sums, unsigned *counts, int n) {
    __shared__ float2 c[64];
    if (threadIdx.x < k) c[threadIdx.x] = centres[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = pts[i];
    int best = 0;
    float bd = __int_as_float(0x7f800000);
    for (int j = 0; j < k; ++j) { float dx = p.x - c[j].x, dy = p.y - c[j].y, d = dx * dx + dy * dy; if (d < bd) { bd = d; best = j; } }
    label[i] = best;
    atomicAdd(&sums[best].x, p.x);
    atomicAdd(&sums[best].y, p.y);
    atomicAdd(&counts[best], 1u);
}
