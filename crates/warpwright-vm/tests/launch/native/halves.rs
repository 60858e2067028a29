//! Halves, and matrices of them.

use super::{CASES, accesses_agree, agree_on, offsets, random, rounds};

#[test]
fn halves_are_those_of_the_interpreter() {
    let taken = "mov.b32 {%h1, %h2}, %r1; mov.b32 {%h3, %h4}, %r2; mov.b32 {%h5, %h6}, %r3;";
    let mut forms = Vec::new();
    for (op, sources) in [("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)] {
        let words = ["%r1", "%r2", "%r3"][..sources].join(", ");
        let halves = ["%h2", "%h4", "%h6"][..sources].join(", ");
        for modifiers in [".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat"] {
            forms.push(format!("{op}{modifiers}.f16x2 %r4, {words};"));
            forms.push(format!("{taken} {op}{modifiers}.f16 %h1, {halves}; cvt.u32.u16 %r4, %h1;"));
        }
    }
    forms.push("fma.rn.relu.f16x2 %r4, %r1, %r2, %r3;".to_owned());
    let special = [
        0, 1, 2, 0x3ff, 0x400, 0x401, 0x1400, 0x2c00, 0x3bff, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7e00,
        0x7fff,
    ];
    let mut random = random();
    let mut half = |source: u32, kind: u32| {
        let of = random();
        let sign = of >> 4 & 1;
        let magnitude = match (kind, source) {
            // The product lies between two halves, and the sum just beside.
            (0, 0) => 0x3c00 | (of >> 5 & 15) << 6 | 0x20,
            (0, 1) => 0x3c00 | (of >> 5 & 31) << 5 | 0x10,
            (0, _) => 1 + (of >> 5 & 1),
            (1, _) => of >> 5 & 0x7fff,
            _ => special[(of >> 5) as usize % special.len()],
        };
        magnitude | sign << 15
    };
    let numbers: Vec<u32> = (0..3 * CASES)
        .map(|at| {
            let (source, kind) = (at % 3, at / 3 % 3);
            half(source, kind) | half(source, (kind + at / 9) % 3) << 16
        })
        .collect();
    agree_on(&forms, &numbers);
}

#[test]
fn matrices_are_loaded_as_by_the_interpreter() {
    for (at, form) in
        ["x4.shared", "x4.trans.shared", "x2.shared", "x1.trans.shared", "x4"].into_iter().enumerate()
    {
        let registers = ["%r20", "%r21", "%r22", "%r23"];
        let count = form[1..2].parse().unwrap();
        let address = if form.ends_with("shared") { "%r8" } else { "%rd9" };
        let loaded = registers[..count].join(", ");
        let folded: String = registers[..count]
            .iter()
            .map(|register| format!("mul.lo.u32 %r30, %r30, 31;\nxor.b32 %r30, %r30, {register};\n"))
            .collect();
        let body = format!("ldmatrix.sync.aligned.m8n8.{form}.b16 {{{loaded}}}, [{address}];\n{folded}");
        accesses_agree(&rounds(&body), 16, &offsets(16, at as u32));
    }
}

/// Of numbers of common size, and of any.
#[test]
fn products_are_those_of_the_interpreter() {
    let form = |ty: &str, common: &str| {
        let factors: String = ["%r1", "%r2", "%r3"]
            .into_iter()
            .zip(["%r10", "%r11", "%r12"])
            .map(|(from, to)| format!("mov.b32 {to}, {from}; {}", common.replace('%', to)))
            .collect();
        format!(
            "{factors}cvt.rn.f32.s32 %r13, %r2; cvt.rn.f32.s32 %r14, %r3;\n\
             mma.sync.aligned.m16n8k16.row.col.f32.{ty}.{ty}.f32 {{%r4, %r15, %r16, %r17}}, \
             {{%r10, %r11, %r12, %r10}}, {{%r12, %r11}}, {{%r13, %r14, %r13, %r14}};\n\
             mad.lo.u32 %r4, %r4, 31, %r15; mad.lo.u32 %r4, %r4, 31, %r16; mad.lo.u32 %r4, %r4, 31, %r17;"
        )
    };
    let forms = [
        form("f16", "and.b32 %, %, 0xbfffbfff;\n"),
        form("bf16", "and.b32 %, %, 0x83ff83ff; or.b32 %, %, 0x3c003c00;\n"),
        form("f16", ""),
        form("bf16", ""),
    ];
    let mut random = random();
    let numbers: Vec<u32> = (0..3 * CASES).map(|_| random() << 16 ^ random()).collect();
    agree_on(&forms, &numbers);
}
