// Philox4x32-10, xorshift and PCG generators; dropout.
__device__ uint4 philox(uint4 c, uint2 k) {
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}
extern "C" __global__ void philox_fill(uint4* out, unsigned long long seed, unsigned long long offset, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) out[i] = philox(make_uint4((unsigned)(offset + i), (unsigned)((offset + i) >> 32), 0, 0), make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
}
extern "C" __global__ void philox_normal(float2* out, unsigned long long seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 r = philox(make_uint4(i, 0, 0, 0), make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
    float u = (r.x + 1.0f) * 2.3283064e-10f, v = r.y * 2.3283064e-10f, s, c;
    float m = sqrtf(-2.f * logf(u));
    sincospif(2.f * v, &s, &c);
    out[i] = make_float2(m * c, m * s);
}
extern "C" __global__ void dropout(const float* x, float* y, unsigned char* mask, float p, unsigned long long seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    uint4 r = philox(make_uint4(i, 1, 2, 3), make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
    unsigned w[4] = {r.x, r.y, r.z, r.w};
    float inv = 1.f / (1.f - p);
    for (int k = 0; k < 4 && 4 * i + k < n; ++k) {
        bool keep = (w[k] >> 8) * (1.0f / 16777216.0f) >= p;
        mask[4 * i + k] = keep;
        y[4 * i + k] = keep ? x[4 * i + k] * inv : 0.f;
    }
}
extern "C" __global__ void pcg_walk(unsigned long long* state, unsigned* out, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long s = state[i];
    unsigned acc = 0;
    for (int k = 0; k < steps; ++k) {
        unsigned long long o = s;
        s = o * 6364136223846793005ull + 1442695040888963407ull;
        unsigned x = (unsigned)(((o >> 18) ^ o) >> 27), r = (unsigned)(o >> 59);
        acc ^= (x >> r) | (x << ((0u - r) & 31));
    }
    state[i] = s;
    out[i] = acc;
}
