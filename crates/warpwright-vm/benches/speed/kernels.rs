//! The kernels that are measured: CUDA kernels of the corpus, and PTX for what they do not show.

use warpwright_vm::{Arg, Buffer, Device, LaunchConfig};

/// How much work: all checks take longer.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    Whole,
    Partial,
}

/// A kernel of the corpus with its launch.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) entry: &'static str,
    file: &'static str,
    set_up: fn(&Device, u32) -> SetUp,
}

/// The memory that a launch works on, its arguments and its dimensions.
pub(crate) type SetUp = (Vec<Buffer<u8>>, Vec<Arg>, LaunchConfig);

impl Kernel {
    pub(crate) fn text(&self) -> String {
        let path = format!("{}/../../tests/corpus/ptx/{}.ptx", env!("CARGO_MANIFEST_DIR"), self.file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
    }

    pub(crate) fn set_up(&self, device: &Device, size: Size) -> SetUp {
        (self.set_up)(device, if matches!(size, Size::Whole) { 4 } else { 1 })
    }
}

/// What one reads and writes once.
pub(crate) const SAXPY: Kernel = Kernel {
    name: "saxpy",
    entry: "_Z4axpyIfEvT_PKS0_PS0_m",
    file: "saxpy.nvcc.sm_90",
    set_up: |device, scale| {
        let n = scale << 18;
        let (x, y) = (floats(device, n), floats(device, n));
        let args = vec![Arg::F32(0.5), Arg::buffer(&x), Arg::buffer(&y), Arg::U64(n.into())];
        (vec![x, y], args, LaunchConfig::new(1024, 256))
    },
};

pub(crate) const ALL: &[Kernel] = &[
    Kernel {
        name: "matrix product, f32, tiles of 16 x 16",
        entry: "matmul_tiled",
        file: "matmul_tiled.nvcc.sm_80",
        set_up: |device, scale| {
            let (m, n) = (64 * scale, 128);
            let buffers = vec![floats(device, m * n), floats(device, n * n), floats(device, m * n)];
            let config = LaunchConfig { grid_dim: (n / 16, m / 16, 1), block_dim: (16, 16, 1), ..one() };
            arguments(buffers, &[Arg::U32(m), Arg::U32(n), Arg::U32(n)], config)
        },
    },
    Kernel {
        name: "product with a matrix of 4-bit blocks, dp4a",
        entry: "dequant_gemv",
        file: "dequant_gemv.nvcc.sm_86",
        set_up: |device, scale| {
            let (rows, blocks) = (256 * scale, 128);
            let buffers =
                vec![halves(device, rows * blocks * 18), halves(device, blocks * 34), floats(device, rows)];
            let config = LaunchConfig { grid_dim: (rows / 4, 1, 1), block_dim: (32, 4, 1), ..one() };
            arguments(buffers, &[Arg::U32(rows), Arg::U32(blocks)], config)
        },
    },
    Kernel {
        name: "reduction in shared memory",
        entry: "reduce_shared",
        file: "reduce_shared.nvcc.sm_90",
        set_up: |device, scale| {
            let (n, blocks) = (1 << 18, 64);
            let buffers = vec![floats(device, n * scale), floats(device, blocks)];
            arguments(buffers, &[Arg::U32(n * scale)], LaunchConfig::new(blocks, 256))
        },
    },
    Kernel {
        name: "transpose through shared memory",
        entry: "transpose_f32",
        file: "transpose.nvcc.sm_89",
        set_up: |device, scale| {
            let (w, h) = (512, 256 * scale);
            let config = LaunchConfig { grid_dim: (w / 32, h / 32, 1), block_dim: (32, 8, 1), ..one() };
            let buffers = vec![floats(device, w * h), floats(device, w * h)];
            arguments(buffers, &[Arg::U32(w), Arg::U32(h)], config)
        },
    },
    Kernel {
        name: "softmax of rows",
        entry: "softmax_block",
        file: "softmax.nvcc.sm_89",
        set_up: |device, scale| {
            let (rows, columns) = (32 * scale, 2048);
            let buffers = vec![floats(device, rows * columns), floats(device, rows * columns)];
            arguments(buffers, &[Arg::U32(columns)], LaunchConfig::new(rows, 256))
        },
    },
    Kernel {
        name: "bitonic sort in shared memory",
        entry: "bitonic_sort",
        file: "bitonic_sort.nvcc.sm_86",
        set_up: |device, scale| {
            let blocks = 8 * scale;
            arguments(vec![words(device, blocks * 1024)], &[], LaunchConfig::new(blocks, 512))
        },
    },
    Kernel {
        name: "stencil in three dimensions",
        entry: "stencil_3d",
        file: "stencil.nvcc.sm_90",
        set_up: |device, scale| {
            let (nx, ny, nz) = (130, 66, 8 * scale + 2);
            let buffers = vec![floats(device, nx * ny * nz), floats(device, nx * ny * nz)];
            let config = LaunchConfig { grid_dim: (4, 8, 1), block_dim: (32, 8, 1), ..one() };
            let sizes = [nx, ny, nz].map(Arg::U32);
            arguments(buffers, &[&sizes[..], &[Arg::F32(0.5), Arg::F32(0.1)]].concat(), config)
        },
    },
    Kernel {
        name: "histogram with atomics in shared memory",
        entry: "histogram_shared",
        file: "histogram.nvcc.sm_90",
        set_up: |device, scale| {
            let (n, blocks) = (1 << 16, 16);
            let bins = bytes(device, &vec![0; 1024]);
            let buffers = vec![words(device, n * scale), bins];
            arguments(buffers, &[Arg::U32(n * scale)], LaunchConfig::new(blocks, 256))
        },
    },
];

fn one() -> LaunchConfig {
    LaunchConfig::new(1, 1)
}

fn arguments(buffers: Vec<Buffer<u8>>, rest: &[Arg], config: LaunchConfig) -> SetUp {
    let args = buffers.iter().map(Arg::buffer).chain(rest.iter().cloned()).collect();
    (buffers, args, config)
}

fn bytes(device: &Device, data: &[u8]) -> Buffer<u8> {
    device.clone_htod(data).expect("memory")
}

/// Numbers between -1 and 1.
fn floats(device: &Device, count: u32) -> Buffer<u8> {
    let number = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
    bytes(device, &(0..count).flat_map(|i| number(i).to_le_bytes()).collect::<Vec<u8>>())
}

fn words(device: &Device, count: u32) -> Buffer<u8> {
    let word = |i: u32| i.wrapping_mul(0x85eb_ca6b).rotate_left(13).wrapping_mul(0xc2b2_ae35);
    bytes(device, &(0..count).flat_map(|i| word(i).to_le_bytes()).collect::<Vec<u8>>())
}

/// Bytes that are small finite numbers wherever a half is read from them.
fn halves(device: &Device, count: u32) -> Buffer<u8> {
    bytes(device, &(0..count).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8 & 0x3f).collect::<Vec<u8>>())
}

/// A warp that multiplies matrices in registers: `products(out, rounds)`.
pub(crate) fn products() -> String {
    let mut body = String::new();
    for i in 0..4 {
        body += &format!(
            "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{0}, %f{1}, %f{2}, %f{3}}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {{%f{0}, %f{1}, %f{2}, %f{3}}};\n",
            4 * i,
            4 * i + 1,
            4 * i + 2,
            4 * i + 3
        );
    }
    let zeros: String = (0..16).map(|i| format!("    mov.f32 %f{i}, 0f00000000;\n")).collect();
    let sum: String = (1..16).map(|i| format!("    add.f32 %f0, %f0, %f{i};\n")).collect();
    format!(
        "
.version 8.0
.target sm_80
.address_size 64
.visible .entry products(.param .u64 out, .param .u32 rounds)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .f32 %f<16>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r7, [rounds];
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r1, %r0, 0x00210043;
    and.b32 %r1, %r1, 0x3fff3fff;
    xor.b32 %r2, %r1, 0x82348123;
    xor.b32 %r3, %r1, 0x01570345;
    xor.b32 %r4, %r1, 0x83218021;
    xor.b32 %r5, %r1, 0x01018fff;
    xor.b32 %r6, %r1, 0x82220111;
{zeros}loop:
{body}    sub.u32 %r7, %r7, 1;
    setp.ne.u32 %p1, %r7, 0;
    @%p1 bra loop;
{sum}    mov.u32 %r8, %ctaid.x;
    mad.lo.u32 %r8, %r8, 32, %r0;
    mad.wide.u32 %rd2, %r8, 4, %rd1;
    st.global.f32 [%rd2], %f0;
    ret;
}}
"
    )
}

/// A warpgroup that multiplies matrices in shared memory: `products(out, rounds)`.
pub(crate) fn warpgroup_products() -> String {
    let sums: Vec<String> = (0..64).map(|i| format!("%f{i}")).collect();
    let zeros: String = sums.iter().map(|sum| format!("    mov.f32 {sum}, 0f00000000;\n")).collect();
    let sum: String = sums[1..].iter().map(|sum| format!("    add.f32 %f0, %f0, {sum};\n")).collect();
    format!(
        "
.version 8.0
.target sm_90a
.address_size 64
.shared .align 1024 .b8 tile[6144];
.visible .entry products(.param .u64 out, .param .u32 rounds)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .f32 %f<64>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r7, [rounds];
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r1, %r0, 0x00210043;
    and.b32 %r1, %r1, 0x3fff3fff;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r0, 48, %r2;
    xor.b32 %r4, %r1, 0x82348123;
    xor.b32 %r5, %r1, 0x01570345;
    st.shared.v4.b32 [%r3], {{%r1, %r4, %r5, %r1}};
    st.shared.v4.b32 [%r3+16], {{%r5, %r4, %r1, %r4}};
    st.shared.v4.b32 [%r3+32], {{%r4, %r1, %r5, %r5}};
    fence.proxy.async;
    bar.sync 0;
    and.b32 %r2, %r2, 0x3ffff;
    shr.b32 %r2, %r2, 4;
    cvt.u64.u32 %rd2, %r2;
    // Core matrices of 128 bytes, along k first.
    or.b64 %rd2, %rd2, 0x0000001000080000;
    add.u64 %rd3, %rd2, 128;
{zeros}    wgmma.fence.sync.aligned;
loop:
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{}}}, %rd2, %rd3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    sub.u32 %r7, %r7, 1;
    setp.ne.u32 %p1, %r7, 0;
    @%p1 bra loop;
    wgmma.wait_group.sync.aligned 0;
{sum}    mov.u32 %r8, %ctaid.x;
    mad.lo.u32 %r8, %r8, 128, %r0;
    mad.wide.u32 %rd4, %r8, 4, %rd1;
    st.global.f32 [%rd4], %f0;
    ret;
}}
",
        sums.join(", ")
    )
}

/// Copies a tile of 128 by 64 halves to shared memory again and again: `by_map(map, rounds)` by one thread and a tensor
/// map, `by_threads(from, rounds)` by the loads and stores of 128 threads.
pub(crate) fn tiles() -> String {
    let copies: String = (0..8)
        .map(|at| {
            format!(
                "    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd2+{0}];\n    st.shared.v4.u32 [%r3+{0}], {{%r4, %r5, %r6, %r7}};\n",
                2048 * at
            )
        })
        .collect();
    format!(
        "
.version 8.0
.target sm_90
.address_size 64
.shared .align 8 .u64 bar;
.shared .align 1024 .b8 tile[16384];
.visible .entry by_map(.param .align 64 .b8 map[128], .param .u32 rounds)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u32 %r2, [rounds];
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mbarrier.init.shared.b64 [bar], 1;
loop:
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 16384;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {{%r0, %r0}}], [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r1;
    @!%p1 bra wait;
    xor.b32 %r1, %r1, 1;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra loop;
    ret;
}}
.visible .entry by_threads(.param .u64 from, .param .u32 rounds)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [from];
    ld.param.u32 %r2, [rounds];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 16;
    add.u64 %rd2, %rd1, %rd2;
    mov.u32 %r3, tile;
    mad.lo.u32 %r3, %r0, 16, %r3;
loop:
{copies}    bar.sync 0;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra loop;
    ret;
}}
"
    )
}

/// Blocks that fill 32 KiB of shared memory and meet at a barrier.
pub(crate) fn resident() -> String {
    "
.version 8.0
.target sm_80
.address_size 64
.shared .align 16 .b8 tile[32768];
.visible .entry resident()
{
    .reg .b32 %r<8>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 128, %r2;
    st.shared.v4.b32 [%r3], {%r1, %r1, %r1, %r1};
    bar.sync 0;
    xor.b32 %r1, %r1, 1;
    mad.lo.u32 %r3, %r1, 128, %r2;
    ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];
    ret;
}
"
    .to_string()
}

/// What a round does: waits at a barrier, or computes in double precision.
pub(crate) const BARRIER: &str = "bar.sync 0;";
pub(crate) const DOUBLES: &str =
    "fma.rn.f64 %x, %x, %half, %one; add.f64 %y, %x, %half; mul.f64 %z, %y, %one; fma.rn.f64 %y, %z, %x, %y;";

/// A kernel that does that as many times as its second argument says.
pub(crate) fn rounds(round: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .visible .entry rounds(.param .u64 out, .param .u32 count) {{
            .reg .pred %again;
            .reg .b32 %i, %count, %thread;
            .reg .b64 %to, %offset;
            .reg .f64 %x, %y, %z, %half, %one;
            ld.param.u64 %to, [out];
            ld.param.u32 %count, [count];
            mov.u32 %thread, %tid.x;
            cvt.rn.f64.u32 %x, %thread;
            mov.f64 %half, 0d3FE0000000000000;
            mov.f64 %one, 0d3FF0000000000000;
            mov.f64 %y, %one;
            mov.u32 %i, 0;
        next:
            {round}
            add.u32 %i, %i, 1;
            setp.lt.u32 %again, %i, %count;
            @%again bra next;
            mul.wide.u32 %offset, %thread, 8;
            add.u64 %to, %to, %offset;
            st.global.f64 [%to], %y;
            ret;
        }}\n"
    )
}
