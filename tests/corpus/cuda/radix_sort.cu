// One 4-bit pass of an LSD radix sort: per-block counts, then a stable scatter.
extern "C" __global__ void radix_count(const unsigned* keys, unsigned* counts, unsigned n, unsigned shift) {
    __shared__ unsigned c[16];
    if (threadIdx.x < 16) c[threadIdx.x] = 0;
    __syncthreads();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&c[(keys[i] >> shift) & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = c[threadIdx.x];
}
extern "C" __global__ void radix_scatter(const unsigned* keys, unsigned* out, const unsigned* offsets, unsigned n, unsigned shift) {
    __shared__ unsigned warp_count[32][16];
    unsigned t = threadIdx.x, lane = t & 31, w = t >> 5, warps = blockDim.x >> 5;
    unsigned i = blockIdx.x * blockDim.x + t;
    bool ok = i < n;
    unsigned key = ok ? keys[i] : 0, d = (key >> shift) & 15;
    if (lane < 16) warp_count[w][lane] = 0;
    __syncwarp();
    unsigned same = __ballot_sync(~0u, ok);
#pragma unroll
    for (int b = 0; b < 4; ++b) {
        unsigned m = __ballot_sync(~0u, (d >> b) & 1);
        same &= ((d >> b) & 1) ? m : ~m;
    }
    unsigned rank = __popc(same & ((1u << lane) - 1));
    if (ok && rank == 0) warp_count[w][d] = __popc(same);
    __syncthreads();
    if (t < 16) {
        unsigned run = 0;
        for (unsigned k = 0; k < warps; ++k) { unsigned v = warp_count[k][t]; warp_count[k][t] = run; run += v; }
    }
    __syncthreads();
    if (ok) out[offsets[d * gridDim.x + blockIdx.x] + warp_count[w][d] + rank] = key;
}
