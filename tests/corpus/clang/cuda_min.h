// The little of CUDA that these sources need, so that clang builds them without NVIDIA's headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define noinline __attribute__((noinline))
typedef unsigned int u32;
typedef unsigned long long u64;
#define tid_x() __nvvm_read_ptx_sreg_tid_x()
#define ntid_x() __nvvm_read_ptx_sreg_ntid_x()
#define ctaid_x() __nvvm_read_ptx_sreg_ctaid_x()
#define nctaid_x() __nvvm_read_ptx_sreg_nctaid_x()
#define barrier() __syncthreads()
__device__ inline u32 global_id() { return ctaid_x() * ntid_x() + tid_x(); }
