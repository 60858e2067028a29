// volatile accesses, cuda::atomic_ref with every order and scope, fences, a spin lock and a message queue.
#include <cuda/atomic>
extern "C" __global__ void orders(int* p, long long* q, unsigned* o) {
    cuda::atomic_ref<int, cuda::thread_scope_device> d(p[0]);
    cuda::atomic_ref<int, cuda::thread_scope_block> b(p[1]);
    cuda::atomic_ref<long long, cuda::thread_scope_system> s(q[0]);
    int v = d.load(cuda::memory_order_relaxed) + d.load(cuda::memory_order_acquire) + d.load(cuda::memory_order_seq_cst);
    d.store(v, cuda::memory_order_release);
    d.store(v + 1, cuda::memory_order_relaxed);
    b.fetch_add(1, cuda::memory_order_acq_rel);
    b.fetch_xor(3, cuda::memory_order_relaxed);
    s.fetch_max(v, cuda::memory_order_release);
    s.exchange(7, cuda::memory_order_acquire);
    int want = 5;
    bool ok = d.compare_exchange_strong(want, 6, cuda::memory_order_acq_rel, cuda::memory_order_relaxed);
    o[threadIdx.x] = ok + want + b.fetch_and(15, cuda::memory_order_seq_cst);
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}
__device__ cuda::atomic<unsigned, cuda::thread_scope_device> lock_word;
extern "C" __global__ void spin_lock(int* counter) {
    if (threadIdx.x == 0) {
        unsigned ns = 8;
        while (lock_word.exchange(1, cuda::memory_order_acquire)) { __nanosleep(ns); if (ns < 256) ns *= 2; }
        *(volatile int*)counter = *(volatile int*)counter + 1;
        lock_word.store(0, cuda::memory_order_release);
    }
}
extern "C" __global__ void volatile_mix(volatile int* a, volatile char* b, volatile double* d, volatile float4* f, int n) {
    int t = threadIdx.x;
    __shared__ volatile unsigned short s[64];
    s[t & 63] = (unsigned short)a[t];
    a[t + n] = s[(t + 1) & 63];
    b[t] = b[t] + 1;
    d[t] = d[t] * 2.0;
    f[t].x = f[t].w;
}
extern "C" __global__ void fences(int* data, int* flag, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x * 3;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(flag, 1);
        __threadfence_system();
    } else {
        if (threadIdx.x == 0) while (atomicAdd(flag, 0) == 0) {}
        __syncthreads();
        __threadfence_block();
        out[blockIdx.x * blockDim.x + threadIdx.x] = ((volatile int*)data)[threadIdx.x];
    }
}
