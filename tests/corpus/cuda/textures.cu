// Texture objects: 1D/2D/3D, fetch, layered, cubemap, lod, grad, gather, integer and vector types.
extern "C" __global__ void tex_1d(cudaTextureObject_t t, cudaTextureObject_t lin, float* o, int4* q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[i] = tex1D<float>(t, i + 0.5f) + tex1Dfetch<float>(lin, i) + tex1DLayered<float>(t, i + 0.25f, 2) + tex1DLod<float>(t, i * 0.1f, 1.f) + tex1DGrad<float>(t, i * 0.1f, 0.5f, 0.25f);
    q[i] = tex1Dfetch<int4>(lin, i / 2);
}
extern "C" __global__ void tex_2d(cudaTextureObject_t t, cudaTextureObject_t u8, float4* o, uchar4* c, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float4 a = tex2D<float4>(t, x + 0.5f, y + 0.5f), b = tex2DLod<float4>(t, x / (float)w, y / (float)h, 2.f);
    float4 g = tex2DGrad<float4>(t, x / (float)w, y / (float)h, make_float2(0.1f, 0.f), make_float2(0.f, 0.1f)), q = tex2Dgather<float4>(t, x + 0.5f, y + 0.5f, 2);
    o[y * w + x] = make_float4(a.x + b.x, a.y + g.y, b.z + q.z, q.w + tex2DLayered<float>(t, x, y, 3));
    c[y * w + x] = tex2D<uchar4>(u8, x, y);
}
extern "C" __global__ void tex_3d(cudaTextureObject_t t, cudaTextureObject_t cube, cudaTextureObject_t cubes, float* o, int n) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    float fx = x / (float)n, fy = y / (float)n, fz = z / (float)n;
    float v = tex3D<float>(t, fx, fy, fz) + tex3DLod<float>(t, fx, fy, fz, 0.5f) + texCubemap<float>(cube, fx - 0.5f, fy - 0.5f, fz - 0.5f) + texCubemapLayered<float>(cubes, fx, fy, fz, 1) + texCubemapLod<float>(cube, fx, fy, fz, 1.f);
    float2 p = tex3DGrad<float2>(t, fx, fy, fz, make_float4(0.1f, 0, 0, 0), make_float4(0, 0.1f, 0, 0));
    o[(z * n + y) * n + x] = v + p.x + p.y + (float)tex3D<unsigned short>(t, fx, fy, fz);
}
// Bilinear image resize.
extern "C" __global__ void resize(cudaTextureObject_t src, uchar4* dst, int w, int h, float sx, float sy) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float4 p = tex2D<float4>(src, (x + 0.5f) * sx, (y + 0.5f) * sy);
    dst[y * w + x] = make_uchar4(p.x * 255.f, p.y * 255.f, p.z * 255.f, p.w * 255.f);
}
