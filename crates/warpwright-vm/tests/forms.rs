//! Every form of every instruction, from the files that the verifier is tested with: what `sm_89` has is
//! executed, and the files of arithmetic run to their end.

use std::path::{Path, PathBuf};
use warpwright_ptx::ir::{Arch, Module as Ir, Needs, StatementKind};
use warpwright_vm::*;

/// The opcodes whose files are run, whole.
const OPCODES: &[&str] = &[
    "abs",
    "add",
    "addc",
    "and",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cvt",
    "div",
    "dp2a",
    "dp4a",
    "ex2",
    "fma",
    "fns",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "max",
    "min",
    "mul",
    "mul24",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "sub",
    "subc",
    "szext",
    "tanh",
    "testp",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "xor",
];

/// The files with the forms of each instruction.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/instructions")
}

/// Textures, which are executed as far as CUDA has them.
const OF_IMAGES: &[&str] = &["suq", "tex", "tld4", "txq"];

/// What a module has that devices of `sm_89` run and the virtual GPU does not.
fn missing(ir: &Ir, loaded: &Module) -> Vec<String> {
    let executed_by_sm_89 = |unsupported: &&Unsupported| {
        let function = ir.functions().find(|function| *function.name == *unsupported.function);
        let statement = &function.expect("the function").statements()[unsupported.statement as usize];
        let StatementKind::Instruction(instruction) = &statement.kind else { return true };
        let mut needs = Needs::new();
        instruction.op.needs(&mut needs);
        let of_images = OF_IMAGES.iter().any(|name| instruction.op.name().split('.').next() == Some(name));
        !of_images && needs.unmet(ir.version, Arch::sm(89)).next().is_none()
    };
    loaded.unsupported().iter().filter(executed_by_sm_89).map(|missing| missing.message.clone()).collect()
}

#[test]
fn what_sm_89_has_is_executed() {
    let mut failures = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if [".refused.", ".syntax."].iter().any(|part| name.contains(part)) {
            continue;
        }
        files += 1;
        let ir = warpwright_ptx::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let info = warpwright_ptx::verify(&ir).unwrap();
        let mut config = DeviceConfig::default();
        (config.arch, config.workers) = (ir.target.arch, 1);
        match Device::new(config).unwrap().load(&ir, &info) {
            Ok(loaded) => failures.extend(missing(&ir, &loaded).iter().map(|what| format!("{name}: {what}"))),
            // It calls a function of another module; the corpus has calls.
            Err(DeviceError::Load(_)) if name == "call.ptx" => {}
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty() && files > 150, "{files} files: {failures:#?}");
}

#[test]
fn every_form_runs() {
    let folder = folder();
    let mut failures = Vec::new();
    for opcode in OPCODES {
        let text = std::fs::read_to_string(folder.join(format!("{opcode}.ptx"))).unwrap();
        // Of sm_90; what marks an element out of bounds comes from its tensor copies.
        let text: String =
            text.lines().filter(|line| !line.contains(".oob")).map(|l| format!("{l}\n")).collect();
        let module = warpwright_ptx::parse(&text).unwrap();
        let info = warpwright_ptx::verify(&module).unwrap();
        let entry = module.entries().next().unwrap().name.clone();
        let device = Device::new(DeviceConfig::default()).unwrap();
        let module = device.load(&module, &info).unwrap();
        let config = LaunchConfig::new(1, 33);
        let args = [Arg::U64(0), Arg::U32(0)];
        let options = Options::default();
        let report = device.launch(&module, &entry, &config, &args, &options).unwrap().wait();
        if let Some(trap) = report.trap {
            failures.push(format!("{opcode}: {trap:?}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
