// cuda::std::mdspan, span, array, optional, tuple: library-heavy code.
#include <cuda/std/mdspan>
#include <cuda/std/array>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/span>
#include <cuda/std/bit>
using Grid = cuda::std::mdspan<float, cuda::std::dextents<int, 2>>;
namespace { namespace inner {
__device__ cuda::std::optional<float> at(Grid g, int y, int x) {
    if (y < 0 || x < 0 || y >= g.extent(0) || x >= g.extent(1)) return {};
    return g(y, x);
}
} }
extern "C" __global__ void mdspan_stencil(float *in, float *out, int h, int w) {
    Grid g(in, h, w), o(out, h, w);
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    cuda::std::array<cuda::std::tuple<int, int>, 4> d{{{-1, 0}, {1, 0}, {0, -1}, {0, 1}}};
    float s = 0.f;
    for (auto [dy, dx] : d) s += inner::at(g, y + dy, x + dx).value_or(1.f);
    o(y, x) = s * 0.25f;
}
template <typename T, int N> __global__ void rotate_bits(cuda::std::span<T, N> v) {
    for (T &x : v) x = cuda::std::rotl(x, 3) ^ (T)cuda::std::popcount(x) ^ (T)cuda::std::countl_zero(x) ^ cuda::std::bit_ceil((T)(x & 0xff));
}
template __global__ void rotate_bits<unsigned, 8>(cuda::std::span<unsigned, 8>);
template __global__ void rotate_bits<unsigned long long, 3>(cuda::std::span<unsigned long long, 3>);
template __global__ void rotate_bits<unsigned short, 4>(cuda::std::span<unsigned short, 4>);
