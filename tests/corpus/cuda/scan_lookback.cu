// Single-pass scan with decoupled look-back; state word = flag << 32 | value.
extern "C" __global__ void __launch_bounds__(256) scan_lookback(const unsigned* in, unsigned* out, unsigned long long* state,
                                                                unsigned* ticket, unsigned n) {
    __shared__ unsigned s[256], tile_id, prefix;
    unsigned t = threadIdx.x;
    if (t == 0) tile_id = atomicAdd(ticket, 1u);
    __syncthreads();
    unsigned tile = tile_id, i = tile * 256 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned d = 1; d < 256; d <<= 1) {
        unsigned v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 0) {
        unsigned total = s[255], pre = 0;
        if (tile == 0) {
            atomicExch(&state[0], (2ull << 32) | total);
        } else {
            atomicExch(&state[tile], (1ull << 32) | total);
            for (int p = (int)tile - 1; p >= 0;) {
                unsigned long long w = *(volatile unsigned long long*)&state[p];
                unsigned flag = (unsigned)(w >> 32);
                if (flag == 0) continue;
                pre += (unsigned)w;
                if (flag == 2) break;
                --p;
            }
            __threadfence();
            atomicExch(&state[tile], (2ull << 32) | (pre + total));
        }
        prefix = pre;
    }
    __syncthreads();
    if (i < n) out[i] = s[t] + prefix;
}
