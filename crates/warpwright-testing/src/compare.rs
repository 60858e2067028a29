//! Launches on a device and on the virtual GPU, from the same memory.

use crate::rig::{Rig, RunError};
use crate::test_device::{TestDevice, test_device};
use std::sync::{Arc, OnceLock};
use warpwright_ptx::ir::{ItemKind, Module, Rounding, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_runtime::{Device, VmConfig};
use warpwright_test::TestLaunch;
use warpwright_vm::Report;

/// A launch on a device and on the virtual GPU.
pub struct Comparison<'a> {
    /// What was launched.
    pub launch: &'a TestLaunch,
    /// The contents of each buffer afterwards: its name, on the device, on the virtual GPU.
    pub buffers: Vec<(&'static str, Vec<u8>, Vec<u8>)>,
}

type Comparer = Box<dyn Fn(&Comparison<'_>) + Send + Sync>;

static COMPARER: OnceLock<Comparer> = OnceLock::new();

/// Runs each launch of a [`Rig`] of this process a second time, on a virtual GPU of the device's architecture and from the
/// same memory, and calls a function with what both left. Only the first call has an effect.
///
/// In the modules that are launched each float operation rounds by itself (`.rn`), where a compiler might otherwise make
/// one operation of a product and a sum: so both devices do the same.
pub fn compare_launches(comparer: impl Fn(&Comparison<'_>) + Send + Sync + 'static) {
    let _ = COMPARER.set(Box::new(comparer));
}

/// The launch as it is compared on the device; `None` if it is not.
pub(crate) fn comparable(device: &Device, launch: &TestLaunch) -> Option<TestLaunch> {
    COMPARER.get()?;
    // A virtual GPU that stands in for a missing device says nothing about it.
    let asked = device.is_virtual() == (test_device() == TestDevice::Vm);
    asked.then(|| {
        let mut launch = launch.clone();
        round_each(&mut launch.module);
        launch
    })
}

/// Runs the launch of a rig here and there.
pub(crate) fn compare(rig: &Rig, launch: &TestLaunch) -> Result<Option<Arc<Report>>, RunError> {
    let before = contents(rig)?;
    let report = rig.run_once()?;
    let mut config = VmConfig::default();
    config.device.arch = rig.stream.device().properties().arch;
    let model = Rig::on(&Device::vm(config)?, launch)?;
    for ((_, buffer), before) in model.buffers.iter().zip(&before) {
        model.stream.memcpy_htod(before, buffer)?;
    }
    model.run_once()?;
    let (here, there) = (contents(rig)?, contents(&model)?);
    let names = rig.buffers.iter().map(|(name, _)| *name);
    let buffers = names.zip(here).zip(there).map(|((name, here), there)| (name, here, there)).collect();
    if let Some(comparer) = COMPARER.get() {
        comparer(&Comparison { launch, buffers });
    }
    Ok(report)
}

fn contents(rig: &Rig) -> Result<Vec<Vec<u8>>, RunError> {
    rig.buffers.iter().map(|(_, buffer)| Ok(rig.stream.clone_dtoh(buffer)?)).collect()
}

fn round_each(module: &mut Module) {
    for item in &mut module.items {
        let ItemKind::Function(function) = &mut item.kind else { continue };
        for statement in function.body.iter_mut().flatten() {
            let StatementKind::Instruction(instruction) = &mut statement.kind else { continue };
            let (ty, rounding) = match &mut instruction.op {
                Op::Add(op) => (op.ty, &mut op.rounding),
                Op::Sub(op) => (op.ty, &mut op.rounding),
                Op::Mul(op) => (op.ty, &mut op.rounding),
                _ => continue,
            };
            if ty.is_float() && rounding.is_none() {
                *rounding = Some(Rounding::Rn);
            }
        }
    }
}
