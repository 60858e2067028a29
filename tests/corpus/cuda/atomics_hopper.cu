// sm_90: vector float atomics, 128-bit compare-and-swap and exchange, packed red.
extern "C" __global__ void atomics_vector(float4* p, float2* q, float4* o) {
    o[threadIdx.x] = atomicAdd(p, make_float4(1.f, 2.f, 3.f, 4.f));
    atomicAdd(q, make_float2(0.5f, 0.25f));
}
struct alignas(16) Pair { unsigned long long key, value; };
extern "C" __global__ void atomics_128(Pair* slots, const Pair* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair want = {0, 0}, seen = atomicCAS(&slots[in[i].key % 64], want, in[i]);
    if (seen.key != 0) atomicExch(&slots[64 + i], seen);
}
extern "C" __global__ void red_packed(void* p, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(p), "r"(a) : "memory");
    asm volatile("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    asm volatile("red.global.gpu.min.noftz.v2.f16x2 [%0], {%1, %2};" ::"l"(p), "r"(a), "r"(b) : "memory");
    asm volatile("red.release.sys.global.max.u64 [%0], %1;" ::"l"(p), "l"(a + 5ull * b) : "memory");
}
