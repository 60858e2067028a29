//! Multicast objects, and kernels that use their addresses.

use crate::*;
use std::ffi::{c_int, c_void};

const PAGE: usize = 2 << 20;

const MULTIMEM_PTX: &str = "
.version 8.1
.target sm_90
.address_size 64

// Adds `value` to the word at the multimem address `to`, and puts what it finds there into `out`.
.visible .entry add(.param .u64 to, .param .u32 value, .param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.param.u64 %rd2, [out];
    multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;
    multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;
    ret;
}

// The same at an ordinary address.
.visible .entry ordinary(.param .u64 to, .param .u32 value, .param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.param.u64 %rd2, [out];
    red.global.add.u32 [%rd1], %r1;
    ld.relaxed.sys.global.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;
    ret;
}
";

const BOTH: CUmemAccess_flags = CUmemAccess_flags::READWRITE;

fn properties(devices: u32, pages: usize) -> CUmulticastObjectProp {
    let file = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR.0 as u64;
    CUmulticastObjectProp { numDevices: devices, size: pages * PAGE, handleTypes: file, flags: 0 }
}

fn object(pages: usize) -> CUmemGenericAllocationHandle {
    let prop = properties(1, pages);
    out(|handle| call!(cuMulticastCreate(handle, input(&raw const prop)))).unwrap()
}

fn memory(pages: usize) -> CUmemGenericAllocationHandle {
    memory_of(pages, CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR)
}

fn memory_of(pages: usize, handles: CUmemAllocationHandleType) -> CUmemGenericAllocationHandle {
    let prop = CUmemAllocationProp {
        kind: CUmemAllocationType::PINNED,
        requestedHandleTypes: handles,
        location: CUmemLocation { kind: CUmemLocationType::DEVICE, id: 0 },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: [0; 8],
    };
    out(|handle| call!(cuMemCreate(handle, pages * PAGE, input(&raw const prop), 0))).unwrap()
}

fn access(at: CUdeviceptr, pages: usize, flags: CUmemAccess_flags) -> Status {
    let location = CUmemLocation { kind: CUmemLocationType::DEVICE, id: 0 };
    let access = CUmemAccessDesc { location, flags };
    call!(cuMemSetAccess(at, pages * PAGE, input(&raw const access), 1))
}

/// Addresses of pages, where something is mapped.
fn mapped(handle: CUmemGenericAllocationHandle, pages: usize) -> CUdeviceptr {
    let at = out(|address| call!(cuMemAddressReserve(address, pages * PAGE, 0, 0, 0))).unwrap();
    ok!(cuMemMap(at, pages * PAGE, 0, handle, 0));
    assert_eq!(access(at, pages, BOTH), OK);
    at
}

fn unmapped(at: CUdeviceptr, pages: usize) {
    ok!(cuMemUnmap(at, pages * PAGE));
    ok!(cuMemAddressFree(at, pages * PAGE));
}

fn place(at: CUdeviceptr, page: usize, byte: usize) -> CUdeviceptr {
    at + (page * PAGE + byte) as u64
}

#[test]
fn multimem_addresses_lead_to_the_memory_that_is_bound() {
    let _context = Ctx::new();
    assert_eq!(
        out(|value: Out<c_int>| call!(cuDeviceGetAttribute(value, CUdevice_attribute(132), 0))),
        Ok(1)
    );
    let add = function(load(MULTIMEM_PTX).unwrap(), "add").unwrap();
    let found = words(1);
    let sum = |at, value| {
        assert_eq!(launch(add, CUstream::NULL, &[at, value, found]), OK);
        read(found, 1)[0]
    };
    let (object, first, second) = (object(4), memory(2), memory(1));
    ok!(cuMulticastAddDevice(object, 0));
    // Pages of the object: the second one of `first`, nothing, `second`, the first one of `first`.
    let own = mapped(first, 2);
    ok!(cuMulticastBindMem(object, 0, first, PAGE, PAGE, 0));
    let multi = mapped(object, 4);
    ok!(cuMulticastBindMem(object, 2 * PAGE, second, 0, PAGE, 0));
    ok!(cuMulticastBindAddr(object, 3 * PAGE, own, PAGE, 0));
    write(place(own, 1, 8), &[100]);
    assert_eq!(sum(place(multi, 0, 8), 1), 101);
    assert_eq!(sum(place(multi, 3, 12), 2), 2);
    assert_eq!((read(place(own, 1, 8), 1), read(place(own, 0, 12), 1)), (vec![101], vec![2]));
    // What is mapped nowhere is there too, and the same as when it is mapped and when it is no longer.
    assert_eq!(sum(place(multi, 2, 16), 3), 3);
    let late = mapped(second, 1);
    assert_eq!(read(place(late, 0, 16), 1), [3]);
    assert_eq!(sum(place(multi, 2, 16), 4), 7);
    assert_eq!(read(place(late, 0, 16), 1), [7]);
    assert_eq!(access(late, 1, CUmemAccess_flags::READ), OK);
    assert_eq!(sum(place(multi, 2, 16), 5), 12);
    unmapped(late, 1);
    assert_eq!(sum(place(multi, 2, 16), 6), 18);
    // Other memory in the same place.
    ok!(cuMulticastUnbind(object, 0, 2 * PAGE, PAGE));
    ok!(cuMulticastBindMem(object, 2 * PAGE, first, PAGE, PAGE, 0));
    assert_eq!(sum(place(multi, 2, 8), 1), 102);
    // An object stays as long as it is mapped, and its memory as long as it is bound.
    for handle in [first, second, object] {
        ok!(cuMemRelease(handle));
    }
    unmapped(own, 2);
    assert_eq!(sum(place(multi, 0, 8), 1), 103);
    unmapped(multi, 4);
}

#[test]
fn an_access_needs_an_address_of_its_kind() {
    type Prepare = fn(CUmemGenericAllocationHandle, CUdeviceptr, CUdeviceptr) -> u64;
    let cases: [(&str, &str, Prepare, bool); 6] = [
        ("bound", "add", |_, multi, _| multi, true),
        ("the memory itself", "add", |_, _, own| own, false),
        ("an ordinary instruction", "ordinary", |_, multi, _| multi, false),
        ("nothing is bound", "add", |_, multi, _| place(multi, 1, 0), false),
        (
            "no longer bound",
            "add",
            |object, multi, _| {
                ok!(cuMulticastUnbind(object, 0, 0, 2 * PAGE));
                multi
            },
            false,
        ),
        (
            "no access",
            "add",
            |_, multi, _| {
                assert_eq!(access(multi, 2, CUmemAccess_flags::NONE), OK);
                multi
            },
            false,
        ),
    ];
    for (what, kernel, prepare, works) in cases {
        let _context = Ctx::new();
        let kernel = function(load(MULTIMEM_PTX).unwrap(), kernel).unwrap();
        let (object, memory, found) = (object(2), memory(1), words(1));
        ok!(cuMulticastAddDevice(object, 0));
        ok!(cuMulticastBindMem(object, 0, memory, 0, PAGE, 0));
        let (own, multi) = (mapped(memory, 1), mapped(object, 2));
        let at = prepare(object, multi, own);
        assert_eq!(launch(kernel, CUstream::NULL, &[at, 1, found]), OK);
        assert_eq!(call!(cuCtxSynchronize()) == OK, works, "{what}");
        let mut word = 0u32;
        assert_ne!(call!(cuMemcpyDtoH_v2((&raw mut word).cast::<c_void>(), multi, 4)), OK, "{what}");
        unmapped(multi, 2);
        unmapped(own, 1);
        ok!(cuMemRelease(object));
        ok!(cuMemRelease(memory));
    }
}

/// A team of one process exports its object all the same.
#[test]
fn a_descriptor_stands_for_the_same_object() {
    let _context = Ctx::new();
    let add = function(load(MULTIMEM_PTX).unwrap(), "add").unwrap();
    let (made, memory, found) = (object(1), memory(1), words(1));
    let kind = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR;
    let mut file: c_int = -1;
    ok!(cuMemExportToShareableHandle(output((&raw mut file).cast::<c_void>()), made, kind, 0));
    let by_file = std::ptr::without_provenance_mut::<c_void>(file as usize);
    let import = || out(|handle| call!(cuMemImportFromShareableHandle(handle, by_file, kind)));
    let got: CUmemGenericAllocationHandle = import().unwrap();
    assert_ne!(got, made);
    ok!(cuMulticastAddDevice(made, 0));
    ok!(cuMulticastBindMem(got, 0, memory, 0, PAGE, 0));
    let (own, multi) = (mapped(memory, 1), mapped(made, 1));
    assert_eq!(launch(add, CUstream::NULL, &[place(multi, 0, 8), 5, found]), OK);
    assert_eq!((read(found, 1), read(place(own, 0, 8), 1)), (vec![5], vec![5]));
    unmapped(multi, 1);
    unmapped(own, 1);
    for handle in [made, got, memory] {
        ok!(cuMemRelease(handle));
    }
    assert_eq!(import(), Err(Status::INVALID_VALUE), "it is gone");
    let prop = CUmulticastObjectProp { handleTypes: 0, ..properties(1, 1) };
    let private: CUmemGenericAllocationHandle =
        out(|handle| call!(cuMulticastCreate(handle, input(&raw const prop)))).unwrap();
    let place = output((&raw mut file).cast::<c_void>());
    assert_eq!(call!(cuMemExportToShareableHandle(place, private, kind, 0)), Status::INVALID_VALUE);
    ok!(cuMemRelease(private));
    // SAFETY: it is this test's.
    drop(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(file) });
}

#[test]
fn mistakes_with_multicast_objects_are_refused() {
    let _context = Ctx::new();
    let (invalid, unsupported) = (Status::INVALID_VALUE, Status::NOT_SUPPORTED);
    let made = |change: fn(&mut CUmulticastObjectProp)| {
        let mut prop = properties(1, 1);
        change(&mut prop);
        call!(cuMulticastCreate(output(&mut Default::default()), input(&raw const prop)))
    };
    let bind = |object, at: usize, memory, offset: usize, bytes: usize| {
        call!(cuMulticastBindMem(object, at, memory, offset, bytes, 0))
    };
    let (object, memory, plain) = (object(4), memory(2), words(1));
    let private = memory_of(1, CUmemAllocationHandleType::NONE);
    let at = out(|address| call!(cuMemAddressReserve(address, 4 * PAGE, 0, 0, 0))).unwrap();
    for (what, found, expected) in [
        ("no devices", made(|prop| prop.numDevices = 0), invalid),
        ("two devices", made(|prop| prop.numDevices = 2), unsupported),
        ("no bytes", made(|prop| prop.size = 0), invalid),
        ("a part of a page", made(|prop| prop.size = PAGE / 2), invalid),
        ("flags", made(|prop| prop.flags = 1), invalid),
        ("another handle", made(|prop| prop.handleTypes = 8), unsupported),
        ("bound without a device", bind(object, 0, memory, 0, PAGE), Status::ILLEGAL_STATE),
        ("mapped without a device", call!(cuMemMap(at, PAGE, 0, object, 0)), Status::ILLEGAL_STATE),
        ("no such device", call!(cuMulticastAddDevice(object, 7)), Status::INVALID_DEVICE),
        ("no object", call!(cuMulticastAddDevice(memory, 0)), invalid),
        ("a device", call!(cuMulticastAddDevice(object, 0)), OK),
        ("the device again", call!(cuMulticastAddDevice(object, 0)), invalid),
        ("an object as memory", bind(object, 0, object, 0, PAGE), invalid),
        ("not at a page", bind(object, 4096, memory, 0, PAGE), invalid),
        ("a part of a page", bind(object, 0, memory, 0, 4096), invalid),
        ("nothing", bind(object, 0, memory, 0, 0), invalid),
        ("behind the object's end", bind(object, 3 * PAGE, memory, 0, 2 * PAGE), invalid),
        ("behind the memory's end", bind(object, 0, memory, PAGE, 2 * PAGE), invalid),
        ("an endless end", bind(object, PAGE, memory, 0, PAGE.wrapping_neg()), invalid),
        ("with flags", call!(cuMulticastBindMem(object, 0, memory, 0, PAGE, 1)), invalid),
        ("memory that is not mapped", call!(cuMulticastBindAddr(object, 0, plain, PAGE, 0)), invalid),
        ("memory that is not shared", bind(object, 0, private, 0, PAGE), invalid),
        ("bound", bind(object, PAGE, memory, 0, 2 * PAGE), OK),
        (
            "bound of no device",
            call!(cuMulticastBindMem_v2(object, 7, 0, memory, 0, PAGE, 0)),
            Status::INVALID_DEVICE,
        ),
        ("bound with its device", call!(cuMulticastBindMem_v2(object, 0, 0, memory, 0, PAGE, 0)), OK),
        ("an address with its device", call!(cuMulticastBindAddr_v2(object, 0, 0, plain, PAGE, 0)), invalid),
        ("bound twice", bind(object, 2 * PAGE, memory, 0, PAGE), invalid),
        ("unbound in part", call!(cuMulticastUnbind(object, 0, PAGE, PAGE)), invalid),
        ("unbound of no device", call!(cuMulticastUnbind(object, 7, PAGE, 2 * PAGE)), Status::INVALID_DEVICE),
        ("unbound behind the end", call!(cuMulticastUnbind(object, 0, PAGE, 4 * PAGE)), invalid),
        ("mapped", call!(cuMemMap(at, 4 * PAGE, 0, object, 0)), OK),
        ("for reading", access(at, 4, CUmemAccess_flags::READ), unsupported),
        ("unbound", call!(cuMulticastUnbind(object, 0, 0, 4 * PAGE)), OK),
        ("unmapped", call!(cuMemUnmap(at, 4 * PAGE)), OK),
        ("released", call!(cuMemRelease(object)), OK),
        ("released too", call!(cuMemRelease(memory)), OK),
        ("released as well", call!(cuMemRelease(private)), OK),
        ("freed", call!(cuMemAddressFree(at, 4 * PAGE)), OK),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    let prop = properties(1, 1);
    let which = CUmulticastGranularity_flags::RECOMMENDED;
    let granularity = out(|bytes| call!(cuMulticastGetGranularity(bytes, input(&raw const prop), which)));
    assert_eq!(granularity, Ok(PAGE));
}
