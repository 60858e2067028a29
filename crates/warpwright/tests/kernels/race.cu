extern "C" __global__ void swap_warps(unsigned *out) {
    __shared__ unsigned tile[64];
    unsigned i = threadIdx.x;
    tile[i] = i;
    out[i] = tile[i ^ 32];
}
