//! Allocations: what they are, and what is refused.

use crate::*;

#[test]
fn what_is_allocated_is_there_and_aligned() {
    let _context = Ctx::new(0);
    let blocks = [1, 255, 256, 4097, 1 << 21].map(|bytes| (alloc(bytes), bytes));
    for (address, bytes) in blocks {
        assert_eq!(address % 256, 0);
        let data: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
        upload(address, &data);
        assert_eq!(download(address, bytes), data);
        let (mut base, mut size) = (0, 0);
        let last = address + bytes as u64 - 1;
        ok!(cuMemGetAddressRange_v2(output(&mut base), output(&mut size), last));
        assert_eq!((base, size), (address, bytes));
        ok!(cuMemGetAddressRange_v2(Out::null(), output(&mut size), address));
    }
    blocks.into_iter().for_each(|(address, _)| free(address));
}

#[test]
fn bad_addresses_are_refused_and_follow_nothing() {
    let _context = Ctx::new(0);
    let address = alloc(64);
    let null = || Out::null();
    let mut size = 0;
    let table = [
        ("nothing", call!(cuMemAlloc_v2(output(&mut 0), 0)), INVALID),
        ("no place for the address", call!(cuMemAlloc_v2(null(), 64)), INVALID),
        ("more than there is", call!(cuMemAlloc_v2(output(&mut 0), MEMORY + 1)), Status::OUT_OF_MEMORY),
        ("more than can be", call!(cuMemAlloc_v2(output(&mut 0), usize::MAX)), Status::OUT_OF_MEMORY),
        ("an address inside", call!(cuMemFree_v2(address + 8)), INVALID),
        ("an address behind", call!(cuMemFree_v2(address + 64)), INVALID),
        ("an address of nothing", call!(cuMemFree_v2(0x1234_5678)), INVALID),
        ("null is nothing", call!(cuMemFree_v2(0)), OK),
        (
            "where nothing is",
            call!(cuMemGetAddressRange_v2(null(), output(&mut size), 77)),
            Status::NOT_FOUND,
        ),
        ("once", call!(cuMemFree_v2(address)), OK),
        ("twice", call!(cuMemFree_v2(address)), INVALID),
        ("gone", call!(cuMemGetAddressRange_v2(null(), output(&mut size), address)), Status::NOT_FOUND),
        ("a copy to what is gone", call!(cuMemcpyHtoD_v2(address, pointer(&[0u8; 4]), 4)), INVALID),
        ("a fill of what is gone", call!(cuMemsetD8_v2(address, 0, 1)), INVALID),
    ];
    for (what, found, expected) in table {
        assert_eq!(found, expected, "{what}");
    }
    // None of that harms the context.
    free(alloc(64));
}

#[test]
fn without_a_context_there_is_no_memory() {
    drop(Ctx::new(0));
    for status in [
        call!(cuMemAlloc_v2(output(&mut 0), 4)),
        call!(cuMemFree_v2(4)),
        call!(cuStreamCreate(output(&mut CUstream::default()), 0)),
        call!(cuMemcpy(4, 8, 4)),
    ] {
        assert_eq!(status, Status::INVALID_CONTEXT);
    }
}

#[test]
fn a_context_takes_its_memory_along() {
    let context = Ctx::new(1);
    let address = alloc(100 << 20);
    drop(context);
    let _other = Ctx::new(1);
    assert_eq!(call!(cuMemFree_v2(address)), INVALID);
    // All of the device is there again, for one who is alone on it.
    let mut size = 0;
    assert_eq!(call!(cuMemGetAddressRange_v2(Out::null(), output(&mut size), address)), Status::NOT_FOUND);
}

#[test]
fn rows_begin_at_multiples_of_the_pitch() {
    let _context = Ctx::new(0);
    let (mut address, mut pitch) = (0, 0);
    ok!(cuMemAllocPitch_v2(output(&mut address), output(&mut pitch), 700, 3, 4));
    assert!(pitch >= 700 && pitch % 512 == 0);
    let mut size = 0;
    ok!(cuMemGetAddressRange_v2(Out::null(), output(&mut size), address));
    assert_eq!(size, 3 * pitch);
    for (width, height, element) in [(0, 3, 4), (700, 0, 4), (700, 3, 3), (700, 3, 0), (700, 3, 32)] {
        let refused = call!(cuMemAllocPitch_v2(output(&mut 0), output(&mut 0), width, height, element));
        assert_eq!(refused, INVALID, "{width} {height} {element}");
    }
    let huge = call!(cuMemAllocPitch_v2(output(&mut 0), output(&mut 0), usize::MAX, 2, 4));
    assert_eq!(huge, Status::OUT_OF_MEMORY);
    free(address);
}

#[test]
fn managed_memory_is_the_hosts_and_the_devices() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let address = out(|address| call!(cuMemAllocManaged(address, 8, 1))).unwrap();
    let pointer = std::ptr::with_exposed_provenance_mut::<u32>(address as usize);
    // SAFETY: eight bytes that were just allocated; the kernel is waited for.
    unsafe { pointer.write_volatile(5) };
    kernels.add(address, 37, CUstream::NULL);
    ok!(cuCtxSynchronize());
    // SAFETY: as above.
    assert_eq!(unsafe { pointer.read_volatile() }, 42);
    let host = CUmemLocation { kind: CUmemLocationType::HOST, id: 0 };
    for (what, found, expected) in [
        ("prefetch", call!(cuMemPrefetchAsync(address, 8, 0, CUstream::NULL)), OK),
        ("prefetch to the host", call!(cuMemPrefetchAsync(address, 8, -1, CUstream::NULL)), OK),
        ("prefetch to a place", call!(cuMemPrefetchAsync_v2(address, 8, host, 0, CUstream::NULL)), OK),
        ("prefetch nothing", call!(cuMemPrefetchAsync(address, 0, 0, CUstream::NULL)), INVALID),
        ("prefetch too much", call!(cuMemPrefetchAsync(address, 9, 0, CUstream::NULL)), INVALID),
        (
            "prefetch to no device",
            call!(cuMemPrefetchAsync(address, 8, 2, CUstream::NULL)),
            Status::INVALID_DEVICE,
        ),
        ("advice", call!(cuMemAdvise(address, 8, CUmem_advise::SET_READ_MOSTLY, 9)), OK),
        ("advice for a device", call!(cuMemAdvise(address, 8, CUmem_advise::SET_ACCESSED_BY, 1)), OK),
        ("no advice", call!(cuMemAdvise(address, 8, CUmem_advise(7), 0)), INVALID),
        ("attached", call!(cuStreamAttachMemAsync(CUstream::NULL, address, 0, 1)), OK),
        ("attached in part", call!(cuStreamAttachMemAsync(CUstream::NULL, address, 4, 1)), INVALID),
        ("flags", call!(cuMemAllocManaged(output(&mut 0), 8, 3)), INVALID),
        ("nothing", call!(cuMemAllocManaged(output(&mut 0), 0, 1)), INVALID),
        ("not pinned", call!(cuMemFreeHost(pointer.cast())), INVALID),
        ("inside", call!(cuMemFree_v2(address + 4)), INVALID),
        ("given back", call!(cuMemFree_v2(address)), OK),
        ("again", call!(cuMemFree_v2(address)), INVALID),
    ] {
        assert_eq!(found, expected, "{what}");
    }
}
