// Substring search, edit distance by anti-diagonals, UTF-8 length, base64 encoding, hex printing.
__constant__ char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
extern "C" __global__ void find_all(const char* text, int n, const char* pat, int m, int* hits, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + m > n) return;
    for (int k = 0; k < m; ++k)
        if (text[i + k] != pat[k]) return;
    hits[atomicAdd(count, 1)] = i;
}
extern "C" __global__ void edit_distance(const char* a, int n, const char* b, int m, int* out) {
    extern __shared__ int diag[];
    int* d[3] = {diag, diag + n + 1, diag + 2 * (n + 1)};
    for (int s = 0; s <= n + m; ++s) {
        for (int i = threadIdx.x; i <= n; i += blockDim.x) {
            int j = s - i;
            if (j < 0 || j > m) continue;
            int v;
            if (i == 0) v = j;
            else if (j == 0) v = i;
            else v = min(min(d[(s + 2) % 3][i], d[(s + 2) % 3][i - 1]) + 1, d[(s + 1) % 3][i - 1] + (a[i - 1] != b[j - 1]));
            d[s % 3][i] = v;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = d[(n + m) % 3][n];
}
extern "C" __global__ void base64(const unsigned char* in, char4* out, int groups) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[i] = make_char4(alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63], alphabet[v & 63]);
}
extern "C" __global__ void utf8_count(const char* s, int n, unsigned long long* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned m = __ballot_sync(~0u, i < n && (s[i] & 0xC0) != 0x80);
    if ((threadIdx.x & 31) == 0 && m) atomicAdd(count, (unsigned long long)__popc(m));
}
