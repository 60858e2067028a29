//! Native code against the interpreter, without the checks that leave accesses to handlers: accesses that may be done and
//! such that may not, in every pattern; what tells a loop from a hang; budgets.

mod arms;
mod halves;
mod programs;

use crate::*;
use std::process::Command;

const ROUNDS: u32 = 48;
const THREADS: u32 = 45;
const BYTES: u32 = 1024;

/// A lane's offset with this bit is left out.
const SKIPPED: u32 = 1 << 31;

const BLOCKS: u32 = 3;

/// What makes words of numbers, half of which are negative.
const FACTOR: u32 = 0x9e37_79b1;

/// What each memory has in the beginning.
fn words() -> Vec<u32> {
    (0..BYTES / 4).map(|at| at.wrapping_mul(FACTOR)).collect()
}

/// Each round takes an offset of each thread: its address is `%r8` in shared memory, generic in `%rd9`, `%rd10` in
/// constant memory, and `%rd8` in global memory; `%p0` holds where it is left out. `%r30` and `%rd30` go to `out` in the
/// end.
fn rounds(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 tile[{BYTES}];\n\
         .const .align 16 .b32 table[{words}] = {{ {table} }};\n\
         .visible .entry k(.param .u64 memory, .param .u64 offsets, .param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n\
         ld.param.u64 %rd1, [memory];\nld.param.u64 %rd2, [offsets];\nld.param.u64 %rd3, [out];\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd4, %r1, 4;\nadd.u64 %rd2, %rd2, %rd4;\nmov.u32 %r2, %ctaid.x;\n\
         mad.lo.u32 %r2, %r2, {THREADS}, %r1;\nmul.wide.u32 %rd4, %r2, 8;\n\
         add.u64 %rd3, %rd3, %rd4;\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\nmov.b64 %rd30, 0;\nmov.b32 %r30, 0;\n\
         mov.u32 %r4, %r1;\n\
         fill:\nmad.lo.u32 %r5, %r4, 4, %r3;\nmul.lo.u32 %r6, %r4, {FACTOR};\nst.shared.u32 [%r5], %r6;\nadd.u32 %r4, %r4, {THREADS};\n\
         setp.lt.u32 %p1, %r4, {words};\n@%p1 bra fill;\nbar.sync 0;\n\
         round:\nld.global.u32 %r7, [%rd2];\nsetp.lt.s32 %p0, %r7, 0;\nand.b32 %r7, %r7, 0x7fffffff;\n\
         add.u32 %r8, %r3, %r7;\ncvt.u64.u32 %rd8, %r7;\nadd.u64 %rd8, %rd8, %rd1;\n\
         cvt.u64.u32 %rd9, %r8;\ncvta.shared.u64 %rd9, %rd9;\nmov.u64 %rd10, table;\nsub.u64 %rd11, %rd8, %rd1;\n\
         add.u64 %rd10, %rd10, %rd11;\n{body}\
         add.u64 %rd2, %rd2, {stride};\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, {ROUNDS};\n@%p1 bra round;\n\
         cvt.u64.u32 %rd31, %r30;\nxor.b64 %rd30, %rd30, %rd31;\nst.global.b64 [%rd3], %rd30;\nret;\n}}\n",
        words = BYTES / 4,
        table = words().iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        stride = 4 * THREADS,
    )
}

/// A load to registers of 32 or 64 bits, additions, and a store to the same place.
fn accesses((ty, vector, width): (&str, u32, u32), (space, place): (&str, &str), guard: &str) -> String {
    let bits: u32 = ty[1..].parse().unwrap();
    let class = if width == 64 { "%rd" } else { "%r" };
    let suffix = ["", "", ".v2", "", ".v4"][vector as usize];
    let values: Vec<String> = (0..vector).map(|at| format!("{class}{}", 20 + at)).collect();
    let values = if vector == 1 { values[0].clone() } else { format!("{{{}}}", values.join(", ")) };
    let sum = if width == 64 { "b64 %rd30, %rd30" } else { "b32 %r30, %r30" };
    let folded: String = (0..vector).map(|at| format!("xor.{sum}, {class}{};\n", 20 + at)).collect();
    let added: String = (0..vector)
        .map(|at| format!("add.u{0} {class}{1}, {class}{1}, {2};\n", width, 20 + at, 77 + at))
        .collect();
    let load = format!("{guard} ld{space}{suffix}.{ty} {values}, [{place}];\n{folded}");
    if space == ".const" {
        return load;
    }
    format!("{load}{added}{guard} st{space}{suffix}.b{bits} [{place}], {values};\n")
}

/// Offsets of all rounds: vectors, one place, any places, and such as are misaligned, outside or left out.
fn offsets(size: u32, mut seed: u32) -> Vec<u32> {
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let places = BYTES / size;
        let (base, one) = (random(places), random(places));
        for lane in 0..THREADS {
            let offset = match (round % 6, lane % 32 < 16) {
                (0, _) | (3, true) => size * ((base + lane) % places),
                (1, _) | (3, false) => size * one,
                // Past the end with the last lanes, with the last one, and just not; all of them misaligned.
                (2, _) => {
                    BYTES - [20 * size, 31 * size, 32 * size, 40 * size - 1][round as usize / 6 % 4]
                        + size * lane
                }
                _ => size * random(places),
            };
            let spoiled = round % 6 >= 4 && random(8) == 0;
            all.push(match random(4) {
                0 if spoiled => offset + 1,
                1 if spoiled => BYTES + size * random(3),
                2 if spoiled => offset.wrapping_sub(BYTES) & !SKIPPED,
                _ if spoiled || round % 6 == 5 && random(3) == 0 => offset | SKIPPED,
                _ => offset,
            });
        }
    }
    all
}

#[test]
fn accesses_are_those_of_the_interpreter() {
    let forms = [
        ("u8", 1, 32),
        ("s8", 1, 32),
        ("u16", 1, 32),
        ("s16", 1, 32),
        ("u32", 1, 32),
        ("u64", 1, 64),
        ("u32", 2, 32),
        ("u32", 4, 32),
        ("u64", 2, 64),
        ("u32", 1, 64),
        ("s32", 1, 64),
        ("s8", 1, 64),
    ];
    for (at, form) in forms.into_iter().enumerate() {
        let (ty, vector, _) = form;
        for space in
            [(".global", "%rd8"), (".shared", "%r8"), (".const", "%rd10"), ("", "%rd9"), ("", "%rd8")]
        {
            let size = ty[1..].parse::<u32>().unwrap() / 8 * vector;
            for guard in ["", "@!%p0"] {
                accesses_agree(&rounds(&accesses(form, space, guard)), size, &offsets(size, at as u32));
            }
        }
    }
}

#[test]
fn atomic_operations_are_those_of_the_interpreter() {
    let forms = [
        "add.u32", "add.s32", "and.b32", "or.b32", "xor.b32", "exch.b32", "min.u32", "min.s32", "max.u32",
        "max.s32",
    ];
    for (at, form) in forms.into_iter().enumerate() {
        for (what, instruction) in [("what was there", "atom"), ("nothing", "red")] {
            if form.starts_with("exch") && instruction == "red" {
                continue;
            }
            let to = if instruction == "atom" { "%r20, " } else { "" };
            // The operand is the address and the result, and negative in half of the rounds.
            let body = format!(
                "shl.b32 %r21, %r2, 31;\nadd.u32 %r21, %r21, %r8;\nmov.b32 %r20, %r21;\n\
                 @!%p0 {instruction}.shared.{form} {to}[%r8], %r20;\nxor.b32 %r30, %r30, %r20;\n\
                 mul.lo.u32 %r30, %r30, 31;\n@!%p0 ld.shared.u32 %r22, [%r8];\nadd.u32 %r30, %r30, %r22;\n"
            );
            println!("{form}, which gives {what}");
            for body in [body.replace("@!%p0", ""), body] {
                accesses_agree(&rounds(&body), 4, &offsets(4, at as u32));
            }
        }
    }
}

/// The kernel does the same interpreted and compiled, with findings of accesses of that size, whether traffic is counted or
/// not.
fn accesses_agree(text: &str, size: u32, offsets: &[u32]) {
    for counters in [false, true] {
        let report = agree(&Options { counters, ..Options::default() }, text, offsets);
        let misaligned = FindingKind::Access(FaultKind::Misaligned);
        let is_misaligned = report.findings.iter().any(|finding| finding.kind == misaligned);
        assert_eq!(is_misaligned, size > 1, "{report}\n{text}");
    }
}

/// The kernel does the same interpreted and compiled: the report.
fn agree(options: &Options, text: &str, offsets: &[u32]) -> Report {
    let [(interpreted, report), (compiled, _)] = [Native::Off, Native::Always].map(|native| {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        let device = Device::new(config).unwrap();
        let memory = device.clone_htod(&words()).unwrap();
        let offsets = device.clone_htod(offsets).unwrap();
        let out = device.alloc_zeros::<u64>((BLOCKS * THREADS) as usize).unwrap();
        let args = [Arg::buffer(&memory), Arg::buffer(&offsets), Arg::buffer(&out)];
        let (module, config) = (load(&device, text), LaunchConfig::new(BLOCKS, THREADS));
        let report = device.launch(&module, "k", &config, &args, options).unwrap().wait();
        let found = format!("{:?} {:?}", report.findings, report.trap);
        ((memory.read(), out.read(), found, counted(&report)), report)
    });
    assert_eq!(interpreted, compiled, "{options:?}\n{text}");
    report
}

/// What was executed how often, and what memory traffic was counted.
fn counted(report: &Report) -> String {
    format!("{:?}", report.counters)
}

/// A launch with a buffer of one word, interpreted and compiled: its report, and the word.
fn both(text: &str, threads: u32, options: &Options) -> [(Report, u32); 2] {
    [Native::Off, Native::Always].map(|native| {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        let device = Device::new(config).unwrap();
        let word = device.clone_htod(&[0u32]).unwrap();
        let report = launch(&device, text, &LaunchConfig::new(1, threads), &word, options).wait();
        let value = word.read()[0];
        (report, value)
    })
}

/// Registers are the same in every round, and only memory counts.
#[test]
fn loops_whose_memory_changes_are_no_hangs() {
    for (space, address) in [("global", "%rd1"), ("shared", "%r2")] {
        let text = kernel(&format!(
            "    .shared .align 4 .b32 count;
            mov.u32 %r2, count;
            mov.u32 %r1, 0;
            st.{space}.u32 [{address}], %r1;
            again:
            ld.{space}.u32 %r1, [{address}];
            add.u32 %r1, %r1, 1;
            st.{space}.u32 [{address}], %r1;
            setp.lt.u32 %p1, %r1, 400000;
            mov.u32 %r1, 0;
            @%p1 bra again;
            ld.{space}.u32 %r1, [{address}];
            st.global.u32 [%rd1], %r1;
            ret;"
        ));
        for (report, word) in both(&text, 1, &Options::default()) {
            assert!(report.is_clean(), "{space}: {report}");
            assert_eq!(word, 400_000, "{space}");
        }
    }
}

/// Rounds of one of these lengths are a power of two turns, so that the watch makes its digests at the same places of all
/// rounds, where registers are the same. Memory changes in one turn, behind which there need not be a digest.
#[test]
fn memory_that_changes_now_and_then_is_no_hang() {
    const TURN: u32 = 1024;
    const ROUNDS: u32 = 24;
    let spin = |steps: u32, label: &str| {
        format!(
            "mov.u32 %r3, 0;\n{label}:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, {steps};\n@%p2 bra {label};\n"
        )
    };
    for (turn, others) in (0..3).flat_map(|turn| (6..10).map(move |others| (turn, others))) {
        let rest = (64 - turn) * TURN - others;
        let text = kernel(&format!(
            "    .shared .align 4 .b32 count;
            mov.u32 %r1, 0;
            st.shared.u32 [count], %r1;
            again:
            {}ld.shared.u32 %r1, [count];
            add.u32 %r1, %r1, 1;
            st.shared.u32 [count], %r1;
            setp.lt.u32 %p1, %r1, {ROUNDS};
            mov.u32 %r1, 0;
            {}{}@%p1 bra again;
            ld.shared.u32 %r1, [count];
            st.global.u32 [%rd1], %r1;
            ret;",
            (0..turn).map(|number| spin((TURN - 1) / 3, &format!("before{number}"))).collect::<String>(),
            spin(rest / 3, "behind"),
            "mov.u32 %r4, 0;\n".repeat(rest as usize % 3),
        ));
        for (report, word) in both(&text, 1, &Options::default()) {
            assert!(report.is_clean(), "{turn}, {others}: {report}");
            assert_eq!(word, ROUNDS, "{turn}, {others}");
        }
    }
}

/// What native code executes counts until a block that goes round in circles is looked at.
#[test]
fn loops_that_do_nothing_are_hangs() {
    let text = kernel(
        "    mov.u32 %r1, 0;
        again:
        add.u32 %r1, %r1, 1;
        and.b32 %r1, %r1, 7;
        bra again;",
    );
    let options = Options { max_instructions: 50_000_000, ..Options::default() };
    for (report, _) in both(&text, 1, &options) {
        assert_eq!(report.trap.as_ref().map(|trap| trap.kind), Some(TrapKind::Deadlock), "{report}");
    }
}

/// A lane instruction is one of the budget, whoever executes it.
#[test]
fn budgets_end_at_the_same_instruction() {
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 5;
        setp.lt.u32 %p3, %r1, 0;
        again:
        @%p1 add.u32 %r2, %r2, 1;
        @!%p1 add.u32 %r2, %r2, 2;
        @%p3 bra out;
        add.u32 %r3, %r3, %r2;
        bra again;
        out:
        st.global.u32 [%rd1], %r3;
        ret;",
    );
    for max_instructions in [1_000, 54_321, 300_007] {
        let options = Options { max_instructions, ..Options::default() };
        let [interpreted, compiled] = both(&text, 32, &options).map(|(report, _)| {
            assert_eq!(report.trap.as_ref().map(|trap| trap.kind), Some(TrapKind::Budget));
            let counters = report.counters;
            (counters.instructions, counters.warp_instructions, counters.longest_warp)
        });
        assert_eq!(interpreted, compiled, "{max_instructions}");
    }
}

/// A function that gets warm is compiled while it is interpreted: what it does, and how often, does not depend on when.
#[test]
fn functions_that_are_compiled_meanwhile_do_the_same() {
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
        mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r1, %r2, 64, %r1;
        mov.u32 %r3, 0;
        again:
        mad.lo.u32 %r1, %r1, 1664525, 1013904223;
        setp.lt.s32 %p1, %r1, 0;
        @%p1 xor.b32 %r1, %r1, 12345;
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p2, %r3, 400;
        @%p2 bra again;
        red.global.add.u32 [%rd1], %r1;
        ret;",
    );
    for schedule in [Schedule::Parallel, Schedule::Seeded(3)] {
        let options = Options { schedule, ..Options::default() };
        let [interpreted, compiled] = [Native::Off, Native::Auto].map(|native| {
            let mut config = DeviceConfig::default();
            (config.workers, config.native) = (2, native);
            let device = Device::new(config).unwrap();
            let word = device.clone_htod(&[0u32]).unwrap();
            let module = load(&device, &text);
            let args = [Arg::buffer(&word)];
            // The first launch warms it, and later ones meet what was compiled.
            [(); 4].map(|()| {
                let launch = device.launch(&module, "k", &LaunchConfig::new(24, 64), &args, &options);
                let report = launch.unwrap().wait();
                assert!(report.is_clean(), "{report}");
                let counters = report.counters;
                let counts = (counters.instructions, counters.warp_instructions, counters.longest_warp);
                (word.read()[0], counts, counters.by_opcode)
            })
        });
        assert_eq!(interpreted, compiled, "{schedule:?}");
    }
}

/// Every form of arithmetic, for numbers at which roundings, flushes and limits differ.
#[test]
fn arithmetic_is_that_of_the_interpreter() {
    let roundings = ["rn", "rz", "rm", "rp"];
    let mut forms: Vec<String> = Vec::new();
    for (op, sources) in
        [("add", "%r1, %r2"), ("sub", "%r1, %r2"), ("mul", "%r1, %r2"), ("fma", "%r1, %r2, %r3")]
    {
        for rounding in roundings {
            for modifiers in ["", ".sat", ".ftz", ".ftz.sat"] {
                forms.push(format!("{op}.{rounding}{modifiers}.f32 %r4, {sources};"));
            }
        }
    }
    for rounding in ["rni", "rzi", "rmi", "rpi"] {
        for (to, ftz) in [("s32", ""), ("u32", ""), ("s32", ".ftz"), ("u32", ".ftz")] {
            forms.push(format!("cvt.{rounding}{ftz}.{to}.f32 %r4, %r1;"));
        }
    }
    for form in ["cvt.sat.f32.f32", "cvt.ftz.sat.f32.f32", "neg.f32", "abs.f32", "neg.ftz.f32", "abs.ftz.f32"]
    {
        forms.push(format!("{form} %r4, %r1;"));
    }
    for form in ["min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32", "min.ftz.f32", "max.ftz.f32"] {
        forms.push(format!("{form} %r4, %r1, %r2;"));
    }
    for form in [
        "shf.l.wrap.b32",
        "shf.r.wrap.b32",
        "shf.l.clamp.b32",
        "shf.r.clamp.b32",
        "prmt.b32",
        "bfe.u32",
        "bfe.s32",
    ] {
        forms.push(format!("{form} %r4, %r1, %r2, %r3;"));
    }
    // Bytes of both, of one, of one more than once, and signs.
    for selector in ["0x5410", "0x7632", "0x3120", "0x7474", "0x4140", "0x1111", "0x9a01", "0xfedc"] {
        forms.push(format!("prmt.b32 %r4, %r1, %r2, {selector};"));
        // Some lanes keep what they have.
        forms.push(format!(
            "setp.lt.u32 %p1, %r3, %r1; mov.b32 %r4, %r3; @%p1 prmt.b32 %r4, %r1, %r2, {selector};"
        ));
    }
    forms.push("cvt.rn.f16.f32 %h1, %r1; cvt.u32.u16 %r4, %h1;".to_owned());
    forms.push("cvt.rn.ftz.f16.f32 %h1, %r1; cvt.u32.u16 %r4, %h1;".to_owned());
    forms.push("mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %r4, %h2;".to_owned());
    forms.push("mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %r4, %h1;".to_owned());
    for form in ["rcp.rn.f32", "rcp.approx.ftz.f32", "rsqrt.approx.f32", "rsqrt.approx.ftz.f32"] {
        forms.push(format!("{form} %r4, %r1;"));
    }
    for form in ["ex2.approx.f32", "ex2.approx.ftz.f32"] {
        forms.push(format!("{form} %r4, %r1;"));
    }
    for form in
        ["cvt.rn.bf16.f32 %h1, %r1;", "cvt.rn.ftz.bf16.f32 %h1, %r1;", "cvt.rn.satfinite.bf16.f32 %h1, %r1;"]
    {
        forms.push(format!("{form} cvt.u32.u16 %r4, %h1;"));
    }
    for form in ["cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32", "cvt.rn.satfinite.f16x2.f32"] {
        forms.push(format!("{form} %r4, %r1, %r2;"));
    }
    let special = [
        0,
        1,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0x3f80_0000,
        0x3f7f_ffff,
        0x3f00_0000,
        0x2000_0000,
        0x1f80_0000,
        0x2080_0000,
        0x4f00_0000,
        0x4eff_ffff,
        0x4f7f_ffff,
        0x4f80_0000,
        0x477f_f000,
        0x3880_0000,
        0x3300_0000,
        // Powers of two with these exponents are near the largest and the smallest numbers.
        0x42ff_ffff,
        0x42fc_3456,
        0x4315_3456,
        0x4348_0000,
        0x40d3_4567,
        0x3f80_8000,
        0x3f81_8000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
    ];
    let mut random = random();
    let numbers = (0..3 * CASES).map(|_| {
        let of = random();
        match of % 4 {
            0 => random() << 8 ^ random(),
            // Products of the size of the smallest numbers.
            1 => {
                let fraction =
                    [random() % 4, 0x7f_ffff - random() % 4, random() & 0x7f_ffff][of as usize / 64 % 3];
                (random() % 5 + 61) << 23 | fraction | (of >> 4 & 1) << 31
            }
            _ => {
                (special[random() as usize % special.len()] + of / 64 % 3).wrapping_sub(1)
                    ^ (of >> 4 & 1) << 31
            }
        }
    });
    agree_on(&forms, &numbers.collect::<Vec<_>>());
}

/// Runs of three numbers for a thread.
const CASES: u32 = 40 * THREADS;

fn random() -> impl FnMut() -> u32 {
    let mut seed = 1u32;
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    }
}

/// Forms that make `%r4` of `%r1`, `%r2` and `%r3` do so as in the interpreter.
fn agree_on(forms: &[String], numbers: &[u32]) {
    let count = forms.len();
    let stored: String = forms
        .iter()
        .enumerate()
        .map(|(at, form)| format!("{form}\nst.global.b32 [%rd2+{}], %r4;\n", 4 * at))
        .collect();
    let text = format!(
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .pred %p<2>;\n.reg .b16 %h<8>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r8, %tid.x;\nmov.u32 %r9, %ctaid.x;\n\
         mad.lo.u32 %r8, %r9, {THREADS}, %r8;\nmul.wide.u32 %rd3, %r8, 12;\nadd.u64 %rd1, %rd1, %rd3;\n\
         mul.wide.u32 %rd3, %r8, {};\nadd.u64 %rd2, %rd2, %rd3;\nld.global.u32 %r1, [%rd1];\n\
         ld.global.u32 %r2, [%rd1+4];\nld.global.u32 %r3, [%rd1+8];\n{stored}ret;\n}}\n",
        4 * count
    );
    let [interpreted, compiled] = [Native::Off, Native::Always].map(|native| {
        let mut config = DeviceConfig::default();
        config.native = native;
        let device = Device::new(config).unwrap();
        let numbers = device.clone_htod(numbers).unwrap();
        let out = device.alloc_zeros::<u32>(CASES as usize * count).unwrap();
        let (module, config) = (load(&device, &text), LaunchConfig::new(CASES / THREADS, THREADS));
        let args = [Arg::buffer(&numbers), Arg::buffer(&out)];
        let report = device.launch(&module, "k", &config, &args, &Options::default()).unwrap().wait();
        assert!(report.is_clean(), "{report}");
        out.read()
    });
    for (at, (interpreted, compiled)) in interpreted.iter().zip(&compiled).enumerate() {
        let sources = &numbers[at / count * 3..][..3];
        assert_eq!(
            interpreted,
            compiled,
            "{} of {sources:#x?}: {interpreted:#x}, {compiled:#x}",
            forms[at % count]
        );
    }
}

/// A warp that polls in vain gives way to others after a while, but not one that changes memory in between.
#[test]
fn atomic_operations_that_change_memory_are_no_polls() {
    let text = kernel(
        "    .shared .align 4 .b32 flag;
        .shared .align 4 .b32 count;
        mov.u32 %r2, flag;
        mov.u32 %r3, count;
        mov.u32 %r4, 0;
        st.shared.u32 [%r2], %r4;
        st.shared.u32 [%r3], %r4;
        bar.sync 0;
        mov.u32 %r1, %tid.x;
        // The warp that comes last to the barrier goes on first.
        setp.lt.u32 %p1, %r1, 32;
        @%p1 bra first;
        again:
        atom.shared.or.b32 %r5, [%r2], 0;
        atom.shared.or.b32 %r5, [%r2], 0;
        atom.shared.or.b32 %r5, [%r2], 0;
        atom.shared.or.b32 %r5, [%r2], 0;
        atom.shared.add.u32 %r5, [%r3], 1;
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p2, %r4, 100;
        @%p2 bra again;
        ret;
        first:
        ld.shared.u32 %r5, [%r3];
        st.global.u32 [%rd1], %r5;
        ret;",
    );
    for (report, word) in both(&text, 64, &Options::default()) {
        assert!(report.is_clean(), "{report}");
        assert_eq!(word, 3200);
    }
}

/// The level of vector instructions is the process's, so that another process runs the tests at lower ones.
#[test]
fn lower_levels_do_the_same() {
    const LEVEL: &str = "WARPWRIGHT_SIMD";
    if std::env::var_os(LEVEL).is_some() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    for (level, names) in [
        ("avx2", &["native::", "noted::", "noted_global::"][..]),
        ("base", &["native::loops"]),
        ("a word that names none", &["native::loops"]),
    ] {
        let mut tests = Command::new(&program);
        let output = tests.args(names).env(LEVEL, level).output().unwrap();
        assert!(output.status.success(), "{level}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
