// CRC-32 (table in constant memory built at compile time), FNV-1a and murmur-like finalisers.
struct Table { unsigned v[256]; };
constexpr Table make_table() {
    Table t{};
    for (unsigned i = 0; i < 256; ++i) {
        unsigned c = i;
        for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        t.v[i] = c;
    }
    return t;
}
__constant__ Table crc_table = make_table();
extern "C" __global__ void crc32_rows(const unsigned char* data, unsigned* out, int len, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    unsigned c = ~0u;
    for (int i = 0; i < len; ++i) c = crc_table.v[(c ^ data[r * len + i]) & 255] ^ (c >> 8);
    out[r] = ~c;
}
extern "C" __global__ void fnv1a(const char* data, const int* offsets, unsigned long long* out, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    unsigned long long h = 14695981039346656037ull;
    for (int i = offsets[r]; i < offsets[r + 1]; ++i) h = (h ^ (unsigned char)data[i]) * 1099511628211ull;
    out[r] = h;
}
extern "C" __global__ void mix64(unsigned long long* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = x[i];
    v ^= v >> 33; v *= 0xff51afd7ed558ccdull; v ^= v >> 33; v *= 0xc4ceb9fe1a85ec53ull; v ^= v >> 33;
    x[i] = v;
}
