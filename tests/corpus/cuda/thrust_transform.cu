// What Thrust makes for for_each and transform (device code only).
#include <thrust/for_each.h>
#include <thrust/transform.h>
#include <thrust/functional.h>
#include <thrust/execution_policy.h>
struct Bump { __host__ __device__ void operator()(int &x) const { x += 3; } };
void bump(int *p, int n) { thrust::for_each(thrust::device, p, p + n, Bump()); }
void add(const float *a, const float *b, float *c, int n) { thrust::transform(thrust::device, a, a + n, b, c, thrust::plus<float>()); }
