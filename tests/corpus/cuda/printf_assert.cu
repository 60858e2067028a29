// Device printf, assert, trap, malloc and free.
#include <cstdio>
#include <cassert>
extern "C" __global__ void print_rows(const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) printf("rows: %d\n", n);
    if (i < n && x[i] < 0.f) printf("x[%d] = %f, %s, %c %lld %p\n", i, x[i], "negative", 'c', (long long)i << 33, (const void*)(x + i));
}
extern "C" __global__ void check_sorted(const int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) assert(x[i] <= x[i + 1] && "input must be sorted");
}
extern "C" __global__ void trap_on_nan(const double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && isnan(x[i])) __trap();
    if (i < n && x[i] > 1e300) __brkpt();
}
extern "C" __global__ void list_build(int* out, int n) {
    struct Node { int v; Node* next; };
    Node* head = nullptr;
    for (int i = 0; i < n; ++i) {
        Node* k = (Node*)malloc(sizeof(Node));
        if (!k) break;
        k->v = i * threadIdx.x;
        k->next = head;
        head = k;
    }
    int sum = 0;
    while (head) { sum = sum * 31 + head->v; Node* k = head->next; free(head); head = k; }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void new_array(int* out, int n) {
    int* t = new int[n];
    for (int i = 0; i < n; ++i) t[i] = (i * 7919 + threadIdx.x) % 101;
    int best = t[0];
    for (int i = 1; i < n; ++i) best = t[i] > best ? t[i] : best;
    delete[] t;
    out[threadIdx.x] = best;
}
