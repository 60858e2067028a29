// The source of nvcc.ptx: kernels of CUDA C++, compiled by nvcc with `-lineinfo`. They count numbers below 16.

extern __shared__ unsigned counts[];

__global__ void histogram(const unsigned char *x, unsigned *bins) {
    if (threadIdx.x < 16) counts[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&counts[x[blockIdx.x * blockDim.x + threadIdx.x]], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

__global__ void uninitialised(const unsigned char *x, unsigned *bins) {
    atomicAdd(&counts[x[blockIdx.x * blockDim.x + threadIdx.x]], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

__global__ void racing(const unsigned char *x, unsigned *bins) {
    if (threadIdx.x < 16) counts[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&counts[x[blockIdx.x * blockDim.x + threadIdx.x]], 1);
    __syncthreads();
    if (threadIdx.x < 16) bins[threadIdx.x] += counts[threadIdx.x];
}
