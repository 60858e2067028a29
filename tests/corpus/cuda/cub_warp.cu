// CUB warp primitives.
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_merge_sort.cuh>
struct Less { template <typename T> __device__ bool operator()(T a, T b) const { return a < b; } };
extern "C" __global__ void cub_warp(const double *in, double *out, int *keys) {
    __shared__ typename cub::WarpReduce<double>::TempStorage r[4];
    __shared__ typename cub::WarpScan<int>::TempStorage s[4];
    __shared__ typename cub::WarpMergeSort<int, 2, 32>::TempStorage m[4];
    int w = threadIdx.x / 32, t = blockIdx.x * 128 + threadIdx.x;
    double v = cub::WarpReduce<double>(r[w]).Sum(in[t]);
    if (threadIdx.x % 32 == 0) out[t / 32] = v;
    int k[2] = {keys[2 * t], keys[2 * t + 1]}, incl, total;
    cub::WarpMergeSort<int, 2, 32>(m[w]).Sort(k, Less());
    cub::WarpScan<int>(s[w]).InclusiveSum(k[0], incl, total);
    keys[2 * t] = incl + total;
    keys[2 * t + 1] = k[1];
}
