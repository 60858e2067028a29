// txq / suq / istypep / sured / suld.p style instructions through inline asm.
extern "C" __global__ void texture_queries(unsigned long long tex, unsigned long long surf, unsigned* o) {
    unsigned w, h, d, c, sw, sh;
    asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(tex));
    asm("txq.height.b32 %0, [%1];" : "=r"(h) : "l"(tex));
    asm("txq.depth.b32 %0, [%1];" : "=r"(d) : "l"(tex));
    asm("txq.channel_order.b32 %0, [%1];" : "=r"(c) : "l"(tex));
    asm("suq.width.b32 %0, [%1];" : "=r"(sw) : "l"(surf));
    asm("suq.height.b32 %0, [%1];" : "=r"(sh) : "l"(surf));
    o[0] = w; o[1] = h; o[2] = d; o[3] = c; o[4] = sw; o[5] = sh;
    asm volatile("sured.b.2d.add.u32.trap [%0, {%1, %2}], %3;" ::"l"(surf), "r"(threadIdx.x * 4), "r"(blockIdx.x), "r"(1u) : "memory");
    asm volatile("sured.b.1d.max.s32.clamp [%0, {%1}], %2;" ::"l"(surf), "r"(threadIdx.x * 4), "r"(7) : "memory");
    float a, b, e, f;
    asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(a), "=f"(b), "=f"(e), "=f"(f) : "l"(tex), "r"(threadIdx.x), "r"(blockIdx.x));
    o[6 + threadIdx.x] = __float_as_uint(a + b + e + f);
}
