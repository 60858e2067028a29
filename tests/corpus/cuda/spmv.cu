// Sparse matrix-vector products: CSR one thread a row, CSR one warp a row, COO with atomics, ELL.
extern "C" __global__ void spmv_csr(const int* ptr, const int* col, const float* val, const float* x, float* y, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.f;
    for (int j = ptr[r]; j < ptr[r + 1]; ++j) s += val[j] * x[col[j]];
    y[r] = s;
}
extern "C" __global__ void spmv_csr_warp(const int* __restrict__ ptr, const int* __restrict__ col, const double* __restrict__ val, const double* __restrict__ x, double* __restrict__ y, int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    double s = 0;
    for (int j = ptr[r] + lane; j < ptr[r + 1]; j += 32) s += val[j] * x[col[j]];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (lane == 0) y[r] = s;
}
extern "C" __global__ void spmv_coo(const int2* rc, const float* val, const float* x, float* y, int nnz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nnz) atomicAdd(&y[rc[i].x], val[i] * x[rc[i].y]);
}
extern "C" __global__ void bfs_level(const int* ptr, const int* adj, int* dist, int* frontier_next, int* count, const int* frontier, int size, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int u = frontier[i];
    for (int j = ptr[u]; j < ptr[u + 1]; ++j)
        if (atomicCAS(&dist[adj[j]], -1, level) == -1) frontier_next[atomicAdd(count, 1)] = adj[j];
}
