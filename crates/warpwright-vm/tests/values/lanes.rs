//! The same for every lane, and nothing for lanes that do not take part.

use warpwright_vm::*;

const TEXT: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 from) {
    .reg .b32 r<8>;
    .reg .b64 d<6>;
    .reg .f32 f<4>;
    .reg .pred p<4>;
    ld.param.u64 d1, [out];
    ld.param.u32 r7, [from];
    mov.u32 r1, %tid.x;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    setp.ge.u32 p1, r1, r7;
    mov.b32 r2, 7;
    @p1 add.cc.u32 r3, r1, 0xffffffff;
    @!p1 add.cc.u32 r3, r1, 0;
    addc.u32 r4, 0, 0;
    @p1 mad.lo.u32 r2, r1, r1, r4;
    @!p1 cvt.rn.f32.u32 f1, r1;
    @!p1 sqrt.rn.f32 f1, f1;
    @!p1 cvt.rmi.u32.f32 r2, f1;
    st.global.u32 [d1], r2;
    ret;
}";

#[test]
fn lanes_do_not_disturb_each_other() {
    let module = warpwright_ptx::parse(TEXT).unwrap();
    let info = warpwright_ptx::verify(&module).unwrap();
    let device = Device::new(DeviceConfig::default()).unwrap();
    let module = device.load(&module, &info).unwrap();
    for from in [0, 1, 13, 32, 45, 64] {
        let out = device.alloc_zeros::<u32>(64).unwrap();
        let args = [Arg::buffer(&out), Arg::U32(from)];
        let config = LaunchConfig::new(1, 64);
        let report = device.launch(&module, "k", &config, &args, &Options::default()).unwrap().wait();
        assert!(report.is_clean(), "{report:?}");
        let expected: Vec<u32> = (0..64u32)
            .map(|i| match i >= from {
                // Without a carry from 0 + 0xffffffff only.
                true => i * i + u32::from(i != 0),
                false => i.isqrt(),
            })
            .collect();
        assert_eq!(out.read(), expected);
    }
}
