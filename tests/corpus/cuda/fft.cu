// Radix-2 FFT of 512 complex points in shared memory, and a naive DFT with sincospi.
extern "C" __global__ void __launch_bounds__(256) fft512(float2* data) {
    __shared__ float2 s[512];
    float2* d = data + blockIdx.x * 512;
    for (int i = threadIdx.x; i < 512; i += 256) s[__brev(i) >> 23] = d[i];
    __syncthreads();
    for (int len = 2; len <= 512; len <<= 1) {
        int half = len / 2, t = threadIdx.x, k = t % half, base = t / half * len;
        float sn, cs;
        __sincosf(-3.14159265f * k / half, &sn, &cs);
        float2 a = s[base + k], b = s[base + k + half], c = make_float2(b.x * cs - b.y * sn, b.x * sn + b.y * cs);
        s[base + k] = make_float2(a.x + c.x, a.y + c.y);
        s[base + k + half] = make_float2(a.x - c.x, a.y - c.y);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < 512; i += 256) d[i] = s[i];
}
extern "C" __global__ void dft(const double2* in, double2* out, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    double re = 0, im = 0;
    for (int j = 0; j < n; ++j) {
        double s, c;
        sincospi(-2.0 * ((long long)j * k % n) / n, &s, &c);
        re += in[j].x * c - in[j].y * s;
        im += in[j].x * s + in[j].y * c;
    }
    out[k] = make_double2(re, im);
}
