// Integer division and remainder: variable, constant and power-of-two divisors at all widths.
template <typename T>
__device__ void div_body(const T* a, const T* b, T* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T x = a[i], y = b[i] ? b[i] : (T)1;
    o[6 * i] = x / y; o[6 * i + 1] = x % y; o[6 * i + 2] = x / (T)7; o[6 * i + 3] = x % (T)10; o[6 * i + 4] = x / (T)16; o[6 * i + 5] = x % (T)64;
}
extern "C" __global__ void div_s32(const int* a, const int* b, int* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void div_u32(const unsigned* a, const unsigned* b, unsigned* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void div_s64(const long long* a, const long long* b, long long* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void div_u64(const unsigned long long* a, const unsigned long long* b, unsigned long long* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void div_s16(const short* a, const short* b, short* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void div_u8(const unsigned char* a, const unsigned char* b, unsigned char* o, int n) { div_body(a, b, o, n); }
extern "C" __global__ void gcd_pairs(const unsigned* a, const unsigned* b, unsigned* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    while (y) { unsigned t = x % y; x = y; y = t; }
    o[i] = x;
}
