//! Bugs planted in the products with quantised matrices: the checks find what a barrier less does.

use warpwright_dsl::{ArgDesc, BuildError, Built, K, LaunchRule, Role, any::AnyKernel};
use warpwright_kernels::{Activation, Activations, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::ir::{Arch, ItemKind, StatementKind, Type};
use warpwright_ptx::op::Op;
use warpwright_test::KernelTest;
use warpwright_vm::{FindingKind, SpaceKind};

/// A kernel without one of its barriers.
struct Without<'a> {
    kernel: &'a dyn AnyKernel,
    /// Which of them.
    barrier: usize,
}

fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::BarSync(_) | Op::BarWarpSync(_))
}

impl AnyKernel for Without<'_> {
    fn entry(&self) -> String {
        self.kernel.entry()
    }

    fn args(&self) -> Vec<ArgDesc> {
        self.kernel.args()
    }

    fn launch(&self) -> LaunchRule {
        self.kernel.launch()
    }

    fn body(&self, k: K<'_>) {
        self.kernel.body(k);
    }

    fn build(&self, target: Arch) -> Result<Built, BuildError> {
        let mut built = self.kernel.build(target)?;
        for item in &mut built.module.items {
            let ItemKind::Function(function) = &mut item.kind else { continue };
            let Some(body) = &mut function.body else { continue };
            let mut places = body.iter().enumerate().filter_map(|(at, statement)| match &statement.kind {
                StatementKind::Instruction(instruction) if is_barrier(&instruction.op) => Some(at),
                _ => None,
            });
            if let Some(at) = places.nth(self.barrier) {
                drop(places);
                body.remove(at);
                return Ok(built);
            }
        }
        Err(BuildError::field("barrier", self.barrier, "one that is there"))
    }
}

/// For each barrier, whether taking it out is a race in shared memory.
fn races(kernel: &dyn AnyKernel) -> Vec<bool> {
    let mut found = Vec::new();
    loop {
        let without = Without { kernel, barrier: found.len() };
        if without.build(Arch::sm(80)).is_err() {
            return found;
        }
        let mut test = KernelTest::new(&without);
        for ArgDesc { name, dtype, role, len, .. } in kernel.args() {
            let count = len.evaluate(|_| None).expect("a length") as usize;
            if role == Role::In {
                test = match dtype {
                    Type::U8 => test.input(name, &vec![0u8; count]),
                    Type::S8 => test.input(name, &vec![0i8; count]),
                    _ => test.input(name, &vec![0f32; count]),
                };
            }
        }
        let (_, report) = test.run_unjudged().unwrap_or_else(|error| panic!("{}: {error}", kernel.entry()));
        let race = |kind: &FindingKind| matches!(kind, FindingKind::Race { space: SpaceKind::Shared, .. });
        found.push(report.findings.iter().any(|finding| race(&finding.kind)));
    }
}

#[test]
fn every_barrier_is_needed() {
    let base = QuantGemv { warps: Some(2), ..QuantGemv::new(WeightFormat::Q4K, 20, 2048) };
    let pair = vec![Matrix::new(WeightFormat::Q6K, 8); 2];
    let kernels: Vec<Box<dyn AnyKernel>> = vec![
        Box::new(base.clone()),
        Box::new(QuantGemv { activations: Activations::Int8, ..base.clone() }),
        Box::new(QuantGemv { activations: Activations::Rounded, ..base.clone() }),
        Box::new(QuantGemv { matrices: pair, gate: Some(Activation::Silu), ..base.clone() }),
        Box::new(QuantGemv { warps: Some(2), ..QuantGemv::new(WeightFormat::F16, 20, 1024) }),
        Box::new(QuantGemv { epsilon: Some(1e-5), ..base.clone() }),
    ];
    for kernel in kernels {
        // Before the products, after them, and before the warps' sums are added up.
        assert_eq!(races(&*kernel), [true; 3], "{}", kernel.entry());
    }
    // In two passes.
    let columns = QuantGemv { batch: 3, ..base };
    assert_eq!(races(&columns), [true; 5]);
}
