// sm_90a: edit a tensor map in shared memory and publish it.
extern "C" __global__ void tensormap_replace(unsigned char* map_out, const float* base, int w, int h) {
    __shared__ alignas(128) unsigned char map[128];
    for (int i = threadIdx.x; i < 128; i += blockDim.x) map[i] = map_out[i];
    __syncthreads();
    unsigned m = (unsigned)__cvta_generic_to_shared(map);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(m), "l"(base) : "memory");
            asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(m) : "memory");
            asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(m), "r"(w) : "memory");
            asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(m), "r"(h) : "memory");
            asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;" ::"r"(m) : "memory");
            asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(m) : "memory");
        }
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map_out), "r"(m) : "memory");
    }
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map_out) : "memory");
}
