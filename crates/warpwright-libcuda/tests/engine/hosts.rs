//! Memory of the host that devices know.

use crate::*;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[test]
fn pinned_memory_has_one_address() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(3);
    let at = words.as_ptr().cast_mut();
    assert_eq!(at.addr() % 4096, 0);
    let device =
        out(|device| call!(cuMemHostGetDevicePointer_v2(device, at.wrapping_add(1).cast(), 0))).unwrap();
    assert_eq!(device, address(&words[1..]));
    kernels.add(device, 6, CUstream::NULL);
    ok!(cuCtxSynchronize());
    assert_eq!(words[1].load(SeqCst), 6);
    forget_pinned(device - 4);
    let mut local = 0u32;
    let mine = std::ptr::from_mut(&mut local).cast::<std::ffi::c_void>();
    let mut flags = 9;
    for (what, found, expected) in [
        ("flags", call!(cuMemHostGetFlags(output(&mut flags), at.cast())), OK),
        ("flags of other memory", call!(cuMemHostGetFlags(output(&mut 0), mine)), INVALID),
        ("an address of other memory", call!(cuMemHostGetDevicePointer_v2(output(&mut 0), mine, 0)), INVALID),
        ("with flags", call!(cuMemHostGetDevicePointer_v2(output(&mut 0), at.cast(), 1)), INVALID),
        ("other flags", call!(cuMemHostAlloc(output(&mut std::ptr::null_mut()), 4, 8)), INVALID),
        // As driver 590.48 was seen to answer.
        ("nothing", call!(cuMemHostAlloc(output(&mut std::ptr::null_mut()), 0, 0)), OK),
        ("allocated, not registered", call!(cuMemHostUnregister(at.cast())), INVALID),
        ("not registered", call!(cuMemHostUnregister(mine)), Status::HOST_MEMORY_NOT_REGISTERED),
        ("other memory given back", call!(cuMemFreeHost(mine)), INVALID),
        ("inside", call!(cuMemFreeHost(at.wrapping_add(1).cast())), INVALID),
        ("null", call!(cuMemFreeHost(std::ptr::null_mut())), OK),
        ("null registered no longer", call!(cuMemHostUnregister(std::ptr::null_mut())), INVALID),
        ("as the device's", call!(cuMemFree_v2(at.addr() as u64)), INVALID),
        ("given back", call!(cuMemFreeHost(at.cast())), OK),
        ("again", call!(cuMemFreeHost(at.cast())), INVALID),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(flags, 2, "mapped");
    // A kernel that uses it now fails, and the process does not.
    kernels.add(device, 1, CUstream::NULL);
    assert_eq!(call!(cuCtxSynchronize()), Status::ILLEGAL_ADDRESS);
}

#[test]
fn memory_of_the_client_is_known_while_it_is_registered() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
    let at = words[3..].as_ptr().cast_mut().cast::<std::ffi::c_void>();
    let already = Status::HOST_MEMORY_ALREADY_REGISTERED;
    for round in 1..4 {
        let inside = at.wrapping_byte_add(100);
        // From within a word to within another one.
        ok!(cuMemHostRegister_v2(at.wrapping_byte_add(1), 2001, 2));
        assert_eq!(call!(cuMemHostRegister_v2(inside, 4, 0)), already);
        assert_eq!(call!(cuMemHostRegister_v2(at.wrapping_byte_add(2001), 50, 0)), already);
        assert_eq!(call!(cuMemHostUnregister(inside)), Status::HOST_MEMORY_NOT_REGISTERED);
        kernels.add(address(&words[10..]), 2, CUstream::NULL);
        ok!(cuCtxSynchronize());
        assert_eq!(words[10].load(SeqCst), 2 * round);
        ok!(cuMemHostUnregister(at.wrapping_byte_add(1)));
        assert_eq!(call!(cuMemHostUnregister(at.wrapping_byte_add(1))), Status::HOST_MEMORY_NOT_REGISTERED);
    }
    for (what, found) in [
        ("null", call!(cuMemHostRegister_v2(std::ptr::null_mut(), 4, 0))),
        ("nothing", call!(cuMemHostRegister_v2(at, 0, 0))),
        ("flags", call!(cuMemHostRegister_v2(at, 4, 16))),
        ("what is not there", call!(cuMemHostRegister_v2(std::ptr::without_provenance_mut(64 << 10), 4, 0))),
        ("all there is", call!(cuMemHostRegister_v2(at, usize::MAX, 0))),
    ] {
        assert_eq!(found, INVALID, "{what}");
    }
}
