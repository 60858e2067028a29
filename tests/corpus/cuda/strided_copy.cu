// 2-D strided copy and gather / scatter loops with different index widths.
extern "C" __global__ void strided_copy(const int* src, int* dst, int rows, int cols, int src_ld, int dst_ld) {
    for (int r = blockIdx.y * blockDim.y + threadIdx.y; r < rows; r += gridDim.y * blockDim.y)
        for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += gridDim.x * blockDim.x)
            dst[r * dst_ld + c] = src[r * src_ld + c];
}
extern "C" __global__ void gather_u16(const unsigned short* src, const unsigned* idx, unsigned short* dst, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) dst[i] = src[idx[i]];
}
extern "C" __global__ void scatter_s8(const signed char* src, const long long* idx, signed char* dst, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) dst[idx[i]] = src[i];
}
extern "C" __global__ void reverse_bytes(uint4* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uint4 v = data[i];
        uint4 o;
        o.x = __byte_perm(v.w, 0, 0x0123);
        o.y = __byte_perm(v.z, 0, 0x0123);
        o.z = __byte_perm(v.y, 0, 0x0123);
        o.w = __byte_perm(v.x, 0, 0x0123);
        data[i] = o;
    }
}
