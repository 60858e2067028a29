//! What the arithmetic instructions compute: tables of instructions, the bits of their sources, and the bits
//! of the result that the ISA says.

mod arith;
mod compare;
mod convert;
mod float;
mod half;
mod lanes;
mod logic;
mod video;

use std::fmt::Write;
use warpwright_vm::*;

/// An instruction, the values of its source registers, and the result.
///
/// Registers are named by their class and a number: `h` of 16 bits, `r` of 32, `d` of 64, `p` predicates.
/// `x0` is the result; `x1`, `x2` and so on get the values, in order, whatever their class. Of two
/// predicates `p0|p9` the second counts 2.
type Row<'a> = (&'a str, &'a [u64], u64);

/// The registers that a text names: class and number.
fn registers(text: &str) -> Vec<(char, u32)> {
    // A selector, as in `r0.h1`, is no register.
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.');
    let words = words.filter_map(|word| word.split('.').next()).filter(|word| word.len() == 2);
    let mut found: Vec<(char, u32)> = words
        .filter_map(|word| {
            let (class, number) = (word.chars().next()?, word[1..].parse().ok()?);
            "hrdp".contains(class).then_some((class, number))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Runs the instructions of a table one after another in one thread.
fn results(rows: &[Row<'_>]) -> Vec<u64> {
    let mut text = String::from(
        ".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
         .reg .b16 h<10>;\n.reg .b32 r<10>;\n.reg .b64 d<10>;\n.reg .pred p<10>;\n\
         .reg .b64 base;\n.reg .b32 low;\n.reg .b64 wide;\nld.param.u64 base, [out];\n",
    );
    for (index, (instruction, values, _)) in rows.iter().enumerate() {
        // A row may be several instructions: the opcodes end where the operands begin.
        let operands: String = instruction
            .split(';')
            .filter_map(|one| one.trim().split_once(' '))
            .map(|(_, operands)| format!("{operands} "))
            .collect();
        let registers = registers(&operands);
        for &(class, number) in &registers {
            let value = match number {
                0 | 9 => 0xdead_beef,
                _ => values.get(number as usize - 1).copied().unwrap_or(0),
            };
            match class {
                'h' => writeln!(text, "mov.b16 h{number}, {};", value & 0xffff),
                'r' => writeln!(text, "mov.b32 r{number}, {};", value & 0xffff_ffff),
                'd' => writeln!(text, "mov.b64 d{number}, {value};"),
                _ => writeln!(text, "setp.ne.u64 p{number}, {}, 0;", value & 1),
            }
            .unwrap();
        }
        writeln!(text, "{instruction};").unwrap();
        let at = 8 * index;
        let result = registers.iter().find(|register| register.1 == 0).map_or('p', |register| register.0);
        match result {
            'h' => writeln!(text, "cvt.u64.u16 wide, h0;"),
            'r' => writeln!(text, "cvt.u64.u32 wide, r0;"),
            'd' => writeln!(text, "mov.b64 wide, d0;"),
            _ => writeln!(text, "selp.u64 wide, 1, 0, p0;"),
        }
        .unwrap();
        if registers.contains(&('p', 9)) {
            writeln!(text, "@p9 add.u64 wide, wide, 2;").unwrap();
        }
        writeln!(text, "st.global.u64 [base+{at}], wide;").unwrap();
    }
    text += "ret;\n}\n";
    let module = warpwright_ptx::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let info = warpwright_ptx::verify(&module).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut config = DeviceConfig::default();
    config.arch = module.target.arch;
    let device = Device::new(config).unwrap();
    let module = device.load(&module, &info).unwrap();
    let out = device.alloc_zeros::<u64>(rows.len()).unwrap();
    let (config, options) = (LaunchConfig::new(1, 1), Options::default());
    let report = device.launch(&module, "k", &config, &[Arg::buffer(&out)], &options).unwrap().wait();
    assert!(report.is_clean(), "{report:?}");
    out.read()
}

/// Each row gives its result; all that do not are shown.
#[track_caller]
fn check(rows: &[Row<'_>]) {
    let mut wrong = String::new();
    for ((instruction, values, expected), got) in rows.iter().zip(results(rows)) {
        if got != *expected {
            writeln!(wrong, "{instruction} of {values:x?}: {got:#x}, not {expected:#x}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The bits of an `.f32`.
const fn f(x: f32) -> u64 {
    x.to_bits() as u64
}

/// The bits of an `.f64`.
const fn g(x: f64) -> u64 {
    x.to_bits()
}

/// A negative number of 32 bits.
const fn s(x: i32) -> u64 {
    x as u32 as u64
}

/// The NaN that `.f32` operations make.
const NAN: u64 = 0x7fff_ffff;

/// The smallest subnormal `.f32`, and its negative.
const TINY: u64 = 1;
const NEGATIVE_TINY: u64 = 0x8000_0001;
const NEGATIVE_ZERO: u64 = 0x8000_0000;
