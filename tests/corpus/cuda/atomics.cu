// Atomics on every type and operation, global and shared, with and without a used result.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void atomics_i32(int* p, unsigned* u, int* o, int v) {
    int t = threadIdx.x;
    o[0 + t] = atomicAdd(p, v); atomicSub(p + 1, v); o[32 + t] = atomicMin(p + 2, v); atomicMax(p + 3, v); atomicAnd(p + 4, v); o[64 + t] = atomicOr(p + 5, v); atomicXor(p + 6, v);
    o[96 + t] = atomicExch(p + 7, v); o[128 + t] = atomicCAS(p + 8, v, t);
    atomicInc(u, 10u); o[160 + t] = atomicDec(u + 1, 10u); atomicMin(u + 2, (unsigned)v); o[192 + t] = atomicMax(u + 3, (unsigned)v);
}
extern "C" __global__ void atomics_i64(unsigned long long* u, long long* s, unsigned long long* o, unsigned long long v) {
    int t = threadIdx.x;
    o[t] = atomicAdd(u, v); atomicMin(s, (long long)v); o[32 + t] = atomicMax(s + 1, (long long)v); atomicMax(u + 1, v); atomicAnd(u + 2, v); atomicOr(u + 3, v); o[64 + t] = atomicXor(u + 4, v);
    o[96 + t] = atomicExch(u + 5, v); o[128 + t] = atomicCAS(u + 6, v, (unsigned long long)t);
}
extern "C" __global__ void atomics_float(float* f, double* d, half2* h2, half* h, float* o) {
    int t = threadIdx.x;
    o[t] = atomicAdd(f, 1.5f); atomicAdd(f + 1, (float)t); atomicAdd(d, 0.5); o[32 + t] = (float)atomicAdd(d + 1, 0.25); o[64 + t] = atomicExch(f + 2, (float)t);
    atomicAdd(h2, __floats2half2_rn(1.f, 2.f)); atomicAdd(h, __float2half(0.5f));
}
extern "C" __global__ void atomics_bf16(__nv_bfloat162* b2, __nv_bfloat16* b, float* o) {
#if __CUDA_ARCH__ >= 800
    __nv_bfloat162 r = atomicAdd(b2, __floats2bfloat162_rn(1.f, 2.f));
    o[threadIdx.x] = __low2float(r);
    atomicAdd(b, __float2bfloat16(0.5f));
#endif
}
extern "C" __global__ void atomics_shared(const int* in, int* out, float* fout, int n) {
    __shared__ int s[8];
    __shared__ float f;
    __shared__ unsigned long long w;
    __shared__ unsigned short h16;
    int t = threadIdx.x;
    if (t < 8) s[t] = t == 2 ? 0x7fffffff : 0;
    if (t == 0) { f = 0.f; w = 0; h16 = 0; }
    __syncthreads();
    if (t < n) {
        int v = in[t];
        atomicAdd(&s[0], v); atomicMax(&s[1], v); atomicMin(&s[2], v); atomicOr(&s[3], v); atomicXor(&s[4], v);
        int old = atomicExch(&s[5], v);
        atomicCAS(&s[6], 0, old);
        atomicAdd(&f, (float)v);
        atomicAdd(&w, (unsigned long long)v);
        atomicCAS(&h16, (unsigned short)0, (unsigned short)t);
    }
    __syncthreads();
    if (t < 8) out[t] = s[t] + (int)w + h16;
    if (t == 0) *fout = f;
}
extern "C" __global__ void atomics_scoped(int* p, unsigned long long* q, float* f) {
    atomicAdd_block(p, 1); atomicAdd_system(p + 1, 2); atomicCAS_system(q, 1ull, 2ull); atomicMax_block(p + 2, 3); atomicExch_system(p + 3, 4); atomicAdd_system(f, 1.f); atomicAnd_block(p + 4, 5);
}
// float maximum by compare-and-swap
extern "C" __global__ void atomic_max_float(const float* x, float* best, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* p = (int*)best;
    int old = *p;
    while (__int_as_float(old) < x[i]) {
        int seen = atomicCAS(p, old, __float_as_int(x[i]));
        if (seen == old) break;
        old = seen;
    }
}
