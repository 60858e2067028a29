//! The floating-point mode of the host's threads, which is no business of a kernel.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;
use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options};

/// The mode of a thread that flushes denormal numbers, rounds toward zero, and masks all exceptions.
const FLUSHING: u32 = 0x1f80 | 1 << 15 | 1 << 6 | 3 << 13;

fn mode() -> u32 {
    let mut mode = 0u32;
    // SAFETY: the instruction writes these four bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack)) };
    mode
}

fn set_mode(mode: u32) {
    // SAFETY: all exceptions are masked.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &mode, options(nostack)) };
}

/// What 64 blocks of a warp make of denormal numbers, and of sums that are rounded, in single and double precision.
fn results() -> Vec<u64> {
    let text = ".version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<8>;
    .reg .f64 %fd<8>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 32, %r1;
    mad.wide.u32 %rd2, %r3, 32, %rd1;
    add.u32 %r4, %r3, 1;
    mov.b32 %f1, %r4;
    mov.f32 %f2, 0f3f400000;
    fma.rn.f32 %f3, %f1, %f2, %f1;
    sub.f32 %f4, 0f3f800000, %f2;
    div.rn.f32 %f4, %f2, 0f40400001;
    cvt.u64.u32 %rd3, %r4;
    mov.b64 %fd1, %rd3;
    mov.f64 %fd2, 0d3ff8000000000000;
    mul.rn.f64 %fd3, %fd1, %fd2;
    cvt.f64.f32 %fd4, %f1;
    cvt.rn.f32.f64 %f5, %fd4;
    add.rn.f64 %fd5, %fd2, 0d3ca0000000000001;
    st.global.v2.f32 [%rd2], {%f3, %f4};
    st.global.f64 [%rd2+8], %fd3;
    st.global.v2.f32 [%rd2+16], {%f5, %f5};
    st.global.f64 [%rd2+24], %fd5;
    ret;
}
";
    // Its threads begin with the mode of this one, which helps with the launch while it waits.
    let mut config = DeviceConfig::default();
    config.workers = 2;
    let device = Device::new(config).unwrap();
    let module = device.load_ptx(text).unwrap();
    let buffer = device.alloc_zeros::<u64>(64 * 32 * 4).unwrap();
    let (config, arguments) = (LaunchConfig::new(64, 32), [Arg::buffer(&buffer)]);
    let report = device.launch(&module, "k", &config, &arguments, &Options::default()).unwrap().wait();
    assert!(report.trap.is_none());
    buffer.read()
}

#[test]
fn no_mode_of_the_host_changes_a_result() {
    let expected = results();
    let before = mode();
    set_mode(FLUSHING);
    let flushing = std::thread::spawn(|| (results(), mode())).join();
    let (here, after) = (results(), mode());
    set_mode(before);
    let (there, inherited) = flushing.unwrap();
    assert!(expected == here && expected == there);
    // The client keeps the mode that it has set.
    assert_eq!([after & FLUSHING, inherited & FLUSHING], [FLUSHING; 2]);
}
