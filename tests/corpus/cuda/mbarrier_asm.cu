// mbarrier through inline asm: init, arrive, test_wait, pending_count, inval (sm_80 forms).
__device__ __forceinline__ unsigned sp(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void mbarrier_asm(const int* in, int* out) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int s[128];
    int t = threadIdx.x;
    unsigned b = sp(&bar);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(b), "r"(128) : "memory");
    __syncthreads();
    unsigned dst = sp(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "l"(in + blockIdx.x * 128 + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(b) : "memory");
    unsigned ok = 0;
    while (!ok)
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(ok) : "r"(b), "r"(0) : "memory");
    int v = s[127 - t];
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    unsigned pending;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    do {
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(ok) : "r"(b), "l"(state) : "memory");
    } while (!ok);
    __syncthreads();
    if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(b) : "memory");
    out[blockIdx.x * 128 + t] = v + (pending > 128u ? 1 : 0);
}
