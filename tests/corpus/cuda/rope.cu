// Rotary position embedding, adjacent pairs and split halves, with table-free angles.
#include <cuda_bf16.h>
extern "C" __global__ void rope_pairs(float2* x, const int* pos, int heads, int half_dim, float theta) {
    int tok = blockIdx.x, h = blockIdx.y, i = threadIdx.x;
    float freq = powf(theta, -(float)i / half_dim), s, c;
    sincosf(pos[tok] * freq, &s, &c);
    float2* p = &x[((size_t)tok * heads + h) * half_dim + i];
    float2 v = *p;
    *p = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
extern "C" __global__ void rope_halves(__nv_bfloat16* x, const float* inv_freq, int heads, int half_dim) {
    int tok = blockIdx.x;
    for (int e = threadIdx.x; e < heads * half_dim; e += blockDim.x) {
        int h = e / half_dim, i = e % half_dim;
        __nv_bfloat16* p = x + ((size_t)tok * heads + h) * 2 * half_dim + i;
        float s = __sinf(tok * inv_freq[i]), c = __cosf(tok * inv_freq[i]);
        float a = __bfloat162float(p[0]), b = __bfloat162float(p[half_dim]);
        p[0] = __float2bfloat16(a * c - b * s);
        p[half_dim] = __float2bfloat16(b * c + a * s);
    }
}
