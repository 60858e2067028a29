//! Bodies that another kernel calls, by teams of its warps: they do what they do where they are launched.

use warpwright_kernels::{QuantGemv, RmsNorm, WeightFormat};
use warpwright_ptx::dsl::*;
use warpwright_vm::testing::KernelTest;

/// Calls another kernel's body for all blocks of its grid along x, by teams of its blocks' warps, from one block.
struct Caller<'a> {
    kernel: &'a dyn Kernel,
    warps: u32,
    blocks: u32,
}

impl Kernel for Caller<'_> {
    fn entry(&self) -> String {
        format!("caller_of_{}", self.kernel.entry())
    }

    fn args(&self) -> Vec<ArgDesc> {
        self.kernel.args()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.warps * 32)
    }

    fn body(&self, k: K<'_>) {
        let Block::Exactly([threads, 1, 1]) = self.kernel.launch().block else { return };
        let team = k.teams(threads / 32);
        let mut call = Call::new(team).grid([k.u32(self.blocks), k.u32(1), k.u32(1)]);
        for arg in self.kernel.args() {
            assert_ne!(arg.role, Role::Scalar);
            call = call.parameter(arg.name, k.ptr_mut::<u8>(arg.name), arg.role == Role::In);
        }
        k.each(k.range(team.number()..k.u32(self.blocks)).step(team.count()), |block| {
            call.run(self.kernel, [block, k.u32(0), k.u32(0)]);
            team.sync();
        });
    }
}

#[test]
fn a_norm_by_teams() {
    let (d, rows) = (96, 7);
    for threads in [32, 64, 256] {
        let norm = RmsNorm { threads, ..RmsNorm::new(d, 1e-5) };
        let x: Vec<f32> = (0..rows * d).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<f32> = (0..d).map(|i| i as f32 / 64.0 + 0.5).collect();
        let launched =
            KernelTest::new(&norm).dim("rows", rows.into()).input("x", &x).input("w", &w).run().unwrap();
        let caller = Caller { kernel: &norm, warps: 8, blocks: rows };
        let called =
            KernelTest::new(&caller).dim("rows", rows.into()).input("x", &x).input("w", &w).run().unwrap();
        assert_eq!(launched.output::<f32>("y"), called.output::<f32>("y"), "{threads} threads");
    }
}

#[test]
fn a_product_by_teams() {
    let (n, k) = (70, 256);
    for warps in [1, 2, 4, 8] {
        let gemv = QuantGemv { warps: Some(warps), ..QuantGemv::new(WeightFormat::F16, n, k) };
        let x: Vec<f32> = (0..k).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<u8> = (0..n * k).flat_map(|i| [(i % 251) as u8, 0x30 + (i % 7) as u8]).collect();
        let launched = KernelTest::new(&gemv).input("x", &x).input("w0", &w).run().unwrap();
        let caller = Caller { kernel: &gemv, warps: 8, blocks: n.div_ceil(16) };
        let called = KernelTest::new(&caller).input("x", &x).input("w0", &w).run().unwrap();
        assert_eq!(launched.output::<f32>("y0"), called.output::<f32>("y0"), "{warps} warps");
    }
}
