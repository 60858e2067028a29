// Switch statements big enough for brx.idx tables: a small bytecode machine and a character classifier.
extern "C" __global__ void bytecode(const unsigned char* code, int len, const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int acc = in[i], reg = i;
    for (int pc = 0; pc < len; ++pc) {
        switch (code[pc]) {
            case 0: acc += reg; break;
            case 1: acc -= reg; break;
            case 2: acc *= 3; break;
            case 3: acc ^= reg << 3; break;
            case 4: reg = acc; break;
            case 5: acc = __popc(acc); break;
            case 6: acc = acc < 0 ? -acc : acc; break;
            case 7: reg = in[(unsigned)(acc) % n]; break;
            case 8: acc = __brev(acc); break;
            case 9: if (acc & 1) ++pc; break;
            case 10: { int t = acc; acc = reg; reg = t; break; }
            case 11: out[i] = acc; return;
            default: acc = ~acc;
        }
    }
    out[i] = acc;
}
extern "C" __global__ void classify(const char* s, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char r;
    switch (s[i]) {
        case ' ': case '\t': case '\n': r = 1; break;
        case '+': case '-': r = 2; break;
        case '*': case '/': case '%': r = 3; break;
        case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9': r = 4; break;
        case '(': r = 5; break;
        case ')': r = 6; break;
        default: r = 0;
    }
    out[i] = r;
}
