// Surface objects: reads and writes in 1D, 2D, 3D, layered; boundary modes.
extern "C" __global__ void surf_blur(cudaSurfaceObject_t in, cudaSurfaceObject_t out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) s += surf2Dread<float>(in, (x + dx) * 4, y + dy, cudaBoundaryModeClamp);
    surf2Dwrite(s / 9.f, out, x * 4, y);
}
extern "C" __global__ void surf_types(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int n) {
    int x = threadIdx.x, y = blockIdx.x;
    uchar4 c = surf2Dread<uchar4>(a, x * 4, y);
    c.x = 255 - c.x;
    surf2Dwrite(c, b, x * 4, y, cudaBoundaryModeZero);
    int v = surf1Dread<int>(a, x * 4);
    surf1Dwrite(v + 1, b, x * 4);
    float4 f = surf3Dread<float4>(a, x * 16, y, 2);
    surf3Dwrite(f, b, x * 16, y, 3);
    short2 h = surf2DLayeredread<short2>(a, x * 4, y, 1);
    surf2DLayeredwrite(h, b, x * 4, y, 0);
    unsigned long long q;
    surf1DLayeredread(&q, a, x * 8, 2);
    surf2DLayeredwrite((unsigned char)q, b, x, y, 1);
}
