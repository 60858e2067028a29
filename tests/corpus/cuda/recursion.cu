// Recursive device functions: Fibonacci, Ackermann, quicksort on a local array, mutual recursion.
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ bool is_odd(unsigned n);
__device__ __noinline__ bool is_even(unsigned n) { return n == 0 ? true : is_odd(n - 1); }
__device__ __noinline__ bool is_odd(unsigned n) { return n == 0 ? false : is_even(n - 1); }
__device__ __noinline__ void quicksort(int* a, int lo, int hi) {
    if (lo >= hi) return;
    int p = a[(lo + hi) / 2], i = lo, j = hi;
    while (i <= j) {
        while (a[i] < p) ++i;
        while (a[j] > p) --j;
        if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; }
    }
    quicksort(a, lo, j);
    quicksort(a, i, hi);
}
extern "C" __global__ void recurse(int* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    out[3 * i] = fib(i % 12);
    out[3 * i + 1] = ackermann(2, i % 4);
    out[3 * i + 2] = is_even(i);
}
extern "C" __global__ void sort_rows(int* data) {
    int a[32];
    for (int k = 0; k < 32; ++k) a[k] = data[threadIdx.x * 32 + k];
    quicksort(a, 0, 31);
    for (int k = 0; k < 32; ++k) data[threadIdx.x * 32 + k] = a[k];
}
