// __noinline__ functions with structs by value, returned structs, mixed small types, pointers to locals.
struct Vec3 { float x, y, z; };
struct Big { double d[5]; int tag; char name[7]; };
struct Mixed { char c; short s; int i; long long l; bool b; };
struct alignas(16) Quad { int v[4]; };
struct Empty {};
__device__ __noinline__ Vec3 cross(Vec3 a, Vec3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
__device__ __noinline__ Big bump(Big b, int k) { for (int i = 0; i < 5; ++i) b.d[i] += k; b.tag ^= k; b.name[k % 7] = 'x'; return b; }
__device__ __noinline__ Mixed twist(Mixed m, char c, short s, unsigned char u, bool flag) { m.c += c; m.s -= s; m.i ^= u; m.l = flag ? m.l << 1 : -m.l; m.b = !m.b; return m; }
__device__ __noinline__ Quad rotate(Quad q, Empty) { return {{q.v[1], q.v[2], q.v[3], q.v[0]}}; }
__device__ __noinline__ void swap_ptr(int* a, int* b) { int t = *a; *a = *b; *b = t; }
__device__ __noinline__ unsigned char low(int x) { return (unsigned char)x; }
__device__ __noinline__ double mixdown(float f, double d, long long l, const Vec3& v) { return f * d + l + v.x; }
extern "C" __global__ void struct_calls(const Vec3* a, const Vec3* b, Vec3* o, Big* big, Mixed* mixed, Quad* quads, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Vec3 c = cross(a[i], b[i]);
    int p = i, q = 2 * i;
    swap_ptr(&p, &q);
    c.x += (float)mixdown(c.y, c.z, p - q, c);
    o[i] = c;
    big[i] = bump(big[i], low(i + p));
    mixed[i] = twist(mixed[i], 3, 5, 250, i & 1);
    quads[i] = rotate(quads[i], Empty());
}
