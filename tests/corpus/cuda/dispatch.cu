// A dense switch with side effects in every case (an indirect branch), an interpreter with calls, a Duff-style loop.
__device__ __noinline__ int slow_path(int x, int k) { return (x * 2654435761u >> (k & 7)) + k; }
extern "C" __global__ void dispatch(const int *op, int *mem, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int *m = mem + t * 16;
    switch (op[t]) {
        case 0: m[0] += m[1]; break;
        case 1: m[3] = slow_path(m[2], 1); m[4] = 7; break;
        case 2: for (int i = 0; i < 16; ++i) m[i] = m[15 - i] ^ i; break;
        case 3: atomicAdd(m + 5, m[6]); break;
        case 4: m[7] = __popc(m[8]) * m[9]; __threadfence(); break;
        case 5: m[10] = slow_path(m[11], m[12]); break;
        case 6: if (m[13] > 3) m[14] = 1; else m[15] = 2; break;
        case 7: while (m[0] > 10) m[0] /= 3; break;
        case 8: m[1] = m[2] % (m[3] | 1); m[2] = 0; break;
        case 9: m[4] = __clz(m[5]); m[6] = slow_path(4, 5); break;
        case 10: m[8] ^= m[9]; m[9] ^= m[8]; m[8] ^= m[9]; break;
        case 11: m[12] = (int)sqrtf((float)m[13]); break;
        case 12: atomicMax(m + 2, m[1]); break;
        case 13: m[15] = m[14] << (m[13] & 31); break;
        case 14: m[0] = 0; m[1] = 1; for (int i = 2; i < 16; ++i) m[i] = m[i - 1] + m[i - 2]; break;
        case 15: m[3] = -m[3]; break;
        default: m[0] = -1; m[15] = op[t];
    }
}
