// Cooperative launch: two phases split by a grid-wide barrier.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid_sync(float* data, float* sum, int n) {
    auto grid = cg::this_grid();
    float acc = 0.f;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) {
        data[i] = data[i] * data[i];
        acc += data[i];
    }
    atomicAdd(sum, acc);
    grid.sync();
    float inv = rsqrtf(*(volatile float*)sum);
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) data[i] *= inv;
}
