//! Every form of the arithmetic instructions is executed: the files with all of them, which the verifier
//! is tested with too, run to their end.

use std::path::Path;
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

#[test]
fn every_form_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/instructions");
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
