// Initialised device globals: arrays, 2-D arrays, structs with pointers to other globals, strings, managed, extern alignments.
struct Node { int value; const Node* next; };
struct Config { float gain; double bias; char tag[6]; const char* name; short dims[3]; const float* table; };
__device__ float table_a[4] = {1.5f, -2.25f, 3.0e-5f, 1e20f};
__device__ const double table_d[3] = {3.141592653589793, -0.0, 1e-310};
__device__ int grid2[3][4] = {{1, 2, 3, 4}, {5, 6}, {-7}};
__device__ const char text[] = "hello, \"quoted\"\n\ttab\\ \x7f end";
__device__ const char* words[3] = {"alpha", "beta", "gamma"};
__device__ Node tail = {30, nullptr};
__device__ Node middle[2] = {{20, &tail}, {25, nullptr}};
__device__ Node head = {10, &middle[0]};
__constant__ Config config = {0.5f, -1.25, "tag", "configured", {1, -2, 3}, &table_a[1]};
__device__ unsigned char flags[5] = {1, 0, 255, 128, 7};
__device__ long long big_counter = 0x123456789abcdefLL;
__device__ short2 pairs[2] = {{1, -1}, {32767, -32768}};
__device__ bool ready = true;
__device__ __align__(128) int aligned_buf[32];
__managed__ int managed_value = 42;
static __device__ unsigned hidden = 0xdeadbeefu;
__device__ int* alias_ptr = &grid2[1][2];
extern "C" __global__ void read_globals(double* out, char* chars, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    double v = table_a[i & 3] + table_d[i % 3] + grid2[i % 3][i & 3] + config.gain * config.bias + config.dims[i % 3] + *config.table;
    int sum = 0;
    for (const Node* p = &head; p; p = p->next) sum += p->value;
    v += sum + flags[i % 5] + pairs[i & 1].y + (ready ? 1 : 0) + *alias_ptr + managed_value;
    out[i] = v;
    chars[3 * i] = text[i % (int)sizeof(text)];
    chars[3 * i + 1] = words[i % 3][i % 4];
    chars[3 * i + 2] = config.name[i % 10] + config.tag[i % 3];
}
extern "C" __global__ void write_globals(int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    atomicAdd((unsigned long long*)&big_counter, (unsigned long long)i);
    aligned_buf[i & 31] = i;
    if (i == 0) { hidden ^= 1; ready = false; alias_ptr = &grid2[0][hidden & 3]; }
}
