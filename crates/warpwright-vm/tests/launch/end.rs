//! Launches that do not end by themselves.

use crate::*;

/// Thread 0 of each block spins on the flag in word 0, or on nothing but its own registers; the rest of the
/// block waits at a barrier.
fn spin(poll: &str) -> String {
    kernel(&format!(
        "    mov.u32 %r2, %tid.x;
    mov.u32 %r1, 0;
    mov.u64 %rd3, 0;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra $passed;
$trip:
    {poll}
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra $trip;
$passed:
    bar.sync 0; // barrier
    ret;"
    ))
}

#[test]
fn a_hung_launch_says_where_all_its_threads_are() {
    let text = spin("ld.volatile.global.u32 %r1, [%rd1];");
    for schedule in [Schedule::Parallel, Schedule::Seeded(0), Schedule::Seeded(9)] {
        for blocks in [1, 2, 5] {
            let device = device();
            let flag = device.alloc_zeros::<u32>(1).unwrap();
            let options = Options { schedule, ..Options::checked() };
            let config = LaunchConfig { cooperative: true, ..LaunchConfig::new(blocks, 70) };
            let report = launch(&device, &text, &config, &flag, &options).wait();
            let trap = report.trap.expect("a deadlock");
            assert_eq!((trap.kind, trap.kernel.as_str()), (TrapKind::Deadlock, "k"));
            let threads: u64 = trap.waiting.iter().map(|waiting| waiting.threads).sum();
            assert_eq!(threads, 70 * u64::from(blocks), "{trap:?}");
            let barrier = marked(&text, "barrier");
            let at_barrier = trap.waiting.iter().find(|waiting| line(&text, waiting.origin) == barrier);
            assert_eq!(at_barrier.map(|waiting| waiting.threads), Some(69 * u64::from(blocks)), "{trap:?}");
        }
    }
}

#[test]
fn a_hung_launch_says_what_it_polls() {
    let hung = "every thread that has not exited does the same again and again, and nothing changes: they wait for \
                something that never comes";
    for (poll, end) in [
        (
            "ld.volatile.shared.u32 %r1, [seen+4];",
            "; they poll 0x4 in shared memory, byte 4 of `seen` of 8 bytes",
        ),
        (
            "atom.shared.cas.b32 %r1, [seen], 1, 2;",
            "; they poll 0x0 in shared memory, byte 0 of `seen` of 8 bytes",
        ),
        // What nobody else can change is not polled; what was polled before is not what they wait for.
        ("mov.u32 %r3, 0;", ""),
        ("setp.eq.u32 %p3, %r4, 0; @%p3 ld.volatile.shared.u32 %r1, [seen]; mov.u32 %r4, 1;", ""),
    ] {
        let device = device();
        let flag = device.alloc_zeros::<u32>(1).unwrap();
        let text = spin(poll).replace(
            "    ld.param",
            "    .shared .align 4 .b8 seen[8];
    mov.u32 %r4, 0;
    st.shared.u32 [seen], %r4;
    st.shared.u32 [seen+4], %r4;
    ld.param",
        );
        let report = launch(&device, &text, &LaunchConfig::new(1, 32), &flag, &Options::default()).wait();
        let trap = report.trap.expect("a deadlock");
        assert_eq!(trap.message, format!("{hung}{end}"), "{poll}");
    }
}

#[test]
fn what_may_still_change_is_not_hung() {
    // Time goes on, a counter counts, another block still works: all of it ends by the budget at most.
    for (poll, what) in [
        (
            "mov.u64 %rd2, %clock64; setp.gt.u64 %p3, %rd2, 0xffffffffffff; selp.u32 %r1, 1, 0, %p3;",
            "the clock",
        ),
        ("mov.u64 %rd2, %globaltimer; setp.eq.u64 %p3, %rd2, 0; selp.u32 %r1, 1, 0, %p3;", "the time"),
        (
            "mov.u64 %rd2, %clock64; setp.gt.u64 %p3, %rd2, 0xffffffffffff; selp.u32 %r1, 1, 0, %p3;
             mov.u64 %rd2, 0; ld.volatile.global.u32 %r3, [%rd1];",
            "a time limit, of which nothing is left where the warp gives way",
        ),
        ("add.u64 %rd3, %rd3, 1; shr.u64 %rd2, %rd3, 40; cvt.u32.u64 %r1, %rd2;", "a counter"),
        ("atom.global.add.u32 %r3, [%rd1], 1;", "memory"),
    ] {
        let device = device();
        let flag = device.alloc_zeros::<u32>(1).unwrap();
        let options = Options { max_instructions: 10_000_000, ..Options::default() };
        let text = spin(poll);
        let report = launch(&device, &text, &LaunchConfig::new(1, 33), &flag, &options).wait();
        let trap = report.trap.expect("the budget is spent");
        assert_eq!(trap.kind, TrapKind::Budget, "{what}");
        assert_eq!(trap.waiting.iter().map(|waiting| waiting.threads).sum::<u64>(), 33, "{what}: {trap:?}");
    }
}

#[test]
fn a_loop_that_reads_no_memory_is_hung_whatever_the_host_does() {
    let text = spin("st.shared.u32 [seen], %r1; ld.shared.u32 %r1, [seen];").replace(
        "    ld.param",
        "    .shared .align 4 .b8 seen[4];
    ld.param",
    );
    for schedule in [Schedule::Parallel, Schedule::Seeded(0), Schedule::Seeded(9)] {
        let executed = |host: &dyn Fn(&Running)| {
            let device = device();
            let flag = device.alloc_zeros::<u32>(1).unwrap();
            let options = Options { schedule, ..Options::default() };
            let running = launch(&device, &text, &LaunchConfig::new(1, 70), &flag, &options);
            host(&running);
            let report = running.wait();
            assert_eq!(report.trap.map(|trap| trap.kind), Some(TrapKind::Deadlock), "{schedule:?}");
            report.counters.instructions
        };
        // It waits afterwards, at once, or at some time between.
        let alone = executed(&|running| until(|| running.is_complete()));
        assert_eq!(executed(&|_| ()), alone, "{schedule:?}");
        assert_eq!(executed(&|_| std::thread::sleep(Duration::from_millis(1))), alone, "{schedule:?}");
    }
}

/// A loop of one thread: `step` makes `%r1` of the count in `%r3` and `%rd3`, and the loop ends when `%r1` is not 0.
fn count(step: &str) -> String {
    kernel(&format!(
        "    mov.u32 %r3, 0;
    mov.u64 %rd3, 0;
    mov.u32 %r4, 0;
    mov.u32 %r8, 3;
$trip:
    add.u32 %r3, %r3, 1;
    add.u64 %rd3, %rd3, 1;
    {step}
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra $trip;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1+4], %r4;
    ret;"
    ))
}

#[test]
fn a_loop_whose_count_decides_nothing_is_hung() {
    let probe = |index: &str| {
        format!("{index} mul.wide.u32 %rd2, %r5, 4; add.u64 %rd2, %rd1, %rd2; ld.global.u32 %r1, [%rd2];")
    };
    for step in [
        // Nobody reads it, or only what comes after the loop does.
        probe("mov.u32 %r5, 1;"),
        probe("mov.u32 %r5, 1; add.u32 %r4, %r4, 2; mad.lo.u32 %r7, %r4, %r3, %r7;"),
        // An index into a table of 32 words.
        probe("and.b32 %r5, %r3, 31;"),
        probe("add.u32 %r6, %r3, 77; and.b32 %r5, %r6, 31;"),
        probe("sub.u32 %r6, 77, %r3; and.b32 %r5, %r6, 31;"),
        probe("rem.u32 %r5, %r3, 32;"),
        probe("shl.b32 %r6, %r3, 2; and.b32 %r7, %r6, 127; shr.u32 %r5, %r7, 2;"),
        probe("mul.lo.u32 %r6, %r3, %r3; xor.b32 %r7, %r6, 5; and.b32 %r5, %r7, 31;"),
        probe("mad.lo.u32 %r6, %r3, 7, %r3; or.b32 %r7, %r6, 5; and.b32 %r5, %r7, 31;"),
        probe("cvt.u32.u64 %r6, %rd3; not.b32 %r7, %r6; and.b32 %r5, %r7, 31;"),
        probe("cvt.u16.u32 %rs1, %r3; and.b16 %rs2, %rs1, 31; cvt.u32.u16 %r5, %rs2;"),
        probe("setp.eq.u32 %p1, %r1, 0; selp.b32 %r6, %r3, 5, %p1; mov.u32 %r7, %r6; and.b32 %r5, %r7, 31;"),
        probe("shl.b32 %r6, %r3, %r8; and.b32 %r5, %r6, 31;"),
    ] {
        let device = device();
        let table = device.alloc_zeros::<u32>(32).unwrap();
        let options = Options { max_instructions: 100_000_000, ..Options::checked() };
        let running = launch(&device, &count(&step), &LaunchConfig::new(1, 1), &table, &options);
        let trap = running.wait().trap.expect("it never ends");
        assert_eq!(trap.kind, TrapKind::Deadlock, "{step}");
    }
}

#[test]
fn a_loop_whose_count_decides_is_not_hung() {
    // Each loop ends after 2^17 trips or so, when one bit of the count has come through the instructions.
    for (step, trips) in [
        ("shr.u32 %r1, %r3, 17;", 1 << 17),
        ("shr.u64 %rd2, %rd3, 17; cvt.u32.u64 %r1, %rd2;", 1 << 17),
        ("and.b32 %r1, %r3, 0x20000;", 1 << 17),
        ("shl.b32 %r5, %r3, 14; and.b32 %r1, %r5, 0x80000000;", 1 << 17),
        ("shl.b32 %r5, %r3, %r8; and.b32 %r1, %r5, 0x100000;", 1 << 17),
        ("shl.b32 %r5, %r3, 14; shr.s32 %r6, %r5, 31; and.b32 %r1, %r6, 1;", 1 << 17),
        (
            "shl.b64 %rd2, %rd3, 46; shr.s64 %rd4, %rd2, 4; and.b64 %rd5, %rd4, 0x8000000000000000; shr.u64 %rd6, %rd5, 63; cvt.u32.u64 %r1, %rd6;",
            1 << 17,
        ),
        ("mov.u32 %r5, %r3; or.b32 %r6, %r5, 1; xor.b32 %r7, %r6, 1; shr.u32 %r1, %r7, 17;", 1 << 17),
        ("not.b32 %r5, %r3; shr.u32 %r6, %r5, 17; xor.b32 %r1, %r6, 0x7fff;", 1 << 17),
        ("rem.u32 %r5, %r3, 0x40000; shr.u32 %r1, %r5, 17;", 1 << 17),
        ("mul.lo.u32 %r5, %r3, 2; and.b32 %r1, %r5, 0x40000;", 1 << 17),
        ("mul.wide.u32 %rd2, %r3, 0x10000; shr.u64 %rd4, %rd2, 33; cvt.u32.u64 %r1, %rd4;", 1 << 17),
        ("mul.wide.s32 %rd2, %r3, 0x10000; shr.u64 %rd4, %rd2, 33; cvt.u32.u64 %r1, %rd4;", 1 << 17),
        ("mul.hi.u32 %r1, %r3, 0x8000;", 1 << 17),
        ("mad.lo.u32 %r5, %r8, 0, %r3; shr.u32 %r1, %r5, 17;", 1 << 17),
        ("mad.wide.u32 %rd2, %r8, 0, %rd3; shr.u64 %rd4, %rd2, 17; cvt.u32.u64 %r1, %rd4;", 1 << 17),
        ("sub.u32 %r5, 0x20000, %r3; setp.eq.u32 %p1, %r5, 0; selp.b32 %r1, 1, 0, %p1;", 1 << 17),
        ("shr.u32 %r5, %r3, 12; shl.b32 %r6, %r8, %r5; and.b32 %r1, %r6, 0x80000;", 18 << 12),
        ("shr.u32 %r5, %r3, 12; shr.u32 %r6, 0x200000, %r5; and.b32 %r1, %r6, 1;", 21 << 12),
        // The sign of a narrower value fills the higher bits.
        ("shr.u32 %r5, %r3, 2; cvt.s32.s16 %r6, %r5; shr.u32 %r1, %r6, 31;", 1 << 17),
        (
            "shr.u32 %r5, %r3, 10; cvt.s64.s8 %rd2, %r5; shr.u64 %rd4, %rd2, 60; cvt.u32.u64 %r1, %rd4;",
            1 << 17,
        ),
        ("shr.u32 %r5, %r3, 10; cvt.s8.u32 %r6, %r5; shr.u32 %r1, %r6, 31;", 1 << 17),
        // A predicate, a guard, and a carry between registers.
        ("setp.ge.u32 %p1, %r3, 0x20000; selp.b32 %r1, 1, 0, %p1;", 1 << 17),
        ("setp.ge.u32 %p1, %r3, 0x20000; mov.u32 %r1, 0; @%p1 mov.u32 %r1, 1;", 1 << 17),
        ("add.cc.u32 %r5, %r3, 0xfffe0000; addc.u32 %r1, 0, 0;", 1 << 17),
        ("min.u32 %r5, %r3, 0x20000; and.b32 %r1, %r5, 0x20000;", 1 << 17),
        // The count of the trip before, and one that only every other trip changes.
        ("shr.u32 %r1, %r5, 17; mov.u32 %r5, %r3;", (1 << 17) + 1),
        ("and.b32 %r6, %r3, 1; add.u32 %r5, %r5, %r6; shr.u32 %r1, %r5, 16;", (1 << 17) - 1),
    ] {
        let device = device();
        let words = device.alloc_zeros::<u32>(2).unwrap();
        let text = count(step).replace("    mov.u32 %r4, 0;", "    mov.u32 %r4, 0;\n    mov.u32 %r5, 0;");
        let report = launch(&device, &text, &LaunchConfig::new(1, 1), &words, &Options::default()).wait();
        assert!(report.is_clean(), "{step}: {report}");
        assert_eq!(words.peek(0), Some(trips), "{step}");
    }
}

#[test]
fn a_long_computation_is_waited_for() {
    // Block 1 counts for long, without touching memory, and raises the flag that block 0 waits for.
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $count;
$wait:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra $wait;
    ret;
$count:
    mov.u32 %r3, 0;
$trip:
    add.u32 %r3, %r3, 1;
    setp.ne.u32 %p3, %r3, 12000000;
    @%p3 bra $trip;
    st.volatile.global.u32 [%rd1], 1;
    ret;",
    );
    // In a cooperative grid the two are on two host threads from the start.
    for (schedule, cooperative) in
        [(Schedule::Parallel, false), (Schedule::Parallel, true), (Schedule::Seeded(2), false)]
    {
        let device = device();
        let flag = device.alloc_zeros::<u32>(1).unwrap();
        let options = Options { schedule, ..Options::default() };
        let config = LaunchConfig { cooperative, ..LaunchConfig::new(2, 1) };
        let report = launch(&device, &text, &config, &flag, &options).wait();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn reading_much_and_writing_nothing_is_not_hung() {
    // One warp sums up a buffer, over and over, before it writes a single word.
    let text = kernel(
        "    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
$again:
    mov.u32 %r4, 0;
    mov.u64 %rd2, %rd1;
$next:
    ld.global.u32 %r5, [%rd2];
    add.u32 %r2, %r2, %r5;
    add.u64 %rd2, %rd2, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 1000;
    @%p1 bra $next;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 4000;
    @%p2 bra $again;
    st.global.u32 [%rd1], %r2;
    ret;",
    );
    let device = device();
    let words = device.clone_htod(&[1u32; 1000]).unwrap();
    let report = launch(&device, &text, &LaunchConfig::new(1, 1), &words, &Options::default()).wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(words.peek(0), Some(4_000_000));
}

#[test]
fn the_host_can_end_a_launch() {
    let device = device();
    let flags = device.alloc_mapped::<u32>(1).unwrap();
    let text = spin("ld.volatile.global.u32 %r1, [%rd1];");
    let running = launch(&device, &text, &LaunchConfig::new(4, 64), &flags, &Options::default());
    running.cancel();
    let start = Instant::now();
    let report = running.wait();
    assert!(report.trap.is_none(), "{report}");
    assert!(start.elapsed() < Duration::from_secs(30));
    // The device is as good as before.
    let text = kernel("    st.global.u32 [%rd1], 3;\n    ret;");
    assert!(launch(&device, &text, &LaunchConfig::new(1, 1), &flags, &Options::default()).wait().is_clean());
    assert_eq!(flags.read(), [3]);
}

#[test]
fn a_device_that_goes_takes_its_launches_along() {
    let device = device();
    let flags = device.alloc_mapped::<u32>(1).unwrap();
    let text = spin("ld.volatile.global.u32 %r1, [%rd1];");
    drop(launch(&device, &text, &LaunchConfig::new(4, 64), &flags, &Options::default()));
    drop(flags);
    drop(device);
}

#[test]
fn a_trap_without_the_barrier_of_the_grid_says_so() {
    let of = |body: &str, cooperative| {
        let device = device();
        let flag = device.alloc_zeros::<u32>(1).unwrap();
        let config = LaunchConfig { cooperative, ..LaunchConfig::new(2, 32) };
        let report = launch(&device, &kernel(body), &config, &flag, &Options::checked()).wait();
        report.trap.map(|trap| trap.message)
    };
    let asks = "    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    or.b32 %r1, %r1, %r2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 trap;
    ret;";
    assert_eq!(of(asks, true), None);
    let lacks = "the kernel executed `trap`: it asks for the barrier of the grid, which only a cooperative launch has";
    assert_eq!(of(asks, false).as_deref(), Some(lacks));
    assert_eq!(of("    trap;", false).as_deref(), Some("the kernel executed `trap`"));
}

#[test]
fn a_deadlock_tells_what_mbarriers_wait_for() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/filetests/vm/sync/mbarrier_waits.ptx");
    let text = std::fs::read_to_string(path).unwrap();
    for (kernel, threads, expected) in [
        (
            "bytes_never_come",
            1,
            "1 thread waits in block (0,0,0) for the phase of parity 0 of the mbarrier at 0x0 in shared memory, byte 0 of \
             `bar` of 8 bytes: 0 of its 1 arrivals are pending, and 128 bytes; no copy is under way that could bring those \
             bytes; every thread that has not exited waits for it, so nobody is left that could arrive",
        ),
        (
            "wrong_parity",
            32,
            "32 threads wait in block (0,0,0) for the phase of parity 1 of the mbarrier at 0x0 in shared memory, byte 0 of \
             `bar` of 8 bytes: 32 of its 32 arrivals are pending, and 0 bytes; nobody has arrived since the phase of parity \
             0 ended, for which a wait would be over: is it the wrong parity?; every thread that has not exited waits for \
             it, so nobody is left that could arrive",
        ),
    ] {
        let device = device();
        let module = device.load_ptx(&text).unwrap();
        let options = Options::default();
        let launch = device.launch(&module, kernel, &LaunchConfig::new(1, threads), &[], &options).unwrap();
        let trap = launch.wait().trap.expect("a deadlock");
        let notes: Vec<String> = trap.mbarriers.iter().map(ToString::to_string).collect();
        assert_eq!(notes, [expected]);
    }
}
