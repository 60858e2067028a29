//! Memory that the host has, mapped where it is for the host; and bytes by their addresses.

use crate::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use warpwright_vm::check::*;

/// Words of the host that stay.
fn words(count: usize) -> &'static [AtomicU32] {
    Vec::leak((0..count).map(|_| AtomicU32::new(0)).collect())
}

fn address(words: &[AtomicU32]) -> u64 {
    words.as_ptr().addr() as u64
}

/// Adds one to the word at `p`, atomically, and stores 7 in the next one.
fn add_and_store() -> String {
    kernel("    red.global.add.u32 [%rd1], 1;\n    st.global.u32 [%rd1+4], 7;\n    ret;")
}

fn run(device: &Device, text: &str, address: u64, threads: u32) -> Report {
    let module = load(device, text);
    let config = LaunchConfig::new(1, threads);
    device.launch(&module, "k", &config, &[Arg::Pointer(address)], &Options::checked()).unwrap().wait()
}

/// What the only finding is, and what it says of the memory: its name, the offset in it, and whether it was freed.
fn finding(report: &Report) -> (FindingKind, Option<(String, i64, bool)>) {
    let [finding] = &report.findings[..] else { panic!("one finding is expected: {report}") };
    let memory = finding.accesses[0].memory.as_ref().and_then(|memory| memory.allocation.as_ref());
    (finding.kind.clone(), memory.map(|found| (found.name.clone(), found.offset, found.freed)))
}

#[test]
fn kernels_find_memory_of_the_host_at_its_own_address() {
    let device = device();
    let before = device.free_memory();
    let (first, second) = (words(2), words(2));
    let maps = [first, second].map(|words| device.map_host(Arc::new(words), 8, "flags").unwrap());
    assert_eq!(maps.each_ref().map(Buffer::address), [address(first), address(second)]);
    assert_eq!(device.free_memory(), before, "it takes none of the device's");
    let other = device.alloc_zeros::<u32>(2).unwrap();
    for (at, threads) in [(address(first), 3), (address(second), 5), (other.address(), 1)] {
        let report = run(&device, &add_and_store(), at, 1);
        assert!(report.is_clean(), "{report}");
        // Threads that store one value race only by the letter.
        assert!(run(&device, &add_and_store(), at, threads).trap.is_none());
    }
    let values = |words: &[AtomicU32]| [words[0].load(Relaxed), words[1].load(Relaxed)];
    assert_eq!((values(first), values(second)), ([4, 7], [6, 7]));
    assert_eq!(other.read(), [2, 7]);
    assert_eq!(maps[1].read(), [6, 0, 0, 0, 7, 0, 0, 0]);
}

/// Memory that the host lends is as memory of the device: without a value until it is written, and nobody else's.
#[test]
fn lent_memory_is_the_devices() {
    let device = device();
    let before = device.free_memory();
    let room = words(4);
    let lent = device.lend_host(Arc::new(room), 14, "lent").unwrap();
    assert_eq!((lent.address(), device.free_memory()), (address(room), before));
    let report = run(&device, &add_and_store(), lent.address(), 1);
    let unwritten = FindingKind::UninitializedMemory { space: SpaceKind::Global };
    assert_eq!(finding(&report), (unwritten, Some(("lent".to_owned(), 0, false))));
    assert!(lent.is_written(4, 4) && !lent.is_written(4, 5), "what the kernel wrote is");
    lent.forget();
    lent.mark_written(0, 4).unwrap();
    assert!(lent.mark_written(12, 3).is_err(), "it ends there");
    assert!(run(&device, &add_and_store(), lent.address(), 1).is_clean());
    assert_eq!(room[1].load(Relaxed), 7, "nothing was copied");
    lent.forget();
    assert!(!run(&device, &add_and_store(), lent.address(), 1).is_clean());
    // A kernel that waits for the host to change it waits for ever.
    let wait = kernel(
        "$trip:
    ld.relaxed.sys.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 99;
    @%p1 bra $trip;
    ret;",
    );
    lent.mark_written(0, 14).unwrap();
    let report = run(&device, &wait, lent.address(), 1);
    assert_eq!(report.trap.map(|trap| trap.kind), Some(TrapKind::Deadlock));
    drop(lent);
    let report = run(&device, &add_and_store(), address(room), 1);
    assert_eq!(report.findings.len(), 2, "it was given back: {report}");
}

#[test]
fn only_what_was_mapped_is_reached() {
    let device = device();
    let room = words(8);
    let map = device.map_host(Arc::new(&room[2..]), 6, "narrow").unwrap();
    // The second word has two bytes only.
    let report = run(&device, &add_and_store(), map.address(), 1);
    let place = |offset| Some(("narrow".to_owned(), offset, false));
    assert_eq!(finding(&report), (FindingKind::Access(FaultKind::OutOfBounds), place(4)));
    let text = kernel("    ld.global.u32 %r1, [%rd1+-4];\n    st.global.u8 [%rd1+5], %r1;\n    ret;");
    let report = run(&device, &text, map.address(), 1);
    assert_eq!(finding(&report), (FindingKind::Access(FaultKind::OutOfBounds), place(-4)));
    assert_eq!(room.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn addresses_of_the_host_are_mapped_again() {
    let device = device();
    let room = words(8);
    for round in 0..3 {
        let map = device.map_host(Arc::new(room), 32, "first").unwrap();
        assert!(run(&device, &add_and_store(), map.address(), 1).is_clean());
        drop(map);
        let report = run(&device, &kernel("    st.global.u32 [%rd1], 9;\n    ret;"), address(room), 1);
        let freed = Some(("first".to_owned(), 0, true));
        assert_eq!(finding(&report), (FindingKind::Access(FaultKind::Freed), freed));
        assert_eq!(room[0].load(Relaxed), round + 1);
    }
    // Other pieces of the same memory, and what lies between them.
    let low = device.map_host(Arc::new(&room[..2]), 8, "low").unwrap();
    let high = device.map_host(Arc::new(&room[4..]), 16, "high").unwrap();
    assert!(run(&device, &add_and_store(), low.address(), 1).is_clean());
    assert!(run(&device, &add_and_store(), high.address(), 1).is_clean());
    let report = run(&device, &add_and_store(), address(room) + 4, 1);
    let (kind, _) = finding(&report);
    assert_eq!(kind, FindingKind::Access(FaultKind::OutOfBounds), "the old piece is forgotten");
}

#[test]
fn memory_stays_as_long_as_a_launch_may_reach_it() {
    let device = device();
    let owner: Arc<Vec<AtomicU32>> = Arc::new((0..2).map(|_| AtomicU32::new(0)).collect());
    let held = Arc::downgrade(&owner);
    let map = device.map_host(owner, 8, "flags").unwrap();
    // Says that it runs, and goes on when the host has answered.
    let text = kernel(
        "    st.volatile.global.u32 [%rd1], 1;
$wait:
    ld.volatile.global.u32 %r1, [%rd1+4];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $wait;
    ret;",
    );
    let module = load(&device, &text);
    let args = [Arg::Pointer(map.address())];
    let running = device.launch(&module, "k", &LaunchConfig::new(1, 1), &args, &Options::checked()).unwrap();
    let words = held.upgrade().unwrap();
    until(|| words[0].load(Relaxed) != 0);
    drop(map);
    assert_eq!(Arc::strong_count(&words), 2, "the launch has it");
    words[1].store(1, Relaxed);
    drop(words);
    assert!(running.wait().is_clean());
    // The thread that ran it lets go after it has said so.
    until(|| held.upgrade().is_none());
}

#[test]
fn what_overlaps_is_refused() {
    let device = device();
    let room = words(16);
    let map = device.map_host(Arc::new(&room[4..8]), 16, "taken").unwrap();
    for range in [4..8, 0..5, 7..9, 5..6, 0..16] {
        let words = &room[range];
        let refused = device.map_host(Arc::new(words), 4 * words.len() as u64, "").map(|map| map.address());
        let Err(DeviceError::Overlap { address: at, other, other_bytes, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((at, other, other_bytes), (address(words), map.address(), 16));
    }
    let beside = [&room[..4], &room[8..]].map(|words| device.map_host(Arc::new(words), 16, "").unwrap());
    assert_eq!(beside.each_ref().map(|map| map.len()), [16, 16]);
    for bytes in [0, 65, u64::MAX] {
        assert!(
            matches!(device.map_host(Arc::new(room), bytes, ""), Err(DeviceError::Range { .. })),
            "{bytes}"
        );
    }
    // Another device has its own.
    assert!(super::device().map_host(Arc::new(room), 64, "").is_ok());
}

#[test]
fn what_is_wide_is_whole() {
    let device = device();
    let room = words(2);
    let map = device.map_host(Arc::new(room), 8, "").unwrap();
    let text = kernel(
        "    mov.u64 %rd2, 0x100000001;
    mov.u32 %r1, 0;
$trip:
    atom.global.add.u64 %rd3, [%rd1], %rd2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra $trip;
    ret;",
    );
    let module = load(&device, &text);
    let args = [Arg::buffer(&map)];
    let launch = device.launch(&module, "k", &LaunchConfig::new(8, 64), &args, &Options::checked());
    let report = launch.unwrap().wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!([room[0].load(Relaxed), room[1].load(Relaxed)], [51200, 51200]);
}

#[test]
fn devices_can_have_addresses_of_their_own() {
    let device = |addresses, memory| {
        let mut config = DeviceConfig::default();
        (config.addresses, config.memory, config.workers) = (addresses, memory, 1);
        Device::new(config).unwrap()
    };
    let devices: Vec<Device> = (0..4).map(|index| device((index, 3), 1 << 30)).collect();
    let buffers: Vec<_> = devices.iter().map(|device| device.alloc_zeros::<u32>(2).unwrap()).collect();
    let at = |index: usize| buffers[index].address();
    assert!(at(0) < at(1) && at(1) < at(2));
    assert_eq!(at(3), at(2), "an index that is none means the last part");
    assert_eq!(at(1) - at(0), at(2) - at(1));
    for (device, buffer) in devices.iter().zip(&buffers) {
        assert!(run(device, &add_and_store(), buffer.address(), 1).is_clean());
        assert_eq!(buffer.read(), [1, 7]);
    }
    let report = run(&devices[0], &add_and_store(), at(1), 1);
    assert!(report.findings.iter().all(|f| f.kind == FindingKind::Access(FaultKind::OutOfBounds)));
    assert_eq!((report.findings.len(), buffers[1].read()), (2, vec![1, 7]));
    assert!(matches!(devices[0].span(at(1), 1), Err(DeviceError::NoMemory { .. })));
    // A small part is soon used up.
    let narrow = device((0, 1 << 22), 1 << 40);
    assert!(narrow.alloc::<u8>(1 << 20).is_ok() && narrow.alloc::<u8>(1 << 20).is_ok());
    assert!(matches!(narrow.alloc::<u8>(1), Err(DeviceError::OutOfMemory { .. })));
}

#[test]
fn bytes_are_found_by_their_addresses() {
    let device = device();
    let text = ".version 7.8
.target sm_80
.address_size 64
.global .align 4 .b8 table[12];
.visible .entry k() { ret; }
";
    let module = load(&device, text);
    let (table, _) = module.variable("table").unwrap();
    let room = words(4);
    let map = device.map_host(Arc::new(room), 16, "").unwrap();
    let buffer = device.alloc::<u8>(100).unwrap();

    let inside = device.span(buffer.address() + 10, 90).unwrap();
    inside.fill(1, 7, &[1, 2, 3]).unwrap();
    let mut bytes = [9; 9];
    inside.read(0, &mut bytes[..8]).unwrap();
    assert_eq!(bytes, [0, 1, 2, 3, 1, 2, 3, 1, 9]);
    device.span(table, 12).unwrap().copy(4, &inside, 1, 7).unwrap();
    assert_eq!(device.read_variable(&module, "table").unwrap(), [0, 0, 0, 0, 1, 2, 3, 1, 2, 3, 1, 0]);
    device.span(map.address() + 3, 5).unwrap().copy(0, &device.span(table + 4, 7).unwrap(), 0, 5).unwrap();
    assert_eq!(room[0].load(Relaxed).to_le_bytes(), [0, 0, 0, 1]);
    assert_eq!(room[1].load(Relaxed).to_le_bytes(), [2, 3, 1, 2]);

    // A pattern that does not divide what is filled at a time.
    let large = device.alloc::<u8>(10_000).unwrap();
    device.span(large.address(), 10_000).unwrap().fill(0, 10_000, &[5, 6, 7]).unwrap();
    assert!(large.read().iter().enumerate().all(|(index, &byte)| byte == 5 + (index % 3) as u8));
    // Ranges of one buffer that overlap, either way.
    let all = device.span(large.address(), 10_000).unwrap();
    let order: Vec<u8> = (0..10_000).map(|n| (n % 251) as u8).collect();
    for (to, from) in [(1, 0), (0, 1), (5000, 4999), (0, 4097)] {
        all.write(0, &order).unwrap();
        all.copy(to, &all, from, 5000).unwrap();
        assert_eq!(large.read()[to as usize..][..5000], order[from as usize..][..5000]);
    }

    let outside = |address, bytes| matches!(device.span(address, bytes), Err(DeviceError::NoMemory { .. }));
    assert!(outside(buffer.address(), 101) && outside(buffer.address() + 100, 1) && outside(0, 1));
    assert!(outside(buffer.address() + 1, u64::MAX) && outside(map.address() + 16, 0));
    assert!(matches!(inside.write(90, &[1]), Err(DeviceError::Range { .. })));
    let at = buffer.address();
    drop(buffer);
    assert!(outside(at, 1));
    inside.read(0, &mut bytes).expect("what is held stays");
}

#[test]
fn reserved_addresses_are_accessed_as_far_as_they_are_mapped() {
    let device = device();
    // The addresses are one thing, and the words for them another.
    let (addresses, room) = (address(words(64)), words(64));
    let reserved = device.reserve(addresses, Arc::new(room), 256, "range").unwrap();
    let at = |offset: u64| addresses + offset;
    let read = kernel("    ld.global.u32 %r1, [%rd1];\n    ret;");
    let write = kernel("    st.global.u32 [%rd1], 5;\n    ret;");
    let fault = |text: &str, offset: u64| match run(&device, text, at(offset), 1) {
        report if report.findings.is_empty() => None,
        report => {
            let (kind, place) = finding(&report);
            assert_eq!(place, Some(("range".to_owned(), offset as i64, false)));
            let FindingKind::Access(kind) = kind else { panic!("{report}") };
            Some(kind)
        }
    };
    for (offset, access, of_read, of_write) in [
        (0, PageAccess::Unmapped, Some(FaultKind::Unmapped), Some(FaultKind::Unmapped)),
        (64, PageAccess::None, Some(FaultKind::NoAccess), Some(FaultKind::NoAccess)),
        (128, PageAccess::Read, None, Some(FaultKind::ReadOnly)),
        (192, PageAccess::ReadWrite, None, None),
    ] {
        reserved.set(offset, 64, access).unwrap();
        assert_eq!((fault(&read, offset), fault(&write, offset)), (of_read, of_write), "{access:?}");
        // The host's accesses too, wholly or not at all.
        assert_eq!(device.span(at(offset), 64).is_ok(), of_read.is_none(), "{access:?}");
        assert_eq!(device.extent(at(offset)), Some((addresses, 256)));
    }
    assert_eq!(room[48].load(Relaxed), 5);
    assert_eq!(fault(&read, 126), Some(FaultKind::Misaligned));
    assert!(device.span(at(64 + 60), 8).is_err(), "from what has no access to what has");
    reserved.set(64, 64, PageAccess::ReadWrite).unwrap();
    assert!(device.span(at(64), 128).is_err(), "read-only is another part");
    reserved.set(128, 64, PageAccess::ReadWrite).unwrap();
    assert!(device.span(at(64), 192).is_ok());
    // A kernel's write is where the host's is.
    let span = device.span(at(188), 8).unwrap();
    span.write(0, &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    assert_eq!((room[47].load(Relaxed), room[48].load(Relaxed)), (1, 2));
    reserved.set(192, 64, PageAccess::Unmapped).unwrap();
    assert_eq!(fault(&write, 192), Some(FaultKind::Unmapped));
    assert!(matches!(reserved.set(192, 65, PageAccess::Read), Err(DeviceError::Range { .. })));
    drop(reserved);
    let (kind, _) = finding(&run(&device, &write, at(64), 1));
    assert_eq!(kind, FindingKind::Access(FaultKind::Freed));
}

/// Memory that is bound side by side to multimem addresses need not be so where it is itself.
#[test]
fn a_copy_goes_across_what_is_bound_at_once() {
    const PART: u64 = 4096;
    let mut config = DeviceConfig::default();
    config.arch = warpwright_ptx::ir::Arch::sm(90);
    let device = Device::new(config).unwrap();
    let (first, second) =
        (device.alloc_zeros::<u32>(1024).unwrap(), device.alloc_zeros::<u32>(1024).unwrap());
    let multi = 1 << 32;
    let reserved =
        device.reserve(multi, Arc::new(words(3 * PART as usize / 4)), 3 * PART, "multicast").unwrap();
    // The second memory comes first.
    for (at, buffer) in [(0, &second), (PART, &first)] {
        let distance = buffer.address().wrapping_sub(multi + at);
        reserved.set(at, PART, PageAccess::Multimem { distance }).unwrap();
    }
    let copy = |instruction: &str| {
        let body = format!(
            "    .shared .align 16 .b8 tile[128];
    mov.u32 %r1, tile;
    mov.u32 %r2, 0;
$put:
    mad.lo.s32 %r3, %r2, 4, %r1;
    st.shared.u32 [%r3], %r2;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 32;
    @%p1 bra $put;
    fence.proxy.async.shared::cta;
    {instruction} [%rd1], [%r1], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;"
        );
        kernel(&body).replace(".version 7.8\n.target sm_80", ".version 9.1\n.target sm_90")
    };
    let stored = copy("multimem.cp.async.bulk.global.shared::cta.bulk_group");
    let added = copy("multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32");
    for (text, factor) in [(&stored, 1), (&added, 2)] {
        let report = run(&device, text, multi + PART - 80, 1);
        assert!(report.is_clean(), "{report}");
        let found = [&second.read()[1024 - 20..], &first.read()[..12]].concat();
        assert_eq!(found, (0..32).map(|word| word * factor).collect::<Vec<u32>>());
    }
    // From where memory is bound to where none is: what is, is written.
    let (kind, _) = finding(&run(&device, &stored, multi + 2 * PART - 80, 1));
    assert_eq!(kind, FindingKind::Access(FaultKind::Unmapped));
    assert_eq!(first.read()[1024 - 20..], (0..20).collect::<Vec<u32>>()[..]);
}

#[test]
fn what_the_host_keeps_counts_as_the_devices() {
    let device = device();
    let before = device.free_memory();
    let claim = device.claim(1 << 20).unwrap();
    assert_eq!(device.free_memory(), before - (1 << 20));
    assert!(matches!(device.claim(before), Err(DeviceError::OutOfMemory { .. })));
    drop(claim);
    assert_eq!(device.free_memory(), before);
}
