// All-pairs gravity with shared tiles, and a leapfrog step.
extern "C" __global__ void nbody_forces(const float4* pos, float4* acc, int n, float eps2) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 p = i < n ? pos[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int b = 0; b < n; b += 128) {
        tile[threadIdx.x] = b + threadIdx.x < n ? pos[b + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; ++j) {
            float4 q = tile[j];
            float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z, r2 = dx * dx + dy * dy + dz * dz + eps2, inv = rsqrtf(r2), f = q.w * inv * inv * inv;
            ax += dx * f; ay += dy * f; az += dz * f;
        }
        __syncthreads();
    }
    if (i < n) acc[i] = make_float4(ax, ay, az, 0.f);
}
extern "C" __global__ void nbody_step(float4* pos, float4* vel, const float4* acc, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = vel[i], p = pos[i], a = acc[i];
    v.x += a.x * dt; v.y += a.y * dt; v.z += a.z * dt;
    p.x += v.x * dt; p.y += v.y * dt; p.z += v.z * dt;
    vel[i] = v;
    pos[i] = p;
}
