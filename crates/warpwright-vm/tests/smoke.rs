//! The smallest kernels: the path from text to results.

use warpwright_vm::*;

fn run(
    text: &str,
    entry: &str,
    config: LaunchConfig,
    args: impl Fn(&Device) -> (Vec<Buffer<u32>>, Vec<Arg>),
) -> (Vec<Vec<u32>>, Report) {
    let module = warpwright_ptx::parse(text).unwrap();
    let info = warpwright_ptx::verify(&module).unwrap();
    let device = Device::new(DeviceConfig::default()).unwrap();
    let module = device.load(&module, &info).unwrap();
    let (buffers, args) = args(&device);
    let report = device.launch(&module, entry, &config, &args, &Options::checked()).unwrap().wait();
    (buffers.iter().map(Buffer::read).collect(), report)
}

#[test]
fn adds_vectors() {
    let text = "
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) plus(.param .b32 a, .param .b32 b)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [a];
    ld.param.u32 %r2, [b];
    add.u32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
.visible .entry add(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .shared .b32 tile[64];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mov.b64 %rd3, {%r1, 0};
    add.u64 %rd3, %rd3, %rd3;
    add.u64 %rd3, %rd3, %rd3;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.u32 %r2, [%rd1];
    mov.u32 %r5, tile;
    cvta.shared.u64 %rd4, %rd3;
    st.u32 [%rd4], %r2;
    bar.sync 0;
    ld.u32 %r2, [%rd4];
    {
    .param .b32 p0;
    .param .b32 p1;
    .param .b32 q;
    st.param.b32 [p0], %r2;
    st.param.b32 [p1], %r1;
    call (q), plus, (p0, p1);
    ld.param.b32 %r4, [q];
    }
    st.global.u32 [%rd2], %r4;
    ret;
}";
    let x: Vec<u32> = (0..64).map(|i| i * 100).collect();
    let (out, report) = run(text, "add", LaunchConfig::new(1, 60), |device| {
        let x = device.clone_htod(&x).unwrap();
        let y = device.alloc_zeros(64).unwrap();
        let args = vec![Arg::buffer(&x), Arg::buffer(&y)];
        (vec![x, y], args)
    });
    assert!(report.is_clean(), "{report:?}");
    let expected: Vec<u32> = (0..64).map(|i| if i < 60 { i * 101 } else { 0 }).collect();
    assert_eq!(out[1], expected);
    assert_eq!(report.counters.global.loads.bytes, 240);
}
