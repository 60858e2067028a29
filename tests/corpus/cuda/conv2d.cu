// Direct convolution (NCHW, 3x3), depthwise convolution, max pooling, int8 convolution with requantisation.
extern "C" __global__ void conv3x3(const float* in, const float* w, const float* bias, float* out, int C, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;
    if (x >= W || y >= H) return;
    float acc = bias[k];
    for (int c = 0; c < C; ++c)
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
            for (int dx = -1; dx <= 1; ++dx) {
                int yy = y + dy, xx = x + dx;
                if (yy >= 0 && yy < H && xx >= 0 && xx < W) acc += in[(c * H + yy) * W + xx] * w[((k * C + c) * 3 + dy + 1) * 3 + dx + 1];
            }
    out[(k * H + y) * W + x] = fmaxf(acc, 0.f);
}
extern "C" __global__ void depthwise_s8(const signed char* in, const signed char* w, const int* bias, signed char* out, float scale, int C, int H, int W) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= C * H * W) return;
    int c = i % C, x = i / C % W, y = i / C / W, acc = bias[c];
    for (int k = 0; k < 9; ++k) {
        int yy = y + k / 3 - 1, xx = x + k % 3 - 1;
        if ((unsigned)yy < (unsigned)H && (unsigned)xx < (unsigned)W) acc += in[(yy * W + xx) * C + c] * w[k * C + c];
    }
    out[i] = (signed char)min(127, max(-128, __float2int_rn(acc * scale)));
}
extern "C" __global__ void max_pool(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W / 2) return;
    const float* p = in + (size_t)blockIdx.z * H * W + 2 * y * W + 2 * x;
    out[((size_t)blockIdx.z * (H / 2) + y) * (W / 2) + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[W], p[W + 1]));
}
