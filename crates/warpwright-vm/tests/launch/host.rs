//! Memory that the host reads and writes while a kernel runs.

use crate::*;
use std::thread::spawn;

/// Counts in word 1 until word 0 is not zero.
fn count_until_stopped() -> String {
    kernel(
        "    mov.u32 %r2, 0;
$trip:
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%rd1+4], %r2;
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $trip;
    ret;",
    )
}

/// Does nothing but look at word 0 until it is not zero.
fn wait_for_host() -> String {
    kernel(
        "$trip:
    ld.volatile.global.u32 %r1, [%rd1]; // look
    setp.eq.u32 %p1, %r1, 0; // compare
    @%p1 bra $trip; // again
    st.global.u32 [%rd1+4], %r1;
    ret;",
    )
}

/// Launches a kernel that waits for the host, who does nothing: how it ends once it has looked often.
fn looks_in_vain(device: &Device, flags: &Buffer<u32>, wait: impl FnOnce(Running) -> Report) -> TrapKind {
    // After strong loads it would give its core away each time, which takes long where others want the core.
    let text = wait_for_host().replace(".volatile", "");
    let options = Options { max_instructions: 10_000_000, ..Options::checked() };
    let report = wait(launch(device, &text, &LaunchConfig::new(1, 1), flags, &options));
    report.trap.expect("it does not end by itself").kind
}

#[test]
fn the_host_sees_progress_and_stops_a_kernel() {
    for schedule in [Schedule::Parallel, Schedule::Seeded(1)] {
        let device = device();
        let flags = device.alloc_mapped::<u32>(2).unwrap();
        let options = Options { schedule, ..Options::checked() };
        let running = launch(&device, &count_until_stopped(), &LaunchConfig::new(1, 1), &flags, &options);
        let progress = || flags.peek(1).unwrap();
        until(|| progress() > 0);
        let before = progress();
        until(|| progress() > before + 1000);
        assert!(!running.is_complete());
        assert!(flags.poke(0, 1));
        let report = running.wait();
        assert!(report.is_clean(), "{report}");
        assert_eq!(flags.read(), [1, progress()]);
    }
}

#[test]
fn a_kernel_that_waits_for_the_host_is_not_hung() {
    let device = device();
    let flags = device.alloc_mapped::<u32>(2).unwrap();
    // One host thread waits for the launch, and others may set the flag: it looks as often as it may.
    assert_eq!(looks_in_vain(&device, &flags, Running::wait), TrapKind::Budget);

    let options = Options::checked();
    let running = launch(&device, &wait_for_host(), &LaunchConfig::new(1, 1), &flags, &options);
    let waiter = spawn(move || running.wait());
    flags.poke(0, 5);
    let report = waiter.join().unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(flags.read(), [5, 5]);
}

#[test]
fn memory_of_the_device_counts_as_the_hosts_until_it_waits() {
    let device = device();
    let flags = device.alloc_zeros::<u32>(2).unwrap();
    // As long as the host does not wait, it looks as often as it may.
    let late = |running: Running| {
        until(|| running.is_complete());
        running.wait()
    };
    assert_eq!(looks_in_vain(&device, &flags, late), TrapKind::Budget);

    let options = Options::checked();
    let running = launch(&device, &wait_for_host(), &LaunchConfig::new(1, 1), &flags, &options);
    flags.poke(0, 6);
    let report = running.wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(flags.read(), [6, 6]);

    // Nobody is left who could set it.
    flags.zero();
    let text = wait_for_host();
    let report = launch(&device, &text, &LaunchConfig::new(1, 1), &flags, &options).wait();
    let trap = report.trap.expect("a deadlock");
    assert_eq!(trap.kind, TrapKind::Deadlock);
    let [waiting] = &trap.waiting[..] else { panic!("{trap:?}") };
    assert_eq!((line(&text, waiting.origin), waiting.threads), (marked(&text, "compare"), 1));
}

#[test]
fn a_kernel_that_has_waited_for_the_host_may_hang_later() {
    let device = device();
    let never = device.alloc_zeros::<u32>(1).unwrap();
    let flags = device.alloc_mapped::<u32>(4).unwrap();
    let address = never.address();
    assert!(flags.poke(2, address as u32) && flags.poke(3, (address >> 32) as u32));
    let text = kernel(
        "$host:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $host;
    ld.global.u64 %rd2, [%rd1+8];
$device:
    ld.volatile.global.u32 %r1, [%rd2];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $device;
    ret;",
    );
    let running = launch(&device, &text, &LaunchConfig::new(1, 1), &flags, &Options::checked());
    let waiter = spawn(move || running.wait());
    // Long enough for the launch to be known to wait for the host.
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(flags.poke(0, 1));
    assert_eq!(waiter.join().unwrap().trap.expect("a deadlock").kind, TrapKind::Deadlock);
}

/// Whoever resumes it may be faster than the host thread that takes it out of the device's queue.
#[test]
fn a_launch_may_stand_still_many_times() {
    let mut config = DeviceConfig::default();
    config.workers = 2;
    let device = Device::new(config).unwrap();
    let (flags, options) = (device.alloc_mapped::<u32>(2).unwrap(), Options::default());
    let waiting = launch(&device, &wait_for_host(), &LaunchConfig::new(2, 1), &flags, &options);
    for _ in 0..2000 {
        assert!(matches!(
            waiting.run(),
            Progress::Standing { changed: false, polls_host: true, makes_way: false }
        ));
    }
    // It does not hold up others, nor itself.
    let other = device.alloc_zeros::<u32>(2).unwrap();
    let text = kernel("    st.global.u32 [%rd1], 3;\n    ret;");
    assert!(launch(&device, &text, &LaunchConfig::new(1, 1), &other, &options).wait().is_clean());
    assert!(flags.poke(0, 7));
    assert_eq!(waiting.run(), Progress::Complete);
    assert_eq!((other.read(), flags.peek(1)), (vec![3, 0], Some(7)));
}

/// Between two looks it sleeps, gives its core away, and looks at the time: it never does the same again.
#[test]
fn a_launch_that_sleeps_makes_way_after_few_looks() {
    let text = kernel(
        "    mov.u32 %r2, 0;
$trip:
    mov.u64 %rd2, %globaltimer;
    and.b64 %rd2, %rd2, 15;
    cvt.u32.u64 %r1, %rd2;
    nanosleep.u32 %r1;
    add.u32 %r2, %r2, 1;
    ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $trip;
    st.global.u32 [%rd1+4], %r2;
    ret;",
    );
    let device = device();
    let flags = device.alloc_zeros::<u32>(2).unwrap();
    let waiting = launch(&device, &text, &LaunchConfig::new(1, 1), &flags, &Options::default());
    assert_eq!(waiting.run(), Progress::Standing { changed: false, polls_host: false, makes_way: true });
    assert!(flags.poke(0, 1));
    assert_eq!(waiting.run(), Progress::Complete);
    let looks = flags.read()[1];
    assert!(looks < 1000, "{looks} looks");
}

#[test]
fn a_launch_behind_a_hung_one_waits_for_it_too() {
    let device = device();
    let flags = device.alloc_zeros::<u32>(2).unwrap();
    let options = Options::default();
    let hung = launch(&device, &wait_for_host(), &LaunchConfig::new(1, 1), &flags, &options);
    let other = device.alloc_zeros::<u32>(2).unwrap();
    let text = kernel("    st.global.u32 [%rd1], 3;\n    ret;");
    let next = launch(&device, &text, &LaunchConfig::new(1, 1), &other, &options);
    assert!(next.wait().is_clean());
    assert_eq!(hung.wait().trap.map(|trap| trap.kind), Some(TrapKind::Deadlock));
    assert_eq!(other.read(), [3, 0]);
}

#[test]
fn what_is_written_as_one_is_seen_as_one() {
    // The kernel writes words of eight bytes, all ones or all zeros, and the host never sees half of each.
    let text = kernel(
        "    mov.u64 %rd3, 0;
$trip:
    not.b64 %rd3, %rd3;
    st.volatile.global.u64 [%rd1+8], %rd3;
    ld.volatile.global.u64 %rd2, [%rd1];
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 bra $trip;
    not.b64 %rd2, %rd2;
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 bra $end;
    st.volatile.global.u64 [%rd1+16], %rd2;
$end:
    ret;",
    );
    let device = device();
    let words = device.alloc_mapped::<u64>(3).unwrap();
    let running = launch(&device, &text, &LaunchConfig::new(1, 1), &words, &Options::default());
    let mut seen = [false; 2];
    for _ in 0..200_000 {
        match words.peek(1).unwrap() {
            0 => seen[0] = true,
            u64::MAX => seen[1] = true,
            torn => panic!("{torn:#x}"),
        }
    }
    until(|| {
        seen[usize::from(words.peek(1).unwrap() != 0)] = true;
        seen == [true; 2]
    });
    words.poke(0, u64::MAX);
    let report = running.wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(words.peek(2), Some(0), "the kernel sees the host's word whole");
}

#[test]
fn mapped_memory_is_bounded_like_any_other() {
    let text = kernel("    ld.global.u32 %r1, [%rd1+8];\n    ret;");
    let device = device();
    let flags = device.alloc_mapped::<u32>(2).unwrap();
    assert_eq!(flags.read(), [0, 0]);
    assert_eq!((flags.peek(2), flags.poke(2, 1)), (None, false));
    let report = launch(&device, &text, &LaunchConfig::new(1, 1), &flags, &Options::checked()).wait();
    let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind.clone()).collect();
    assert_eq!(kinds, [FindingKind::Access(FaultKind::OutOfBounds)]);
}
