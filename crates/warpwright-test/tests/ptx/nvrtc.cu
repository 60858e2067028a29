// The source of nvrtc.ptx: kernels that a program of cudarc compiles with NVRTC, and `-lineinfo`.

struct Scale {
    unsigned count;
    double factor;
};

__constant__ float bias[2];

extern "C" __global__ void scale(Scale by, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < by.count) y[i] = float(by.factor * x[i]) + bias[i % 2];
}

extern "C" __global__ void scale_even(Scale by, const float *x, float *y) {
    unsigned i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < by.count) y[i] = float(by.factor * x[i]) + bias[0];
}

extern "C" __global__ void scale_in_place(Scale by, float *x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < by.count) x[i] = float(by.factor * x[i]);
}
