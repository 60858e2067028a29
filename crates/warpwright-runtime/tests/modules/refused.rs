//! Modules that are valid, and that the driver's compiler refuses all the same.

use super::*;
use std::panic::Location;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{self, Arch, Item, ItemKind, Origin, Statement, StatementKind};
use warpwright_ptx::{parse, verify};
use warpwright_runtime::{JitError, ModuleError, RuntimeError};

/// `y = 1`, and a call of a function that nobody defines.
struct One;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for One {}

impl AnyKernel for One {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "one".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("y", 1)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(1)
    }

    fn body(&self, k: K<'_>) {
        k.ptr_mut::<u32>("y").st(0, k.u32(1));
    }
}

/// Where another module would be linked, it would be there.
const ELSEWHERE: &str = "
.version 7.0
.target sm_70
.address_size 64
.extern .func elsewhere;
.visible .entry caller() { call elsewhere; ret; }
";

/// The module of the kernel with the call, and the line of this file that asks for it.
fn with_call() -> (ir::Module, u32) {
    let mut module = One.module(Arch::sm(75)).expect("it builds");
    let mut other = parse(ELSEWHERE).expect("it parses");
    let call = other.items.iter_mut().find_map(|item| match &mut item.kind {
        ItemKind::Function(function) => {
            let is_call = |statement: &&Statement| match &statement.kind {
                StatementKind::Instruction(instruction) => instruction.op.name() == "call",
                _ => false,
            };
            function.statements().iter().find(is_call).map(|statement| statement.kind.clone())
        }
        _ => None,
    });
    let declared =
        other.items.iter().position(|item| matches!(&item.kind, ItemKind::Function(f) if f.body.is_none()));
    let location = Location::caller();
    let call = Statement { origin: Origin::Rust(location), kind: call.expect("a call") };
    module.items.insert(
        0,
        Item { origin: Origin::Unknown, ..other.items.swap_remove(declared.expect("a declaration")) },
    );
    for item in &mut module.items {
        let ItemKind::Function(function) = &mut item.kind else { continue };
        let Some(body) = &mut function.body else { continue };
        let last = body.iter().rposition(|statement| matches!(statement.kind, StatementKind::Instruction(_)));
        body.insert(last.expect("an instruction"), call.clone());
    }
    (module, location.line())
}

/// What the driver says of a module that the verifier has accepted; `None` on a virtual GPU, which refuses it itself.
fn refusal(device: &Device, module: &ir::Module) -> Option<JitError> {
    let info = verify(module).expect("it is valid");
    let error = device.load(module, &info).expect_err("nobody defines the function");
    match (test_device(), error) {
        (TestDevice::Vm, RuntimeError::Vm(_)) => None,
        (TestDevice::Cuda, RuntimeError::Module(error)) => match *error {
            ModuleError::Jit(jit) => Some(*jit),
            other => panic!("{other}"),
        },
        (_, other) => panic!("{other}"),
    }
}

#[test]
fn a_refusal_has_the_log_the_line_and_the_text() {
    let scratch = Scratch::new("refused");
    let device = open(scratch.cache());
    let (module, asked_for) = with_call();
    let refused = refusal(&device, &module);
    assert_eq!(refused.is_some(), test_device() == TestDevice::Cuda);
    let Some(jit) = refused else {
        assert_eq!(scratch.files("").len(), 0);
        return;
    };
    assert_eq!(jit.kernels, ["one"]);
    assert_eq!((Some(jit.driver), jit.arch), (device.properties().driver, device.properties().arch));
    assert!(!jit.log.trim().is_empty(), "{jit}");
    // The text is there to look at, and is what was refused.
    let file = jit.file.as_ref().expect("there is a cache");
    assert_eq!(read(file), jit.ptx.as_bytes());
    assert!(parse(&jit.ptx).expect("it parses") == parse(&with_locations(&module)).expect("it parses"));
    // Which line it is a driver need not say: linking is no matter of lines. The virtual one does.
    if device.is_virtual() {
        assert!(jit.log.contains(&format!("\n  in `one`\n  from {}:{asked_for}\n", file!())), "{jit}");
    }
    // Refused again, and not cached: nothing was compiled.
    assert_eq!(refusal(&device, &module).map(|again| again.file), Some(jit.file.clone()));
    expect_nothing(&device, &scratch);
}

fn with_locations(module: &ir::Module) -> String {
    warpwright_ptx::print::print_with(module, &warpwright_ptx::print::Options { rust_locations: true })
}

fn expect_nothing(device: &Device, scratch: &Scratch) {
    let statistics = device.statistics();
    assert_eq!((statistics.modules_compiled, statistics.modules_cached), (0, 0));
    assert_eq!((scratch.files(".image").len(), scratch.files(".ptx").len()), (0, 1));
}

#[test]
fn a_device_that_has_refused_a_module_loads_others() -> Result<()> {
    let scratch = Scratch::new("refused-then");
    let device = open(scratch.cache());
    let (module, _) = with_call();
    refusal(&device, &module);
    adds(&device.load_ptx(ADD)?)
}

#[test]
fn a_module_for_a_newer_device_is_refused_before_anything_is_compiled() {
    let device = open(CubinCache::off());
    let text = ADD.replace("6.3", "9.0").replace("sm_70", "sm_121a");
    let error = device.load_ptx(&text).expect_err("no device here runs it");
    let RuntimeError::Module(error) = error else {
        return assert!(test_device() == TestDevice::Vm && matches!(error, RuntimeError::Vm(_)), "{error}");
    };
    let expected = ModuleError::Target { module: Arch::specific(121), device: device.properties().arch };
    assert_eq!(*error, expected);
    assert_eq!(device.statistics().modules_compiled, 0);
}
