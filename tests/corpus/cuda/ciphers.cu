// ChaCha20 keystream, MD5 of one block, xtea, SipHash.
__device__ __forceinline__ unsigned rotl(unsigned x, int n) { return (x << n) | (x >> (32 - n)); }
#define QR(a, b, c, d) a += b; d = rotl(d ^ a, 16); c += d; b = rotl(b ^ c, 12); a += b; d = rotl(d ^ a, 8); c += d; b = rotl(b ^ c, 7)
extern "C" __global__ void chacha20(const unsigned *key, unsigned long long nonce, uint4 *out, int blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7], (unsigned)i, 0, (unsigned)nonce, (unsigned)(nonce >> 32)}, x[16];
    for (int k = 0; k < 16; ++k) x[k] = s[k];
    for (int r = 0; r < 10; ++r) {
        QR(x[0], x[4], x[8], x[12]); QR(x[1], x[5], x[9], x[13]); QR(x[2], x[6], x[10], x[14]); QR(x[3], x[7], x[11], x[15]);
        QR(x[0], x[5], x[10], x[15]); QR(x[1], x[6], x[11], x[12]); QR(x[2], x[7], x[8], x[13]); QR(x[3], x[4], x[9], x[14]);
    }
    for (int k = 0; k < 4; ++k) out[i * 4 + k] = make_uint4(x[4 * k] + s[4 * k], x[4 * k + 1] + s[4 * k + 1], x[4 * k + 2] + s[4 * k + 2], x[4 * k + 3] + s[4 * k + 3]);
}
extern "C" __global__ void xtea(uint2 *data, uint4 key, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned k[4] = {key.x, key.y, key.z, key.w}, v0 = data[i].x, v1 = data[i].y, sum = 0;
    for (int r = 0; r < 32; ++r) {
        v0 += (((v1 << 4) ^ (v1 >> 5)) + v1) ^ (sum + k[sum & 3]);
        sum += 0x9E3779B9u;
        v1 += (((v0 << 4) ^ (v0 >> 5)) + v0) ^ (sum + k[(sum >> 11) & 3]);
    }
    data[i] = make_uint2(v0, v1);
}
extern "C" __global__ void siphash(const unsigned long long *in, unsigned long long *out, unsigned long long k0, unsigned long long k1, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long a = k0 ^ 0x736f6d6570736575ull, b = k1 ^ 0x646f72616e646f6dull, c = k0 ^ 0x6c7967656e657261ull, d = k1 ^ 0x7465646279746573ull, m[2] = {in[i], 8ull << 56};
#define ROUND a += b; b = (b << 13 | b >> 51) ^ a; a = a << 32 | a >> 32; c += d; d = (d << 16 | d >> 48) ^ c; a += d; d = (d << 21 | d >> 43) ^ a; c += b; b = (b << 17 | b >> 47) ^ c; c = c << 32 | c >> 32;
    for (int k = 0; k < 2; ++k) { d ^= m[k]; ROUND ROUND a ^= m[k]; }
    c ^= 0xff;
    ROUND ROUND ROUND ROUND
    out[i] = a ^ b ^ c ^ d;
}
