// Clocks, timers, special registers, nanosleep, pragma and performance-monitor events.
extern "C" __global__ void clocks(long long* o, int spin) {
    long long c0 = clock64();
    clock_t c1 = clock();
    unsigned long long g, dyn;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g));
    float x = threadIdx.x;
    for (int i = 0; i < spin; ++i) x = x * 1.0001f + 0.5f;
    __nanosleep(100);
    unsigned hi, lo, grid_lo, env, total, agg, dynamic;
    asm volatile("mov.u32 %0, %%clock_hi;" : "=r"(hi)); asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(lo)); asm volatile("mov.u64 %0, %%gridid;" : "=l"(dyn));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(grid_lo)); asm volatile("mov.u32 %0, %%envreg2;" : "=r"(env)); asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic)); asm volatile("mov.u32 %0, %%pm0;" : "=r"(agg));
    asm volatile("pmevent 1;"); asm volatile("pmevent.mask 0xff;");
    o[threadIdx.x * 4] = clock64() - c0; o[threadIdx.x * 4 + 1] = clock() - c1; o[threadIdx.x * 4 + 2] = (long long)x + hi + lo + grid_lo + env; o[threadIdx.x * 4 + 3] = g + dyn + total + agg + dynamic;
}
extern "C" __global__ void dims(int* o) {
    int id = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y * blockDim.z + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    o[id] = warpSize * id;
}
