//! Random programs of straight lines and short arms: what registers hold is in its place wherever native code is left.

use super::{accesses_agree, offsets, random, rounds};

/// Registers that programs compute with, of 32 and of 64 bits each: from the twentieth on, but not those that are looked at
/// in the end.
const REGISTERS: u32 = 10;

#[test]
fn random_programs_do_what_they_do_interpreted() {
    let mut random = random();
    for at in 0..40 {
        let mut program = String::from("ld.global.u32 %r20, [%rd8];\n");
        for register in 21..20 + REGISTERS {
            program += &format!("mad.lo.u32 %r{register}, %r7, {register}, %r1;\n");
        }
        for register in 20..20 + REGISTERS {
            program += &format!("mul.wide.u32 %rd{register}, %r{register}, 77;\n");
        }
        let length = 20 + random() % 60;
        for number in 0..length {
            program += &instruction(&mut random, number, at);
        }
        for register in 20..20 + REGISTERS {
            program += &format!("mad.lo.u32 %r30, %r30, 31, %r{register};\n");
            program += &format!("mad.lo.u64 %rd30, %rd30, 31, %rd{register};\n");
        }
        accesses_agree(&rounds(&program), 4, &offsets(4, at));
    }
}

fn instruction(random: &mut impl FnMut() -> u32, number: u32, program: u32) -> String {
    let mut of = |count: u32| random() / 7 % count;
    let [d, a, b, c] = [0; 4].map(|_: u32| 20 + of(REGISTERS));
    let (guard, kind) = (["", "", "@%p0 ", "@!%p0 "][of(4) as usize], of(24));
    let line = match kind {
        0..3 => {
            let op = ["add.u32", "xor.b32", "mul.lo.u32", "min.s32", "shl.b32"][of(5) as usize];
            format!("{op} %r{d}, %r{a}, %r{b};")
        }
        3..5 => format!("mad.lo.u32 %r{d}, %r{a}, %r{b}, %r{c};"),
        5..7 => {
            let op = ["add.u64", "xor.b64", "mul.lo.u64"][of(3) as usize];
            format!("{op} %rd{d}, %rd{a}, %rd{b};")
        }
        7 => format!("mul.wide.u32 %rd{d}, %r{a}, %r{b};"),
        8 => format!("cvt.u32.u64 %r{d}, %rd{a};"),
        9 => format!("mov.b64 {{%r{d}, %r{}}}, %rd{b};", if a == d { 31 } else { a }),
        10..12 => format!("ld.{}.u32 %r{d}, {};", ["global", "shared"][kind as usize - 10], place(kind - 10)),
        12..14 => {
            let bits = [8, 16, 32, 32][of(4) as usize];
            format!("st.{}.b{bits} {}, %r{a};", ["global", "shared"][kind as usize - 12], place(kind - 12))
        }
        14 => format!("ld.global.v2.u32 {{%r{d}, %r{}}}, [%rd8];", if a == d { 31 } else { a }),
        15 => format!("st.global.v4.b32 [%rd8], {{%r{a}, %r{b}, %r{c}, %r{d}}};"),
        16 => format!("st.global.b64 [%rd8], %rd{a};"),
        17 => format!("ld.shared.u64 %rd{d}, [%r8];"),
        18 => format!("atom.shared.add.u32 %r{d}, [%r8], %r{a};"),
        19 => format!("shfl.sync.bfly.b32 %r{d}, %r{a}, {}, 31, -1;", 1 << of(5)),
        20 => format!("setp.lt.u32 %p2, %r{a}, %r{b};"),
        21 => format!("selp.b32 %r{d}, %r{a}, %r{b}, %p0;"),
        _ => {
            let label = format!("arm_{program}_{number}");
            let condition = ["%p0", "%p2"][of(2) as usize];
            return format!(
                "setp.ge.s32 %p2, %r{a}, %r{b};\n@{condition} bra {label};\nadd.u32 %r{d}, %r{a}, 3;\n\
                 st.shared.u32 [%r8], %r{d};\nxor.b64 %rd{d}, %rd{c}, %rd{b};\nld.global.u32 %r{b}, [%rd8];\n{label}:\n"
            );
        }
    };
    // A shuffle is for all lanes of the warp.
    format!("{}{line}\n", if kind == 19 { "" } else { guard })
}

fn place(space: u32) -> &'static str {
    ["[%rd8]", "[%r8]"][space as usize]
}
