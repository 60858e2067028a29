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
fn what_may_still_change_is_not_hung() {
    // Time goes on, a counter counts, another block still works: all of it ends by the budget at most.
    for (poll, what) in [
        ("mov.u64 %rd2, %clock64;", "the clock"),
        ("mov.u64 %rd2, %globaltimer;", "the time"),
        (
            "mov.u64 %rd2, %clock64; setp.gt.u64 %p3, %rd2, 0xffffffffffff; selp.u32 %r1, 1, 0, %p3;
             mov.u64 %rd2, 0; ld.volatile.global.u32 %r3, [%rd1];",
            "a time limit, of which nothing is left where the warp gives way",
        ),
        ("add.u64 %rd3, %rd3, 1;", "a counter"),
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
