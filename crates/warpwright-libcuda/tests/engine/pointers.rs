//! What an address is.

use crate::*;
use std::ffi::c_void;

fn attribute<T: Default>(what: CUpointer_attribute, address: u64) -> Result<T> {
    let mut value = T::default();
    let place = std::ptr::from_mut(&mut value).cast::<c_void>();
    call!(cuPointerGetAttribute(Out::from(place), what, address)).into_result().map(|()| value)
}

use CUpointer_attribute as A;

#[test]
fn addresses_say_what_they_are_of() {
    let context = Ctx::new(1);
    let module = Kernels::load();
    let words = pinned(25);
    let managed = out(|address| call!(cuMemAllocManaged(address, 100, 1))).unwrap();
    let pooled = out(|address| call!(cuMemAllocAsync(address, 100, CUstream::NULL))).unwrap();
    let plain = alloc(100);
    let pool = out(|pool| call!(cuDeviceGetDefaultMemPool(pool, 1))).unwrap();
    let mut ids = Vec::new();
    // Address, type, managed, the host's pointer, the pool.
    for (at, kind, is_managed, is_host, of) in [
        (plain, 2, 0, false, CUmemoryPool::NULL),
        (pooled, 2, 0, false, pool),
        (managed, 2, 1, true, CUmemoryPool::NULL),
        (address(words), 1, 0, true, CUmemoryPool::NULL),
    ] {
        let inside = at + 40;
        assert_eq!(attribute::<i32>(A::MEMORY_TYPE, inside), Ok(kind));
        assert_eq!(attribute::<i32>(A::IS_MANAGED, inside), Ok(is_managed));
        assert_eq!(attribute::<u64>(A::DEVICE_POINTER, inside), Ok(inside));
        let host = attribute::<u64>(A::HOST_POINTER, inside);
        assert_eq!(host, if is_host { Ok(inside) } else { Err(INVALID) });
        assert_eq!(attribute::<CUcontext>(A::CONTEXT, inside), Ok(context.0));
        assert_eq!(attribute::<i32>(A::DEVICE_ORDINAL, inside), Ok(1));
        assert_eq!(attribute::<u64>(A::RANGE_START_ADDR, inside), Ok(at));
        assert_eq!(attribute::<usize>(A::RANGE_SIZE, inside), Ok(100));
        assert_eq!(attribute::<i32>(A::MAPPED, inside), Ok(1));
        assert_eq!(attribute::<CUmemoryPool>(A::MEMPOOL_HANDLE, inside), Ok(of));
        ids.push(attribute::<u64>(A::BUFFER_ID, inside).unwrap());
        let wish = 1u32;
        let value = In::from(std::ptr::from_ref(&wish).cast::<c_void>());
        ok!(cuPointerSetAttribute(value, A::SYNC_MEMOPS, inside));
        assert_eq!(attribute::<i32>(A::SYNC_MEMOPS, inside), Ok(1));
        assert_eq!(call!(cuPointerSetAttribute(value, A::CONTEXT, inside)), INVALID);
    }
    assert!((0..4).all(|a| (0..a).all(|b| ids[a] != ids[b])), "{ids:?}");
    let table = module.table();
    assert_eq!(attribute::<i32>(A::MEMORY_TYPE, table + 63), Ok(2));
    assert_eq!(attribute::<usize>(A::RANGE_SIZE, table), Ok(64));
    // Of what nobody knows nothing can be said, unless several things are asked.
    let local = [0u32];
    for at in [address(&local), 0, 12345, plain + 100] {
        assert_eq!(attribute::<i32>(A::MEMORY_TYPE, at), Err(INVALID), "{at:#x}");
        let (mut kind, mut device, mut base) = (7i32, 7i32, 7u64);
        let which = [A::MEMORY_TYPE, A::DEVICE_ORDINAL, A::RANGE_START_ADDR];
        let values = [
            std::ptr::from_mut(&mut kind).cast::<c_void>(),
            std::ptr::from_mut(&mut device).cast::<c_void>(),
            std::ptr::from_mut(&mut base).cast::<c_void>(),
        ];
        ok!(cuPointerGetAttributes(3, In::from(which.as_ptr()), In::from(values.as_ptr()), at));
        assert_eq!((kind, device, base), (0, -2, 0));
    }
    assert_eq!(attribute::<i32>(A(99), plain), Err(INVALID));
    ok!(cuMemFreeAsync(pooled, CUstream::NULL));
    [plain, managed].map(free);
    free_pinned(words);
}
