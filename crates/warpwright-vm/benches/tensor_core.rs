//! Multiply-adds per second of one core under each accumulation model, for `m16n8k16` and its like: the
//! arithmetic alone, and `mma.sync` in a kernel on the virtual GPU.

use std::hint::black_box;
use std::time::Instant;
use warpwright_ptx::ir::Arch;
use warpwright_vm::tensor::{Accumulator, FloatElement, FloatProduct, Left, Size, TensorCore};
use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options};

/// Four chains of products in a loop, by four warps.
const KERNEL: &str = "
.version 8.4
.target sm_89
.address_size 64
.visible .entry k(.param .u32 n, .param .u64 out)
{
    .reg .b32 %a<4>, %b<2>, %n;
    .reg .f32 %c<16>;
    .reg .b64 %rd;
    .reg .pred %p;
    ld.param.u32 %n, [n];
    ld.param.u64 %rd, [out];
    mov.b32 %a0, 0x3c003800;
    mov.b32 %a1, 0x34003c00;
    mov.b32 %a2, 0xbc003c00;
    mov.b32 %a3, 0x3c01b800;
    mov.b32 %b0, 0x38003c00;
    mov.b32 %b1, 0x30003c01;
    INIT
loop:
    BODY
    sub.u32 %n, %n, 1;
    setp.ne.u32 %p, %n, 0;
    @%p bra loop;
    st.global.f32 [%rd], %c0;
    ret;
}";

/// `mma` of that form on the virtual GPU.
fn on_the_device(core: TensorCore, form: &str, k: usize) {
    let mut init = String::new();
    let mut body = String::new();
    let a =
        if k == 8 && form.contains("f16") { "{%a0, %a1}, {%b0}" } else { "{%a0, %a1, %a2, %a3}, {%b0, %b1}" };
    for chain in 0..4 {
        let c = (0..4).map(|i| format!("%c{}", 4 * chain + i)).collect::<Vec<_>>().join(", ");
        body += &format!("mma.sync.aligned.m16n8k{k}.row.col.f32.{form}.{form}.f32 {{{c}}}, {a}, {{{c}}};\n");
    }
    for register in 0..16 {
        init += &format!("mov.f32 %c{register}, 0f3e800000;\n");
    }
    let text = KERNEL.replace("INIT", &init).replace("BODY", &body);
    let module = warpwright_ptx::parse(&text).expect("it parses");
    let info = warpwright_ptx::verify(&module).expect("it is right");
    let mut config = DeviceConfig::default();
    config.arch = Arch::sm(89);
    config.workers = 1;
    config.tensor_core = Some(core);
    let device = Device::new(config).expect("a device");
    let module = device.load(&module, &info).expect("it loads");
    let out = device.alloc_zeros::<f32>(1).expect("memory");
    let rounds = if core == TensorCore::Exact { 100 } else { 5_000 };
    let args = [Arg::U32(rounds), Arg::buffer(&out)];
    let start = Instant::now();
    let options = Options::default();
    let launch = device.launch(&module, "k", &LaunchConfig::new(1, 128), &args, &options);
    let report = launch.expect("it starts").wait();
    assert!(report.trap.is_none(), "{report}");
    let products = f64::from(rounds) * 16.0;
    let each = start.elapsed().as_secs_f64() / products;
    let rate = (16 * 8 * k) as f64 / each;
    println!("{core:>6} mma.sync m16n8k{k:<2} {form}: {:7.0} ns, {rate:.2e} multiply-adds/s", each * 1e9);
}

fn main() {
    for &core in TensorCore::ALL {
        for (form, k) in [("f16", 16), ("f16", 8), ("bf16", 16), ("tf32", 8), ("e4m3", 32)] {
            on_the_device(core, form, k);
        }
    }
    let elements = [
        (FloatElement::F16, 16),
        (FloatElement::BF16, 16),
        (FloatElement::TF32, 8),
        (FloatElement::E4M3, 32),
    ];
    for &core in TensorCore::ALL {
        for (element, k) in elements {
            let rule = FloatProduct { core, a: element, b: element, sums: Accumulator::F32 };
            let size = Size { m: 16, n: 8, k };
            let a: Vec<f32> = (0..16 * k).map(|i| (i % 17) as f32 / 4.0 - 2.0).collect();
            let b: Vec<f32> = (0..8 * k).map(|i| (i % 13) as f32 / 8.0 - 0.5).collect();
            let (c, mut d) = ([0.25; 128], [0.0; 128]);
            let products = if core == TensorCore::Exact { 2_000 } else { 200_000 };
            let start = Instant::now();
            for _ in 0..products {
                rule.product(size, Left::dense(black_box(&a)), black_box(&b), &c, &mut d);
                black_box(&d);
            }
            let each = start.elapsed().as_secs_f64() / f64::from(products);
            let rate = (16 * 8 * k) as f64 / each;
            println!("{core:>6} m16n8k{k:<2} {element:?}: {:7.0} ns, {rate:.2e} multiply-adds/s", each * 1e9);
        }
    }
}
