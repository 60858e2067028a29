//! What an address is.

use crate::*;
use std::ffi::c_void;

fn attribute<T: Default>(what: CUpointer_attribute, address: u64) -> Result<T> {
    let mut value = T::default();
    let place = std::ptr::from_mut(&mut value).cast::<c_void>();
    call!(cuPointerGetAttribute(output(place), what, address)).into_result().map(|()| value)
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
        let of_none = of != CUmemoryPool::NULL;
        let of_context = if of_none { CUcontext::NULL } else { context.0 };
        assert_eq!(attribute::<CUcontext>(A::CONTEXT, inside), Ok(of_context), "memory of pools is in none");
        assert_eq!(attribute::<i32>(A::DEVICE_ORDINAL, inside), Ok(1));
        assert_eq!(attribute::<u64>(A::RANGE_START_ADDR, inside), Ok(at));
        assert_eq!(attribute::<usize>(A::RANGE_SIZE, inside), Ok(100));
        assert_eq!(attribute::<i32>(A::MAPPED, inside), Ok(1));
        assert_eq!(attribute::<CUmemoryPool>(A::MEMPOOL_HANDLE, inside), Ok(of));
        ids.push(attribute::<u64>(A::BUFFER_ID, inside).unwrap());
        let wish = 1u32;
        let value = input(std::ptr::from_ref(&wish).cast::<c_void>());
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
        ok!(cuPointerGetAttributes(3, input(which.as_ptr()), input(values.as_ptr().cast()), at));
        assert_eq!((kind, device, base), (0, -2, 0));
    }
    assert_eq!(attribute::<i32>(A(99), plain), Err(INVALID));
    ok!(cuMemFreeAsync(pooled, CUstream::NULL));
    [plain, managed].into_iter().for_each(free);
    free_pinned(words);
}

/// By the documentation of `cuPointerGetAttribute` and `cuPointerGetAttributes` in the CUDA driver API, and of
/// `CU_MEMHOSTREGISTER_READ_ONLY`.
#[test]
fn what_a_device_reaches_is_what_the_current_one_does() {
    let _owner = Ctx::new(0);
    let (here, words) = (alloc(64), pinned(1));
    let mine = [0u64; 8];
    let mine_at = pointer(&mine).cast_mut();
    ok!(cuMemHostRegister_v2(mine_at, 64, 8));
    let access = |at| attribute::<i32>(A::ACCESS_FLAGS, at);
    let device = |at| attribute::<u64>(A::DEVICE_POINTER, at);
    assert_eq!((device(here), access(here)), (Ok(here), Ok(3)));
    assert_eq!((device(address(words)), access(address(words))), (Ok(address(words)), Ok(3)));
    assert_eq!((device(address(&mine)), access(address(&mine))), (Ok(address(&mine)), Ok(1)), "read only");
    {
        let _other = Ctx::new(1);
        assert_eq!((device(here), access(here)), (Err(INVALID), Ok(0)), "no devices are peers");
        assert_eq!(device(address(words)), Ok(address(words)));
        let (mut at, mut ordinal) = (7u64, 7i32);
        let values = [std::ptr::from_mut(&mut at).cast(), std::ptr::from_mut(&mut ordinal).cast::<c_void>()];
        let which = [A::DEVICE_POINTER, A::DEVICE_ORDINAL];
        ok!(cuPointerGetAttributes(2, input(which.as_ptr()), input(values.as_ptr().cast()), here));
        assert_eq!((at, ordinal), (0, 0), "null, where one alone is an error");
    }
    std::thread::spawn(move || {
        assert_eq!(attribute::<u64>(A::DEVICE_POINTER, here), Err(Status::INVALID_CONTEXT));
        assert_eq!(attribute::<i32>(A::MEMORY_TYPE, here), Ok(2), "that needs no context");
    })
    .join()
    .unwrap();
    ok!(cuMemHostUnregister(mine_at));
    free(here);
    free_pinned(words);
}
