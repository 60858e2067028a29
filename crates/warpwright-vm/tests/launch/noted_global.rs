//! Accesses to global memory that the checks look at, in native code against the interpreter: random programs whose threads
//! mostly read what nobody writes, and write what is their own, up to where two meet or read what nobody wrote.

use crate::noted::Random;
use crate::*;
use std::fmt::Write as _;

const THREADS: u32 = 45;
const BLOCKS: u32 = 3;

/// Words that all threads read, more than there are in a chunk of the race check; then 64 of each thread; then, of elements
/// of each size, one of each thread; then results.
const COMMON: u32 = 4400;
const WORDS: u32 = COMMON + 64 * 64 * BLOCKS;
const LINES: u32 = 4 * 64 * BLOCKS;
const ALL: u32 = WORDS + 6 * LINES;

/// An access, or a barrier. Threads that are not `calm` do not mind whose words they access.
fn step(random: &mut Random, calm: bool, text: &mut String) {
    if random.one_in(8) {
        return writeln!(text, "bar.sync 0;").unwrap();
    }
    let (bits, vector): (u32, u32) =
        random.of(&[(32, 1), (32, 1), (32, 1), (64, 1), (32, 2), (32, 4), (64, 2), (16, 1), (8, 1)]);
    let size = bits / 8 * vector;
    let is_own = random.one_in(2);
    let writes = if is_own || !calm { random.one_in(2) } else { false };
    // Where: of what is common lines, one place, or places far from each other; of what is a thread's own, with the threads
    // beside each other or apart.
    let (index, stride, start) = if is_own {
        let owner = if calm { "%r1" } else { random.of(&["%r1", "%r6", "%r7"]) };
        let lines = 4 * (WORDS + LINES * size.trailing_zeros());
        let (stride, start) =
            random.of(&[(size, lines), (size, lines), (256, 4 * COMMON), (256, 4 * COMMON + 16)]);
        (owner, stride, start)
    } else {
        let (index, stride) =
            random.of(&[("%r1", size), ("%r1", size), ("%r5", 0), ("%r1", 36), ("%r6", size)]);
        (index, stride.next_multiple_of(size), size * random.below(64) + random.of(&[0, 0, 1950]) * 4)
    };
    write!(text, "mul.wide.u32 %rd2, {index}, {stride};\nadd.u64 %rd2, %rd2, %rd1;\n").unwrap();
    let guard = match random.below(4) {
        0 => {
            let mask = random.of(&[1, 2, 6, 32]);
            write!(text, "and.b32 %r8, %r1, {mask};\nsetp.eq.u32 %p1, %r8, 0;\n").unwrap();
            "@%p1 "
        }
        _ => "",
    };
    let values: Vec<String> = (0..vector)
        .map(|at| if bits == 64 { format!("%rd{}", 4 + at) } else { format!("%r{}", 10 + at) })
        .collect();
    let list = if vector == 1 { values[0].clone() } else { format!("{{{}}}", values.join(", ")) };
    let suffix = ["", "", ".v2", "", ".v4"][vector as usize];
    if writes {
        let space = random.of(&[".global", ""]);
        writeln!(text, "{guard}st{space}{suffix}.u{bits} [%rd2+{start}], {list};").unwrap();
        return;
    }
    let space = random.of(&[".global", ".global", "", ".global.nc"]);
    writeln!(text, "{guard}ld{space}{suffix}.u{bits} {list}, [%rd2+{start}];").unwrap();
    for value in values {
        let (bits, sum) = if bits == 64 { (64, "%rd3") } else { (32, "%r2") };
        writeln!(text, "{guard}xor.b{bits} {sum}, {sum}, {value};").unwrap();
    }
}

fn program(random: &mut Random, wild: u32) -> String {
    let mut body = String::new();
    let mut left = wild;
    for steps in (1..=wild + 3 + random.below(7)).rev() {
        let is_wild = random.below(steps) < left;
        left -= u32::from(is_wild);
        step(random, !is_wild, &mut body);
    }
    let values: String = (0..4)
        .map(|at| format!("mov.u32 %r{}, {};\nmov.b64 %rd{}, {};\n", 10 + at, 3 + at, 4 + at, 5 * at))
        .collect();
    let last = 4 * (WORDS + 5 * LINES);
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\nld.param.u64 %rd1, [data];\n\
         mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r1, %r1, 64, %r2;\nmov.u32 %r5, 0;\n\
         xor.b32 %r6, %r1, 1;\nxor.b32 %r7, %r1, 64;\nmov.u32 %r2, 0;\nmov.b64 %rd3, 0;\nmov.u32 %r4, 0;\n{values}\
         again:\n{body}add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 4;\n@%p2 bra again;\n\
         mul.wide.u32 %rd2, %r1, 16;\nadd.u64 %rd1, %rd1, %rd2;\ncvt.u64.u32 %rd2, %r2;\nxor.b64 %rd3, %rd3, %rd2;\n\
         st.global.u64 [%rd1+{last}], %rd3;\nret;\n}}\n"
    )
}

#[test]
fn what_checks_find_in_global_memory_is_what_the_interpreter_finds() {
    let (mut random, mut clean, mut racy, mut unwritten) = (Random(11), 0, 0, 0);
    let all = ALL as usize;
    for at in 0..600 {
        let text = program(&mut random, [0, 0, 1, 2, 4][at % 5]);
        // Now and then not all is written at first.
        let filled = if random.one_in(4) { random.below(all as u32) as usize } else { all };
        let values: Vec<u32> = (0..filled as u32).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
        let [interpreted, compiled] = [Native::Off, Native::Always].map(|native| {
            let mut config = DeviceConfig::default();
            (config.workers, config.native) = (1, native);
            let device = Device::new(config).unwrap();
            let data = match filled == all {
                true => device.clone_htod(&values).unwrap(),
                false => device.alloc::<u32>(all).unwrap(),
            };
            if filled < all {
                values.iter().enumerate().for_each(|(at, &value)| assert!(data.poke(at, value)));
            }
            let options = Options { checks: Checks::all(), ..Options::default() };
            let report = launch(&device, &text, &LaunchConfig::new(BLOCKS, THREADS), &data, &options).wait();
            let said = format!("{:?} {:?}", report.findings, report.trap);
            ((data.read(), said), report.findings)
        });
        assert_eq!(interpreted.0.1, compiled.0.1, "{text}");
        assert!(interpreted.0.0 == compiled.0.0, "{text}");
        let is_race =
            |kind: &FindingKind| matches!(kind, FindingKind::Race { .. } | FindingKind::NonCoherent);
        clean += u32::from(compiled.1.is_empty());
        racy += u32::from(compiled.1.iter().any(|finding| is_race(&finding.kind)));
        unwritten += u32::from(compiled.1.iter().any(|finding| !is_race(&finding.kind)));
    }
    assert!(clean > 100 && racy > 100 && unwritten > 25, "{clean}, {racy}, {unwritten}");
}

/// What lanes load and do not use does not count, when native code does it either.
#[test]
fn what_lanes_load_in_vain_is_no_race() {
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            mov.u32 %r4, 0;
            again:
            ld.global.u32 %r5, [%rd1];
            add.u32 %r5, %r5, 8;
            add.u32 %r4, %r4, 1;
            setp.lt.u32 %p2, %r4, 8;
            @%p2 bra again;
            @%p1 st.global.u32 [%rd1], %r5;
            ret;",
    );
    for native in [Native::Off, Native::Always] {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        let device = Device::new(config).unwrap();
        let word = device.alloc_zeros::<u32>(1).unwrap();
        let options = Options { checks: Checks::all(), ..Options::default() };
        let report = launch(&device, &text, &LaunchConfig::new(1, 64), &word, &options).wait();
        assert!(report.is_clean(), "{native:?}: {report}");
        assert_eq!(word.read(), [8]);
    }
}
