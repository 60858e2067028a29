//! Running one warp, and the numbers that matrices are filled with.

use warpwright_ptx::ir::Arch;
use warpwright_vm::tensor::TensorCore;
use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options, Report};

/// A device of one host thread.
pub(crate) fn device(sm: u16, core: Option<TensorCore>) -> Device {
    let mut config = DeviceConfig::default();
    config.arch = Arch::sm(sm);
    config.workers = 1;
    config.tensor_core = core;
    Device::new(config).expect("a device")
}

/// A device for a target.
pub(crate) fn device_for(target: &str) -> Device {
    let arch: Arch = target.parse().expect("a target");
    device(arch.sm, None)
}

/// Runs the kernel `k` of `text` with one warp; its parameters are pointers to `inputs` and to `len` words,
/// which come back.
pub(crate) fn try_warp(device: &Device, text: &str, inputs: &[Vec<u32>], len: usize) -> (Vec<u32>, Report) {
    let module = warpwright_ptx::parse(text).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let info = warpwright_ptx::verify(&module).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let module = device.load(&module, &info).expect("it loads");
    let buffers: Vec<_> = inputs.iter().map(|data| device.clone_htod(data).expect("memory")).collect();
    let out = device.alloc_zeros::<u32>(len).expect("memory");
    let args: Vec<Arg> = buffers.iter().chain([&out]).map(Arg::buffer).collect();
    let options = Options::checked();
    let report =
        device.launch(&module, "k", &LaunchConfig::new(1, 32), &args, &options).expect("it starts").wait();
    (out.read(), report)
}

/// The same, where nothing must be found.
pub(crate) fn warp(device: &Device, text: &str, inputs: &[Vec<u32>], len: usize) -> Vec<u32> {
    let (out, report) = try_warp(device, text, inputs, len);
    assert!(report.is_clean(), "{report}\n{text}");
    out
}

/// Kernel `k`: `words` pointer parameters `p0 …`, their addresses for the lane in `%rd0 …` (32-bit words, one
/// for each lane), and the body.
pub(crate) fn kernel(version: &str, target: &str, pointers: usize, bytes: usize, body: &str) -> String {
    let params: Vec<String> = (0..pointers).map(|i| format!(".param .u64 p{i}")).collect();
    let mut text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k({})\n{{\n\
         .reg .b32 %r<8>; .reg .b64 %rd<16>; .reg .b64 %lane;\nmov.u32 %r0, %tid.x;\n\
         mul.wide.u32 %lane, %r0, {bytes};\n",
        params.join(", ")
    );
    for i in 0..pointers {
        text += &format!("ld.param.u64 %rd{i}, [p{i}];\nadd.u64 %rd{i}, %rd{i}, %lane;\n");
    }
    text + body + "\nret;\n}\n"
}

/// Odd little numbers.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number of the range.
    pub(crate) fn next(&mut self, low: i64, high: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + ((self.0 >> 11) % (high - low + 1) as u64) as i64
    }

    pub(crate) fn fill(&mut self, len: usize, (low, high): (i64, i64)) -> Vec<i64> {
        (0..len).map(|_| self.next(low, high)).collect()
    }
}

/// Element types of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    F16,
    BF16,
    TF32,
    F32,
    F64,
    E4M3,
    E5M2,
    S8,
    U8,
    S4,
    U4,
    B1,
    S32,
}

impl Ty {
    pub(crate) fn named(name: &str) -> Ty {
        use Ty::*;
        let all = [F16, BF16, TF32, F32, F64, E4M3, E5M2, S8, U8, S4, U4, B1, S32];
        all.into_iter().find(|ty| ty.name() == name).unwrap_or_else(|| panic!("there is no type {name}"))
    }

    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn bits(self) -> usize {
        match self {
            Ty::F64 => 64,
            Ty::TF32 | Ty::F32 | Ty::S32 => 32,
            Ty::F16 | Ty::BF16 => 16,
            Ty::E4M3 | Ty::E5M2 | Ty::S8 | Ty::U8 => 8,
            Ty::S4 | Ty::U4 => 4,
            Ty::B1 => 1,
        }
    }

    /// What a factor is filled with: exact in the type, and in every sum.
    pub(crate) fn range(self, half_sums: bool) -> (i64, i64) {
        match self {
            Ty::S8 => (-128, 127),
            Ty::U8 => (0, 255),
            Ty::S4 => (-8, 7),
            Ty::U4 => (0, 15),
            Ty::B1 => (0, 1),
            _ if half_sums => (-3, 3),
            _ => (-7, 7),
        }
    }

    /// The bits of a small integer, by the definition of the formats.
    pub(crate) fn encode(self, value: i64) -> u64 {
        let small = |exponent_bits: u32, fraction_bits: u32| {
            if value == 0 {
                return 0;
            }
            let bias = (1 << (exponent_bits - 1)) - 1;
            let magnitude = value.unsigned_abs();
            let exponent = magnitude.ilog2();
            let fraction = (magnitude << fraction_bits >> exponent) & ((1 << fraction_bits) - 1);
            assert_eq!(((1 << fraction_bits) | fraction) << exponent >> fraction_bits, magnitude);
            let sign = u64::from(value < 0) << (exponent_bits + fraction_bits);
            sign | u64::from(exponent + bias) << fraction_bits | fraction
        };
        match self {
            Ty::F16 => small(5, 10),
            Ty::BF16 => small(8, 7),
            Ty::E4M3 => small(4, 3),
            Ty::E5M2 => small(5, 2),
            // What stands below the bits of tf32 is not looked at.
            Ty::TF32 => u64::from((value as f32).to_bits() | 0x1abc),
            Ty::F32 => (value as f32).to_bits().into(),
            Ty::F64 => (value as f64).to_bits(),
            _ => value as u64 & (u64::MAX >> (64 - self.bits())),
        }
    }

    /// The number of a result.
    pub(crate) fn decode(self, bits: u64) -> i64 {
        let value = match self {
            Ty::F16 => {
                let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
                let magnitude = match exponent {
                    0 => fraction * 2f64.powi(-24),
                    _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
                };
                if bits >> 15 & 1 == 1 { -magnitude } else { magnitude }
            }
            Ty::F32 => f64::from(f32::from_bits(bits as u32)),
            Ty::F64 => f64::from_bits(bits),
            _ => return i64::from(bits as u32 as i32),
        };
        assert_eq!(value.fract(), 0.0);
        value as i64
    }
}

/// `a · b + c` of row-major matrices.
pub(crate) fn product((m, n, k): (usize, usize, usize), a: &[i64], b: &[i64], c: &[i64]) -> Vec<i64> {
    let sum = |at: usize| {
        let (row, column) = (at / n, at % n);
        c[at] + (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum::<i64>()
    };
    (0..m * n).map(sum).collect()
}
