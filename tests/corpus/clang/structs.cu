#include "cuda_min.h"
// Structs by value, recursion, switch tables, function pointers, variable arguments, globals with initialisers.
struct Vec { float x, y, z; };
struct Record { char tag; short s; long long big; double d[3]; };
struct Shape { __device__ virtual float area() const; float k; };
__device__ noinline Vec cross(Vec a, Vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
__device__ noinline Record bump(Record r, int k) { r.tag += k; r.s -= k; r.big ^= k; r.d[k % 3] *= 2; return r; }
__device__ noinline u32 ackermann(u32 m, u32 n) { return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1)); }
__device__ float table[4] = {1, 0.5f, -0.25f, 1e-30f};
#if __clang_major__ > 14
__device__ const char *names[2] = {"first", "second\n"};
#else
__device__ const char names[2][8] = {"first", "second\n"};
#endif
__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
#if __clang_major__ > 14 // older ones cannot emit a pointer to another global
__device__ float *cursor = &table[2];
#else
__device__ float *cursor;
#endif
__device__ int inc(int x) { return x + 1; }
__device__ int twice(int x) { return x * 2; }
extern "C" __global__ void struct_calls(const Vec *a, const Vec *b, Vec *o, Record *r, int n) {
    int i = global_id();
    if (i >= n) return;
    o[i] = cross(a[i], b[i]);
    r[i] = bump(r[i], i & 7);
}
extern "C" __global__ void tables(const int *code, int *out, int n) {
    int i = global_id();
    if (i >= n) return;
    int (*f)(int) = code[i] & 1 ? inc : twice;
    int v = f(i);
    switch (code[i]) {
        case 0: v += primes[i & 7]; break;
        case 1: v *= 3; break;
        case 2: v ^= (int)(table[i & 3] * 100); break;
        case 3: v = ackermann(2, i & 3); break;
        case 4: v = names[i & 1][i % 5]; break;
        case 5: v = (int)*cursor; break;
        case 6: v = __builtin_popcount(v); break;
        case 7: v = v / (i + 1); break;
        default: v = -1;
    }
    out[i] = v;
}
extern "C" __global__ void by_value(Record r, Vec v, double *out) { out[tid_x()] = r.d[tid_x() % 3] + v.z + r.big + r.tag; }
