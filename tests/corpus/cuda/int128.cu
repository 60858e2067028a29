// 128-bit integers: add, multiply, shift, compare, divide; modular multiplication.
typedef unsigned __int128 u128;
typedef __int128 s128;
extern "C" __global__ void int128_ops(const u128* a, const u128* b, u128* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u128 x = a[i], y = b[i];
    o[6 * i] = x + y; o[6 * i + 1] = x - y; o[6 * i + 2] = x * y; o[6 * i + 3] = x << (int)(y & 127); o[6 * i + 4] = (u128)((s128)x >> 5); o[6 * i + 5] = x < y ? x : y;
}
extern "C" __global__ void int128_div(const u128* a, const u128* b, u128* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { o[2 * i] = a[i] / (b[i] | 1); o[2 * i + 1] = (u128)((s128)a[i] % (s128)(b[i] | 1)); }
}
extern "C" __global__ void mulmod64(const unsigned long long* a, const unsigned long long* b, unsigned long long* o, unsigned long long m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = (unsigned long long)((u128)a[i] * b[i] % m);
}
