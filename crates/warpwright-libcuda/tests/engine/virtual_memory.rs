//! Virtual memory management.

use crate::*;
use std::ffi::c_void;

/// Bytes of a page of physical memory.
const PAGE: usize = 2 << 20;

fn prop(device: i32, handles: CUmemAllocationHandleType) -> CUmemAllocationProp {
    CUmemAllocationProp {
        kind: CUmemAllocationType::PINNED,
        requestedHandleTypes: handles,
        location: CUmemLocation { kind: CUmemLocationType::DEVICE, id: device },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: [0; 8],
    }
}

fn create(device: i32, pages: usize) -> Result<CUmemGenericAllocationHandle> {
    let prop = prop(device, CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR);
    out(|handle| call!(cuMemCreate(handle, pages * PAGE, input(&raw const prop), 0)))
}

fn reserve(pages: usize) -> CUdeviceptr {
    out(|address| call!(cuMemAddressReserve(address, pages * PAGE, 0, 0, 0))).unwrap()
}

fn give(address: CUdeviceptr, pages: usize, device: i32, flags: CUmemAccess_flags) -> Status {
    let location = CUmemLocation { kind: CUmemLocationType::DEVICE, id: device };
    let access = CUmemAccessDesc { location, flags };
    call!(cuMemSetAccess(address, pages * PAGE, input(&raw const access), 1))
}

fn access_of(address: CUdeviceptr, device: i32) -> Result<u64> {
    let location = CUmemLocation { kind: CUmemLocationType::DEVICE, id: device };
    out(|flags| call!(cuMemGetAccess(flags, input(&raw const location), address)))
}

fn map(address: CUdeviceptr, pages: usize, handle: CUmemGenericAllocationHandle) -> Status {
    call!(cuMemMap(address, pages * PAGE, 0, handle, 0))
}

fn word(address: CUdeviceptr) -> u32 {
    let mut word = 0u32;
    ok!(cuCtxSynchronize());
    ok!(cuMemcpyDtoH_v2((&raw mut word).cast::<c_void>(), address, 4));
    word
}

const READ: CUmemAccess_flags = CUmemAccess_flags::READ;
const BOTH: CUmemAccess_flags = CUmemAccess_flags::READWRITE;

#[test]
fn physical_memory_is_where_it_is_mapped() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let (range, other) = (reserve(3), reserve(1));
    assert_eq!((range % PAGE as u64, other % PAGE as u64), (0, 0));
    let [first, second] = [1, 2].map(|pages| create(0, pages).unwrap());
    // In another order than they were made, and one of them at two places.
    ok!(cuMemMap(range, 2 * PAGE, 0, second, 0));
    for address in [range + 2 * PAGE as u64, other] {
        assert_eq!(map(address, 1, first), OK);
        assert_eq!(access_of(address, 0), Ok(0));
    }
    assert_eq!((give(range, 3, 0, BOTH), give(other, 1, 0, BOTH)), (OK, OK));
    assert_eq!((access_of(other, 0), access_of(other, 1)), (Ok(3), Ok(0)));
    // Across the end of the one and the beginning of the other.
    let seam = range + 2 * PAGE as u64;
    let words = [7u32, 8, 9];
    ok!(cuMemcpyHtoD_v2(seam - 4, words.as_ptr().cast(), 12));
    kernels.add(seam - 4, 10, CUstream::NULL);
    kernels.add(other, 20, CUstream::NULL);
    let whole: Vec<u32> = [seam - 4, seam, seam + 4].into_iter().map(word).collect();
    assert_eq!((whole, word(other + 4)), (vec![17, 28, 9], 9));
    let mut bytes = 0usize;
    let base = out(|base| call!(cuMemGetAddressRange_v2(base, output(&mut bytes), seam + 100)));
    assert_eq!((base, bytes), (Ok(seam), PAGE));
    // Handles may go before what they stand for; they come back from an address.
    ok!(cuMemRelease(first));
    fails!(INVALID_HANDLE, cuMemRelease(first));
    let at = std::ptr::without_provenance_mut::<c_void>(other as usize + 5);
    let again = out(|handle| call!(cuMemRetainAllocationHandle(handle, at))).unwrap();
    assert_eq!(out(|handle| call!(cuMemRetainAllocationHandle(handle, at))), Ok(again));
    for _ in 0..2 {
        ok!(cuMemRelease(again));
    }
    fails!(INVALID_HANDLE, cuMemRelease(again));
    ok!(cuMemUnmap(range, 3 * PAGE));
    assert_eq!(word(other), 28, "it is mapped there still");
    // What was written is there when it is mapped again.
    assert_eq!((map(range, 2, second), give(range, 2, 0, READ)), (OK, OK));
    assert_eq!(word(seam - 4), 17);
    ok!(cuMemRelease(second));
    ok!(cuMemUnmap(range, 2 * PAGE));
    ok!(cuMemUnmap(other, PAGE));
    ok!(cuMemAddressFree(range, 3 * PAGE));
    ok!(cuMemAddressFree(other, PAGE));
}

#[test]
fn an_access_needs_memory_and_permission() {
    type Prepare = fn(CUdeviceptr, CUmemGenericAllocationHandle);
    let cases: [(&str, Prepare, bool); 6] = [
        ("nothing is mapped", |_, _| {}, false),
        ("no access", |at, handle| assert_eq!(map(at, 1, handle), OK), false),
        (
            "reading alone",
            |at, handle| assert_eq!((map(at, 1, handle), give(at, 1, 0, READ)), (OK, OK)),
            false,
        ),
        (
            "access taken back",
            |at, handle| {
                assert_eq!((map(at, 1, handle), give(at, 1, 0, BOTH)), (OK, OK));
                assert_eq!(give(at, 1, 0, CUmemAccess_flags::NONE), OK);
            },
            false,
        ),
        (
            "unmapped",
            |at, handle| {
                assert_eq!((map(at, 1, handle), give(at, 1, 0, BOTH)), (OK, OK));
                ok!(cuMemUnmap(at, PAGE));
            },
            false,
        ),
        ("all", |at, handle| assert_eq!((map(at, 1, handle), give(at, 1, 0, BOTH)), (OK, OK)), true),
    ];
    for (what, prepare, works) in cases {
        let _context = Ctx::new(0);
        let kernels = Kernels::load();
        let (range, handle) = (reserve(1), create(0, 1).unwrap());
        prepare(range, handle);
        let can_read = access_of(range, 0).is_ok_and(|access| access & 1 != 0);
        let mut word = 0u32;
        let read = call!(cuMemcpyDtoH_v2((&raw mut word).cast::<c_void>(), range, 4));
        assert_eq!(read == OK, can_read, "{what}");
        kernels.add(range, 1, CUstream::NULL);
        assert_eq!(call!(cuCtxSynchronize()) == OK, works, "{what}");
        let _ = call!(cuMemUnmap(range, PAGE));
        ok!(cuMemAddressFree(range, PAGE));
        ok!(cuMemRelease(handle));
    }
}

#[test]
fn what_a_descriptor_stands_for_is_the_same_memory() {
    let _context = Ctx::new(1);
    let kernels = Kernels::load();
    let made = create(1, 1).unwrap();
    let kind = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR;
    let mut file: std::ffi::c_int = -1;
    ok!(cuMemExportToShareableHandle(output((&raw mut file).cast::<c_void>()), made, kind, 0));
    let by_file = |file: i32| std::ptr::without_provenance_mut::<c_void>(file as usize);
    let got = out(|handle| call!(cuMemImportFromShareableHandle(handle, by_file(file), kind))).unwrap();
    assert_ne!(got, made);
    let other = std::fs::File::open("/dev/null").unwrap();
    let other = std::os::fd::AsRawFd::as_raw_fd(&other);
    let wrong = out(|handle: Out<CUmemGenericAllocationHandle>| {
        call!(cuMemImportFromShareableHandle(handle, by_file(other), kind))
    });
    assert_eq!(wrong, Err(INVALID));
    let mut found = prop(0, CUmemAllocationHandleType::NONE);
    ok!(cuMemGetAllocationPropertiesFromHandle(output(&mut found), got));
    assert_eq!((found.location.id, found.requestedHandleTypes), (1, kind));
    let range = reserve(2);
    assert_eq!((map(range, 1, made), map(range + PAGE as u64, 1, got)), (OK, OK));
    assert_eq!(give(range, 2, 1, BOTH), OK);
    kernels.add(range + 8, 5, CUstream::NULL);
    kernels.add(range + 8 + PAGE as u64, 6, CUstream::NULL);
    assert_eq!(word(range + 8), 11);
    ok!(cuMemUnmap(range, 2 * PAGE));
    ok!(cuMemAddressFree(range, 2 * PAGE));
    // SAFETY: it is this test's.
    drop(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(file) });
    for handle in [made, got] {
        ok!(cuMemRelease(handle));
    }
}

#[test]
fn mistakes_with_virtual_memory_are_refused() {
    let _context = Ctx::new(0);
    let (range, handle, large) = (reserve(2), create(0, 1).unwrap(), PAGE as u64);
    let none = CUmemAllocationHandleType::NONE;
    let private = prop(0, none);
    let of = |change: fn(&mut CUmemAllocationProp)| {
        let mut prop = private;
        change(&mut prop);
        out(|handle: Out<CUmemGenericAllocationHandle>| {
            call!(cuMemCreate(handle, PAGE, input(&raw const prop), 0))
        })
        .err()
        .unwrap_or(OK)
    };
    let small =
        |bytes| call!(cuMemCreate(output(&mut Default::default()), bytes, input(&raw const private), 0));
    let at_size = |bytes, align| call!(cuMemAddressReserve(output(&mut 0), bytes, align, 0, 0));
    let hidden = out(|handle| call!(cuMemCreate(handle, PAGE, input(&raw const private), 0))).unwrap();
    let mut file = 0i32;
    let file = output((&raw mut file).cast::<c_void>());
    let posix = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR;
    assert_eq!(map(range, 1, handle), OK);
    let unsupported = Status::NOT_SUPPORTED;
    for (what, found, expected) in [
        ("a part of a page", small(PAGE / 2), INVALID),
        ("nothing", small(0), INVALID),
        ("more than the device has", small(MEMORY + PAGE), Status::OUT_OF_MEMORY),
        ("addresses of a part", at_size(4096, 0), INVALID),
        ("an odd alignment", at_size(PAGE, 3 * PAGE), INVALID),
        ("memory of the host", of(|prop| prop.location.kind = CUmemLocationType::HOST), unsupported),
        ("no device", of(|prop| prop.location.id = 9), Status::INVALID_DEVICE),
        ("a fabric", of(|prop| prop.requestedHandleTypes = CUmemAllocationHandleType::FABRIC), unsupported),
        ("not pinned", of(|prop| prop.kind = CUmemAllocationType::INVALID), INVALID),
        ("mapped twice", map(range, 1, handle), INVALID),
        ("more than there is", map(range + large, 2, handle), INVALID),
        ("behind the end", map(range + 2 * large, 1, handle), INVALID),
        ("not at a page", map(range + 4096, 1, handle), INVALID),
        ("not from its beginning", call!(cuMemMap(range + large, PAGE, PAGE, handle, 0)), INVALID),
        ("nothing there", give(range, 2, 0, BOTH), INVALID),
        ("another device", give(range, 1, 1, BOTH), Status::INVALID_DEVICE),
        ("no access of another device", give(range, 1, 1, CUmemAccess_flags::NONE), OK),
        ("unmapped in part", call!(cuMemUnmap(range, PAGE / 2)), INVALID),
        ("unmapped what is not", call!(cuMemUnmap(range, 2 * PAGE)), INVALID),
        ("freed with memory", call!(cuMemAddressFree(range, 2 * PAGE)), INVALID),
        ("not exported", call!(cuMemExportToShareableHandle(file, hidden, posix, 0)), INVALID),
        ("unmapped", call!(cuMemUnmap(range, PAGE)), OK),
        ("freed in part", call!(cuMemAddressFree(range, PAGE)), INVALID),
        ("freed", call!(cuMemAddressFree(range, 2 * PAGE)), OK),
        ("freed again", call!(cuMemAddressFree(range, 2 * PAGE)), INVALID),
        ("released", call!(cuMemRelease(handle)), OK),
        ("released too", call!(cuMemRelease(hidden)), OK),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    let prop = input(&raw const private);
    let which = CUmemAllocationGranularity_flags::MINIMUM;
    assert_eq!(out(|bytes| call!(cuMemGetAllocationGranularity(bytes, prop, which))), Ok(PAGE));
}
