// Escape-time fractals in f32 and f64, writing RGBA.
template <typename T>
__device__ int escape(T cx, T cy, int limit) {
    T x = 0, y = 0, xx = 0, yy = 0;
    int k = 0;
    for (; k < limit && xx + yy < T(4); ++k) { y = (x + x) * y + cy; x = xx - yy + cx; xx = x * x; yy = y * y; }
    return k;
}
extern "C" __global__ void mandelbrot_f32(uchar4* img, int w, int h, float x0, float y0, float step, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int k = escape(x0 + x * step, y0 + y * step, limit);
    img[y * w + x] = k == limit ? make_uchar4(0, 0, 0, 255) : make_uchar4(k * 5 & 255, k * 7 & 255, k * 11 & 255, 255);
}
extern "C" __global__ void mandelbrot_f64(int* iters, int w, int h, double x0, double y0, double step, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) iters[y * w + x] = escape(x0 + x * step, y0 + y * step, limit);
}
