//! Accesses to shared memory that the checks look at, in native code against the interpreter: random programs in which
//! most threads keep to themselves, with barriers, and some in which they meet or read what nobody wrote.

use crate::*;
use std::fmt::Write as _;

const THREADS: u32 = 61;

/// Behind them are words that threads combine.
const BYTES: u32 = 2048;

/// Numbers for programs.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % bound
    }

    pub(crate) fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }
}

/// A step of a program: an access, or something that orders accesses.
fn step(random: &mut Random, calm: bool, text: &mut String) {
    if random.one_in(3) {
        let order = ["bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "bar.warp.sync 0xffffffff;", "membar.cta;"];
        let order = if calm { order[0] } else { random.of(&order) };
        return writeln!(text, "{order}").unwrap();
    }
    let (ty, vector) = random.of(&[
        ("u8", 1),
        ("u16", 1),
        ("u32", 1),
        ("u32", 1),
        ("u32", 1),
        ("u64", 1),
        ("u32", 2),
        ("u32", 4),
        ("u64", 2),
    ]);
    let bits: u32 = ty[1..].parse().unwrap();
    let size = bits / 8 * vector;
    let writes = random.one_in(2);
    // Threads beside each other, some apart, or all at a place; of the lower half of memory, which is only read, or not.
    let own = writes || random.one_in(2);
    let factor = if own && calm { 1 } else { random.of(&[0, 1, 1, 1, 3, 5]) };
    let half = BYTES / 2;
    let (base, places) = match own {
        true if calm => (half, half / size),
        false => (0, half / size),
        true => (half, random.of(&[half / size, 64.min(half / size), 16])),
    };
    let moved = if calm && own { 0 } else { random.below(3) };
    let values: Vec<String> = (0..vector)
        .map(|at| if bits == 64 { format!("%rd{}", 4 + at) } else { format!("%r{}", 8 + at) })
        .collect();
    let list = if vector == 1 { values[0].clone() } else { format!("{{{}}}", values.join(", ")) };
    let suffix = ["", "", ".v2", "", ".v4"][vector as usize];
    // Some of the first threads may be together.
    let shared = if calm { 0 } else { random.of(&[0, 0, 1, 2, 5]) };
    // A thread's own place is the same in every step where they are calm: 16 bytes.
    let stride = if own && (calm || random.one_in(2)) { size.max(16) } else { size };
    let wrap = if own && stride != size { 63 } else { places.next_power_of_two() / 2 - 1 };
    write!(
        text,
        "max.u32 %r5, %r1, {shared};\nmad.lo.u32 %r5, %r5, {factor}, {shift};\n\
         mad.lo.u32 %r5, %r4, {moved}, %r5;\nand.b32 %r5, %r5, {wrap};\nmad.lo.u32 %r5, %r5, {stride}, {base};\nadd.u32 %r5, %r5, %r3;\n",
        shift = if calm && own { 0 } else { random.below(places) },
    )
    .unwrap();
    if !calm {
        // At first they keep to themselves there, too, so that native code meets it.
        write!(
            text,
            "mad.lo.u32 %r13, %r1, 16, %r3;\nadd.u32 %r13, %r13, {half};\nsetp.lt.u32 %p0, %r4, 2;\n\
             selp.b32 %r5, %r13, %r5, %p0;\n"
        )
        .unwrap();
    }
    let guard = match random.below(4) {
        0 => {
            let mask = random.of(&[1, 2, 7, 32]);
            write!(text, "and.b32 %r6, %r1, {mask};\nsetp.eq.u32 %p1, %r6, 0;\n").unwrap();
            "@%p1 "
        }
        _ => "",
    };
    // The place, or the same by a generic address.
    let (space, place) = match random.one_in(4) {
        true => {
            writeln!(text, "cvt.u64.u32 %rd8, %r5;\ncvta.shared.u64 %rd8, %rd8;").unwrap();
            ("", "%rd8")
        }
        false => (".shared", "%r5"),
    };
    if (bits, vector) == (32, 1) && random.one_in(3) {
        let instruction =
            random.of(&["red.shared.add.u32", "atom.shared.max.u32 %r7,", "red.shared.gpu.or.b32"]);
        if calm || random.one_in(2) {
            let mask = random.of(&[0, 7, 63]);
            write!(
                text,
                "and.b32 %r5, %r1, {mask};\nmad.lo.u32 %r5, %r5, 4, %r3;\nadd.u32 %r5, %r5, {BYTES};\n"
            )
            .unwrap();
        }
        writeln!(text, "{guard}{instruction} [%r5], %r1;").unwrap();
    } else if writes {
        writeln!(text, "{guard}st{space}{suffix}.{ty} [{place}], {list};").unwrap();
    } else {
        writeln!(text, "{guard}ld{space}{suffix}.{ty} {list}, [{place}];").unwrap();
        // Some use what they load in some threads alone.
        let guard = if random.one_in(6) { "@%p3 " } else { guard };
        for value in values {
            let bits = if bits == 64 { 64 } else { 32 };
            let sum = if bits == 64 { "%rd3" } else { "%r2" };
            writeln!(text, "{guard}xor.b{bits} {sum}, {sum}, {value};").unwrap();
        }
    }
}

/// A loop of some steps, of which so many do as they like: in the others no thread meets another.
fn program(random: &mut Random, wild: u32) -> String {
    let mut body = String::new();
    let mut left = wild;
    for steps in (1..=wild + 3 + random.below(7)).rev() {
        let is_wild = random.below(steps) < left;
        left -= u32::from(is_wild);
        step(random, !is_wild, &mut body);
    }
    // Now and then not all is written at first.
    let filled = if random.one_in(2) { BYTES / 4 - random.below(BYTES / 8) } else { BYTES / 4 };
    let all = BYTES + 256;
    let values: String = (0..4)
        .map(|at| format!("mov.u32 %r{}, {};\nmov.b64 %rd{}, {};\n", 8 + at, 3 + at, 4 + at, 5 * at))
        .collect();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 tile[{all}];\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r3, tile;\nmov.u32 %r2, 0;\nmov.b64 %rd3, 0;\n\
         {values}and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p3, %r4, 0;\nmov.u32 %r4, %r1;\nfill:\nsetp.ge.u32 %p2, %r4, {filled};\n@%p2 bra filled;\n\
         mad.lo.u32 %r5, %r4, 4, %r3;\nst.shared.u32 [%r5], %r4;\nadd.u32 %r4, %r4, {THREADS};\nbra fill;\n\
         filled:\nmad.lo.u32 %r5, %r1, 4, %r3;\nst.shared.u32 [%r5+{BYTES}], %r1;\nbar.sync 0;\nmov.u32 %r4, 0;\nagain:\n{body}add.u32 %r4, %r4, 1;\n\
         setp.lt.u32 %p2, %r4, 5;\n@%p2 bra again;\n\
         mul.wide.u32 %rd2, %r1, 8;\nadd.u64 %rd1, %rd1, %rd2;\ncvt.u64.u32 %rd2, %r2;\n\
         xor.b64 %rd3, %rd3, %rd2;\nsetp.eq.u64 %p2, %rd3, 12;\n@%p2 bra done;\ndone:\n\nst.global.u64 [%rd1], %rd3;\nret;\n}}\n"
    )
}

#[test]
fn what_checks_find_in_shared_memory_is_what_the_interpreter_finds() {
    let (mut random, mut clean, mut racy, mut unwritten) = (Random(7), 0, 0, 0);
    for at in 0..1000 {
        let text = program(&mut random, [0, 1, 1, 2, 5][at % 5]);
        let [interpreted, compiled] = [Native::Off, Native::Always].map(|native| {
            let mut config = DeviceConfig::default();
            (config.workers, config.native) = (1, native);
            let device = Device::new(config).unwrap();
            let out = device.alloc_zeros::<u64>(THREADS as usize).unwrap();
            let options = Options { checks: Checks::all(), ..Options::default() };
            let report = launch(&device, &text, &LaunchConfig::new(2, THREADS), &out, &options).wait();
            let said = format!("{:?} {:?}", report.findings, report.trap);
            ((out.read(), said), report.findings)
        });
        assert_eq!(interpreted.0, compiled.0, "{text}");
        let has = |is: fn(&FindingKind) -> bool| compiled.1.iter().any(|finding| is(&finding.kind));
        clean += u32::from(compiled.1.is_empty());
        racy += u32::from(has(|kind| matches!(kind, FindingKind::Race { .. })));
        unwritten += u32::from(has(|kind| !matches!(kind, FindingKind::Race { .. })));
    }
    assert!(clean > 100 && racy > 100 && unwritten > 25, "{clean}, {racy}, {unwritten}");
}

/// An operation that orders nothing without a fence orders what came before one.
#[test]
fn an_operation_behind_a_fence_releases() {
    let text = kernel(
        "    .shared .align 4 .b32 data[8];
            .shared .align 4 .b32 flag;
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, data;
            mov.u32 %r3, flag;
            setp.ne.u32 %p1, %r1, 0;
            @!%p1 st.shared.u32 [%r3], 0;
            bar.sync 0;
            mov.u32 %r4, 0;
            again:
            setp.eq.u32 %p2, %r1, 0;
            @!%p2 bra reader;
            st.shared.u32 [%r2], %r4;
            membar.cta;
            red.shared.add.u32 [%r3], 1;
            bra next;
            reader:
            setp.ne.u32 %p3, %r1, 32;
            @%p3 bra next;
            look:
            ld.volatile.shared.u32 %r5, [%r3];
            setp.le.u32 %p4, %r5, %r4;
            @%p4 bra look;
            membar.cta;
            ld.shared.u32 %r6, [%r2];
            st.global.u32 [%rd1], %r6;
            next:
            add.u32 %r2, %r2, 4;
            add.u32 %r4, %r4, 1;
            setp.lt.u32 %p5, %r4, 8;
            @%p5 bra again;
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
        assert_eq!(word.read(), [7]);
    }
}

/// What lanes load and do not use does not count, when native code does it either.
#[test]
fn what_lanes_load_in_vain_is_no_race() {
    let text = kernel(
        "    .shared .align 4 .b32 word;
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, word;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 st.shared.u32 [%r2], 0;
            bar.sync 0;
            mov.u32 %r4, 0;
            again:
            ld.shared.u32 %r5, [%r2];
            add.u32 %r5, %r5, 1;
            @%p1 st.shared.u32 [%r2], %r5;
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

/// One lane of a warp meets one other thread at one word, whichever that is: of lanes one behind the other, by turns, or of
/// every other one.
#[test]
fn each_lane_meets_each_word() {
    let places = [("mov.u32 %r3, %r1;", 1), ("xor.b32 %r3, %r1, 1;", 1), ("mov.u32 %r3, %r1;", 2)];
    let forms = [("", "%r8", 1), (".v2", "{%r8, %r9}", 2), (".v4", "{%r8, %r9, %r10, %r11}", 4)];
    for (place, apart) in places {
        for (vector, values, words) in forms {
            for writes in [false, true] {
                let (of_warp, of_other) = match writes {
                    true => (format!("st.shared{vector}.u32 [%r3], {values};"), "ld.shared.u32 %r12, [%r6];"),
                    false => (format!("ld.shared{vector}.u32 {values}, [%r3];"), "st.shared.u32 [%r6], %r1;"),
                };
                let text = kernel(&format!(
                    "    .shared .align 16 .b32 tile[256];
                        ld.global.u32 %r7, [%rd1];
                        mov.u32 %r1, %tid.x;
                        mov.u32 %r2, tile;
                        mad.lo.u32 %r3, %r1, 16, %r2;
                        st.shared.v4.u32 [%r3], {{%r1, %r1, %r1, %r1}};
                        bar.sync 0;
                        {place}
                        mad.lo.u32 %r3, %r3, {size}, %r2;
                        rem.u32 %r4, %r1, {apart};
                        setp.ne.u32 %p1, %r4, 0;
                        setp.ne.u32 %p2, %r1, 32;
                        setp.ge.u32 %p3, %r1, 32;
                        mov.u32 %r8, %r1;
                        mov.u32 %r9, %r1;
                        mov.u32 %r10, %r1;
                        mov.u32 %r11, %r1;
                        mov.u32 %r12, %r1;
                        mov.u32 %r4, 0;
                        again:
                        setp.eq.u32 %p4, %r4, 3;
                        selp.u32 %r6, %r7, 512, %p4;
                        add.u32 %r6, %r6, %r2;
                        @%p3 bra other;
                        {guard}{of_warp}
                        bra next;
                        other:
                        @!%p2 {of_other}
                        next:
                        bar.sync 0;
                        add.u32 %r4, %r4, 1;
                        setp.lt.u32 %p5, %r4, 4;
                        @%p5 bra again;
                        xor.b32 %r8, %r8, %r9;
                        xor.b32 %r10, %r10, %r11;
                        xor.b32 %r8, %r8, %r10;
                        xor.b32 %r8, %r8, %r12;
                        mul.wide.u32 %rd2, %r1, 4;
                        add.u64 %rd1, %rd1, %rd2;
                        st.global.u32 [%rd1+4], %r8;
                        ret;",
                    size = 4 * words,
                    guard = if apart == 1 { "" } else { "@!%p1 " },
                ));
                let [interpreted, compiled] = [Native::Off, Native::Always].map(|native| {
                    let mut config = DeviceConfig::default();
                    (config.workers, config.native) = (1, native);
                    let device = Device::new(config).unwrap();
                    let module = load(&device, &text);
                    let options = Options { checks: Checks::all(), ..Options::default() };
                    (0..32 * words)
                        .filter(|word| word / words % apart == 0)
                        .map(|word| {
                            let buffer = device.alloc_zeros::<u32>(65).unwrap();
                            buffer.write(&[4 * word; 65]).unwrap();
                            let (shape, args) = (LaunchConfig::new(1, 64), [Arg::buffer(&buffer)]);
                            let report = device.launch(&module, "k", &shape, &args, &options).unwrap().wait();
                            assert!(!report.findings.is_empty(), "{native:?}, word {word}: {text}");
                            format!("{:?}", report.findings)
                        })
                        .collect::<Vec<_>>()
                });
                assert_eq!(interpreted, compiled, "{text}");
            }
        }
    }
}
