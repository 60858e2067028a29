// A kernel for each kind of failure. `bug` marks the lines that must be named; `x` has 64 elements.

extern "C" {

// What assert() calls, which the compiler's wheel has no header for.
__device__ void __assertfail(const char *what, const char *file, unsigned line, const char *function, size_t bytes);

__global__ void right(int *x) {
    x[threadIdx.x] = threadIdx.x;
}

__global__ void out_of_bounds(int *x) {
    x[threadIdx.x + 1] = 1;  // bug
}

__global__ void misaligned(char *x) {
    *reinterpret_cast<int *>(x + 2 * threadIdx.x) = 1;  // bug
}

__global__ void null_pointer(int *x) {
    x[threadIdx.x] = 1;  // bug
}

__global__ void warp_race(int *x) {
    __shared__ int all[32];
    all[threadIdx.x] = threadIdx.x;  // bug
    x[threadIdx.x] = all[31 - threadIdx.x];  // bug
}

__global__ void missing_barrier(int *x) {
    __shared__ int all[64];
    all[threadIdx.x] = threadIdx.x;  // bug
    x[threadIdx.x] = all[63 - threadIdx.x];  // bug
}

__global__ void grid_race(int *x) {
    x[0] = blockIdx.x;  // bug
}

__global__ void uninitialised(const int *from, int *x) {
    x[threadIdx.x] = from[threadIdx.x] > 0;  // bug
}

__global__ void divergent_barrier(int *x) {
    if (threadIdx.x < 16)
        __syncthreads();  // bug
    x[threadIdx.x] = 1;
}

__global__ void deadlock(int *x) {
    while (atomicAdd(x, 0) == 0)  // bug
        ;
}

__global__ void budget(int *x) {
    while (atomicAdd(x, 1) >= 0)  // bug
        ;
}

__global__ void trap(int *x) {
    if (threadIdx.x == 5)
        __trap();  // bug
    x[threadIdx.x] = 1;
}

__global__ void assertion(int *x) {
    if (threadIdx.x == 7)
        __assertfail("threadIdx.x < 7", "kernels.cu", 1, "assertion", 1);  // bug
    x[threadIdx.x] = 1;
}

__global__ void unwritten(int *x) {
    if (threadIdx.x != 9)
        x[threadIdx.x] = 1;
}

// What the last block writes depends on whether the first one has begun.
__global__ void depends_on_order(int *x) {
    if (blockIdx.x == 0)
        atomicExch(x, 1);
    else if (blockIdx.x == gridDim.x - 1)
        x[1] = atomicAdd(x, 0);
}

}
