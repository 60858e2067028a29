// Loads and stores of every vector type and width, in global and shared memory, and bit casts between them.
#define MOVE(T) extern "C" __global__ void move_##T(const T* a, T* o, int n) { __shared__ T s[64]; int t = threadIdx.x & 63; if (t < n) s[t] = a[t]; __syncthreads(); if (t < n) o[t] = s[(n - 1 - t) & 63]; }
MOVE(char2) MOVE(char3) MOVE(uchar4) MOVE(short2) MOVE(short4) MOVE(ushort3) MOVE(int2) MOVE(int3) MOVE(uint4) MOVE(longlong2) MOVE(ulonglong2) MOVE(float2) MOVE(float3) MOVE(float4) MOVE(double2) MOVE(double3)
extern "C" __global__ void bit_casts(const float* f, const double* d, const unsigned* u, unsigned long long* o, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    o[3 * i] = __float_as_uint(f[i]) + (unsigned long long)__double_as_longlong(d[i]);
    o[3 * i + 1] = (unsigned long long)u[2 * i] << 32 | u[2 * i + 1];
    unsigned long long v = o[3 * i];
    o[3 * i + 2] = (unsigned short)(v >> 16) | (unsigned long long)(short)(v >> 48) << 8;
}
