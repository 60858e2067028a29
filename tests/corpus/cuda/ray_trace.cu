// Spheres and a plane, one bounce, f32; structs in constant memory.
struct V { float x, y, z; };
__device__ __forceinline__ V operator+(V a, V b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ __forceinline__ V operator-(V a, V b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ __forceinline__ V operator*(V a, float s) { return {a.x * s, a.y * s, a.z * s}; }
__device__ __forceinline__ float dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __forceinline__ V unit(V a) { return a * rsqrtf(dot(a, a)); }
struct Sphere { V c; float r; V colour; float mirror; };
__constant__ Sphere scene[3] = {{{0, 0, 5}, 1.f, {1, 0.2f, 0.2f}, 0.3f}, {{1.5f, 0.5f, 4}, 0.7f, {0.2f, 1, 0.2f}, 0.5f}, {{-1.2f, -0.3f, 3.5f}, 0.5f, {0.3f, 0.3f, 1}, 0.1f}};
__device__ int hit(V o, V d, float &t) {
    int best = -1;
    for (int i = 0; i < 3; ++i) {
        V oc = o - scene[i].c;
        float b = dot(oc, d), q = b * b - dot(oc, oc) + scene[i].r * scene[i].r;
        if (q < 0.f) continue;
        float s = -b - sqrtf(q);
        if (s > 1e-3f && s < t) { t = s; best = i; }
    }
    if (d.y < -1e-4f) { float s = (-1.f - o.y) / d.y; if (s > 1e-3f && s < t) { t = s; best = 3; } }
    return best;
}
extern "C" __global__ void ray_trace(uchar4 *img, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    V o = {0, 0, 0}, d = unit(V{(x - w * 0.5f) / h, (h * 0.5f - y) / h, 1.f}), c = {0, 0, 0}, light = unit(V{-1, 2, -1});
    float weight = 1.f;
    for (int bounce = 0; bounce < 3; ++bounce) {
        float t = 1e9f;
        int k = hit(o, d, t);
        if (k < 0) { c = c + V{0.5f, 0.7f, 1.f} * (weight * (0.5f + 0.5f * d.y)); break; }
        V p = o + d * t, n = k == 3 ? V{0, 1, 0} : unit(p - scene[k].c), base = k == 3 ? (((int)floorf(p.x) + (int)floorf(p.z)) & 1 ? V{1, 1, 1} : V{0.1f, 0.1f, 0.1f}) : scene[k].colour;
        float m = k == 3 ? 0.1f : scene[k].mirror, far = 1e9f, lit = fmaxf(0.f, dot(n, light));
        if (hit(p, light, far) >= 0) lit *= 0.2f;
        c = c + base * (weight * (1.f - m) * (0.1f + lit));
        weight *= m;
        d = d - n * (2.f * dot(d, n));
        o = p;
    }
    img[y * w + x] = make_uchar4(__saturatef(c.x) * 255.f, __saturatef(c.y) * 255.f, __saturatef(c.z) * 255.f, 255);
}
