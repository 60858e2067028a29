// C with the nvptx_kernel attribute; address spaces by hand; a local array; builtins.
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define CONST __attribute__((address_space(4)))
static SHARED int scratch[128];
CONST int lut[4] = {7, 11, 13, 17};
__attribute__((nvptx_kernel)) void reverse(GLOBAL const int *in, GLOBAL int *out) {
    int t = __nvvm_read_ptx_sreg_tid_x();
    scratch[t] = in[t] * lut[t & 3];
    __syncthreads();
    out[t] = scratch[127 - t];
}
__attribute__((nvptx_kernel)) void local_sort(GLOBAL int *data, int n) {
    int v[16];
    int base = __nvvm_read_ptx_sreg_tid_x() * 16;
    for (int i = 0; i < 16; ++i) v[i] = data[base + i];
    for (int i = 1; i < n; ++i) {
        int x = v[i], j = i;
        while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; --j; }
        v[j] = x;
    }
    for (int i = 0; i < 16; ++i) data[base + i] = v[i];
}
