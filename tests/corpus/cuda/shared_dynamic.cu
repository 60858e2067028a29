// Dynamic shared memory carved into several arrays, static arrays of several types, local arrays with dynamic index.
extern __shared__ __align__(16) unsigned char pool[];
extern "C" __global__ void carve(const float* in, int* out, int m, int n) {
    float* f = (float*)pool;
    int* q = (int*)(f + m);
    unsigned char* b = (unsigned char*)(q + m);
    int t = threadIdx.x;
    for (int i = t; i < m; i += blockDim.x) { f[i] = i < n ? in[i] : 0.f; q[i] = (int)(f[i] * 16.f); b[i] = (unsigned char)q[i]; }
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) out[i] = q[(i + 1) % m] + b[(i + 2) % m] + (int)f[(i + 3) % m];
}
extern "C" __global__ void local_index(const int* idx, float* out, int n) {
    float a[24];
    unsigned short h[10];
    for (int k = 0; k < 24; ++k) a[k] = k * 1.5f + threadIdx.x;
    for (int k = 0; k < 10; ++k) h[k] = (unsigned short)(k * k);
    for (int k = 0; k < n; ++k) { a[idx[k] % 24] += a[idx[k + n] % 24]; h[idx[k] % 10] ^= 5; }
    float s = 0.f;
    for (int k = 0; k < 24; ++k) s += a[idx[k % n] % 24];
    out[threadIdx.x] = s + h[idx[0] % 10];
}
extern "C" __global__ void static_shared(const double2* in, double2* out) {
    __shared__ double2 d[33];
    __shared__ short s[2][17][3];
    __shared__ bool any;
    __shared__ char4 c4[32];
    int t = threadIdx.x & 31;
    if (t == 0) any = false;
    d[t] = in[t];
    c4[t] = make_char4(t, -t, 2 * t, 0);
    s[t & 1][t % 17][t % 3] = (short)t;
    __syncthreads();
    if (d[t].x < 0) any = true;
    __syncthreads();
    double2 v = d[31 - t];
    v.x += any ? c4[t ^ 1].y : s[0][4][1];
    out[t] = v;
}
