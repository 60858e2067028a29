// A function alias, weak symbols, a section of constants, and a device function with many parameters.
typedef __attribute__((address_space(1))) int gint;
__attribute__((noinline)) int real_add(int a, int b) { return a * 3 + b; }
int other_add(int a, int b) __attribute__((alias("real_add")));
__attribute__((weak)) int weak_bias = 4;
__attribute__((weak, noinline)) int weak_sub(int a, int b) { return a - b; }
__attribute__((noinline)) static long long many(char a, short b, int c, long long d, float e, double f, _Bool g, unsigned char h) { return a + b + c + d + (long long)(e * f) + g + h; }
__attribute__((nvptx_kernel)) void aliases(gint *out, int n) {
    int t = __nvvm_read_ptx_sreg_tid_x();
    if (t < n) out[t] = other_add(t, n) + weak_sub(t, weak_bias) + (int)many((char)t, 2, n, t * 5ll, 0.5f, 4.0, t & 1, (unsigned char)n);
}
