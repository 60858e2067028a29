// CUB block primitives: reduce, scan, radix sort, load and store with transposition, histogram.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
extern "C" __global__ void cub_reduce(const float *in, float *out, int n) {
    using R = cub::BlockReduce<float, 128>;
    __shared__ typename R::TempStorage tmp;
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = R(tmp).Sum(i < n ? in[i] : 0.f);
    if (threadIdx.x == 0) out[blockIdx.x] = s;
}
extern "C" __global__ void cub_scan(const int *in, int *out) {
    using S = cub::BlockScan<int, 128>;
    using L = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using W = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ union { typename S::TempStorage s; typename L::TempStorage l; typename W::TempStorage w; } tmp;
    int v[4];
    L(tmp.l).Load(in + blockIdx.x * 512, v);
    __syncthreads();
    S(tmp.s).ExclusiveSum(v, v);
    __syncthreads();
    W(tmp.w).Store(out + blockIdx.x * 512, v);
}
extern "C" __global__ void cub_sort(unsigned *keys, int *vals) {
    using S = cub::BlockRadixSort<unsigned, 64, 2, int>;
    __shared__ typename S::TempStorage tmp;
    unsigned k[2];
    int v[2];
    for (int j = 0; j < 2; ++j) { k[j] = keys[blockIdx.x * 128 + threadIdx.x * 2 + j]; v[j] = vals[blockIdx.x * 128 + threadIdx.x * 2 + j]; }
    S(tmp).Sort(k, v);
    for (int j = 0; j < 2; ++j) { keys[blockIdx.x * 128 + threadIdx.x * 2 + j] = k[j]; vals[blockIdx.x * 128 + threadIdx.x * 2 + j] = v[j]; }
}
