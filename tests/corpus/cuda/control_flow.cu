// Nested loops, breaks, gotos, early returns, divergent switch, short-circuit conditions, select chains, do-while, Collatz.
extern "C" __global__ void collatz(const unsigned long long* in, unsigned* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    unsigned k = 0;
    do {
        if (v == 1) break;
        v = v & 1 ? 3 * v + 1 : v >> 1;
        ++k;
    } while (k < 10000);
    steps[i] = k;
}
extern "C" __global__ void sieve(unsigned char* composite, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x + 2;
    if (p * p >= n) return;
    for (int d = 2; d * d <= p; ++d)
        if (p % d == 0) return;
    for (int m = p * p; m < n; m += p) composite[m] = 1;
}
extern "C" __global__ void state_machine(const int* in, int* out, int n) {
    int t = threadIdx.x, state = 0, acc = 0;
    for (int i = 0; i < n; ++i) {
        int v = in[i * blockDim.x + t];
    again:
        switch (state) {
            case 0: if (v > 0) { state = 1; goto again; } acc -= v; break;
            case 1: if (v < 5 || (v & 1 && acc > 100)) { state = 2; continue; } acc += v; break;
            case 2: acc = v ? acc / v : acc; state = 0; break;
        }
        if (acc > 1000000) break;
    }
    out[t] = acc;
}
extern "C" __global__ void binary_search(const float* sorted, int n, const float* q, int* pos, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (sorted[mid] < q[i]) lo = mid + 1;
        else hi = mid;
    }
    pos[i] = lo;
}
extern "C" __global__ void unordered(const float* a, const float* b, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    o[i] = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 | !(x < y) << 6 | !(x >= y) << 7 | (x != x) << 8 | (x < y && y > 0) << 9 | (x < y ^ x > 2 * y) << 10;
}
extern "C" __global__ void game_of_life(const unsigned char* in, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int c = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) c += in[(y + dy + h) % h * w + (x + dx + w) % w];
    out[y * w + x] = c == 3 || (c == 2 && in[y * w + x]);
}
