// Dynamic parallelism (-rdc=true): a kernel that starts another.
extern "C" __global__ void child(float* x, int n, float f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= f;
}
extern "C" __global__ void parent(float* x, const int* offsets, int segments) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= segments) return;
    int n = offsets[s + 1] - offsets[s];
    if (n > 0) child<<<(n + 127) / 128, 128>>>(x + offsets[s], n, s + 1.f);
}
