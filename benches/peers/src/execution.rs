//! A matrix product of 128 x 128 x 128 on `ptoxide` and on our virtual GPU: the same PTX, launched the
//! same way, its result compared.

use std::time::{Duration, Instant};
use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options};

const N: u32 = 128;
const BLOCK: u32 = 16;

/// One thread to an element of the result, a loop over the columns of one factor.
const KERNEL: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u64 %rd4, [n];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    cvta.to.global.u64 %rd3, %rd3;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, %r1, %r3;
    mov.u32 %r5, %ntid.y;
    mov.u32 %r6, %ctaid.y;
    mov.u32 %r7, %tid.y;
    mad.lo.s32 %r8, %r6, %r5, %r7;
    cvt.u64.u32 %rd5, %r4;
    cvt.u64.u32 %rd6, %r8;
    shl.b64 %rd7, %rd4, 2;
    mul.lo.s64 %rd8, %rd6, %rd7;
    add.s64 %rd9, %rd1, %rd8;
    shl.b64 %rd10, %rd5, 2;
    add.s64 %rd11, %rd2, %rd10;
    mov.f32 %f1, 0f00000000;
$loop:
    ld.global.f32 %f2, [%rd9];
    ld.global.f32 %f3, [%rd11];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.s64 %rd9, %rd9, 4;
    add.s64 %rd11, %rd11, %rd7;
    add.s64 %rd4, %rd4, -1;
    setp.ne.s64 %p1, %rd4, 0;
    @%p1 bra $loop;
    add.s64 %rd12, %rd3, %rd8;
    add.s64 %rd13, %rd12, %rd10;
    st.global.f32 [%rd13], %f1;
    ret;
}
";

/// Runs it on both and prints the times.
pub(crate) fn contest() {
    let number = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 12) as f32 / (1 << 20) as f32;
    let a: Vec<f32> = (0..N * N).map(number).collect();
    let b: Vec<f32> = (0..N * N).map(|i| number(i + 7)).collect();
    let (theirs, their_result) = theirs(&a, &b);
    let (ours, our_result) = ours(&a, &b);
    // Its `fma` rounds twice.
    let differs = |(theirs, ours): (&f32, &f32)| (theirs - ours).abs() > 1e-5 * ours.abs();
    assert!(!their_result.iter().zip(&our_result).any(differs), "the two products differ");
    println!(
        "\nexecution                                         ptoxide 0.1.0          warpwright, one worker"
    );
    println!(
        "{:36} {:>26} {:>26}",
        "matrix product, 128 x 128 x 128",
        milliseconds(theirs),
        milliseconds(ours)
    );
    println!("ratio: {:.1}", theirs.as_secs_f64() / ours.as_secs_f64());
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The best of some runs.
fn best(mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..7).map(|_| time(&mut run)).min().unwrap_or_default()
}

fn theirs(a: &[f32], b: &[f32]) -> (Duration, Vec<f32>) {
    use ptoxide::{Argument, Context, LaunchParams};
    let mut context = Context::new_with_module(KERNEL).expect("ptoxide takes the kernel");
    let [da, db, dc] = [(); 3].map(|()| context.alloc::<f32>(a.len()));
    context.write(da, a);
    context.write(db, b);
    let time = best(|| {
        let launch = LaunchParams::func_id(0).grid2d(N / BLOCK, N / BLOCK).block2d(BLOCK, BLOCK);
        let arguments = [Argument::ptr(da), Argument::ptr(db), Argument::ptr(dc), Argument::U64(N.into())];
        context.run(launch, &arguments).expect("ptoxide runs the kernel");
    });
    let mut result = vec![0.0; a.len()];
    context.read(dc, &mut result);
    (time, result)
}

fn ours(a: &[f32], b: &[f32]) -> (Duration, Vec<f32>) {
    let mut config = DeviceConfig::default();
    config.workers = 1;
    let device = Device::new(config).expect("a device");
    let module = warpwright_ptx::parse(KERNEL).expect("the kernel is PTX");
    let info = warpwright_ptx::verify(&module).expect("the verifier accepts the kernel");
    let module = device.load(&module, &info).expect("the VM loads the kernel");
    let da = device.clone_htod(a).expect("memory");
    let db = device.clone_htod(b).expect("memory");
    let dc = device.alloc::<f32>(a.len()).expect("memory");
    let config = LaunchConfig {
        grid_dim: (N / BLOCK, N / BLOCK, 1),
        block_dim: (BLOCK, BLOCK, 1),
        ..LaunchConfig::new(1, 1)
    };
    let args = [Arg::buffer(&da), Arg::buffer(&db), Arg::buffer(&dc), Arg::U64(N.into())];
    let time = best(|| {
        let launch = device.launch(&module, "product", &config, &args, &Options::default());
        let report = launch.expect("the kernel is launched").wait();
        assert!(report.is_clean(), "{report:?}");
    });
    (time, dc.read())
}
