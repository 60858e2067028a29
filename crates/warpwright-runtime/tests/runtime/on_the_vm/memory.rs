//! What the checks know of memory that is used again, and devices with little of it.

use crate::*;
use warpwright_vm::{FaultKind, FindingKind, SpaceKind};

#[test]
fn memory_that_is_used_again_ends_where_the_buffer_does() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let address = stream.alloc_zeros::<u32>(5).unwrap().device_ptr();
    let shorter = stream.alloc_zeros::<u32>(4).unwrap();
    assert_ne!(shorter.device_ptr(), address, "a block of another size is none");
    let (x, out) = (stream.alloc_zeros::<u32>(5).unwrap(), stream.alloc_zeros::<u32>(1).unwrap());
    assert_eq!(x.device_ptr(), address);
    gpu.launch(&stream, "move", &x, &out, 4);
    stream.synchronize().unwrap();
    gpu.launch(&stream, "move", &x, &out, 5);
    match stream.synchronize() {
        Err(RuntimeError::Failed(failure)) => {
            assert_eq!((&*failure.kernel, failure.launch), ("move", Some(1)));
        }
        other => panic!("{other:?}"),
    }
    let kinds: Vec<_> = gpu.device.take_findings().into_iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::Access(FaultKind::OutOfBounds)]);
    assert_eq!(gpu.device.take_findings().len(), 0);
}

#[test]
fn memory_that_is_used_again_was_never_written() {
    let gpu = Gpu::checked();
    let stream = gpu.device.default_stream();
    let out = stream.alloc_zeros::<u32>(1).unwrap();
    let x = stream.clone_htod(&[1u32, 2]).unwrap();
    let flags = gpu.device.alloc_mapped::<u32>(2).unwrap();
    gpu.launch(&stream, "spin", &out, flags.buffer(), 1);
    // This one reads what its buffer held, although the memory has a new owner before it runs.
    gpu.launch(&stream, "move", &x, &out, 1);
    let address = x.device_ptr();
    drop(x);
    let y = stream.alloc::<u32>(2).unwrap();
    assert_eq!(y.device_ptr(), address);
    flags.set(0, 1).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [2]);
    stream.memcpy_htod(&[7], &y.slice(..1).unwrap()).unwrap();
    gpu.launch(&stream, "move", &y, &out, 0);
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [7]);
    assert_eq!(gpu.device.take_findings().len(), 0);
    gpu.launch(&stream, "move", &y, &out, 1);
    assert!(matches!(stream.synchronize(), Err(RuntimeError::Failed(_))));
    let kinds: Vec<_> = gpu.device.take_findings().into_iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::UninitializedMemory { space: SpaceKind::Global }]);
}

#[test]
fn what_is_cached_is_given_back_before_memory_is_out() {
    let gpu = Gpu::with_memory(1000);
    let stream = gpu.device.default_stream();
    drop((stream.alloc::<u8>(300).unwrap(), stream.alloc::<u8>(400).unwrap()));
    let x = stream.alloc::<u8>(900).unwrap();
    assert_eq!(gpu.device.pool_statistics().cached_bytes, 0);
    match stream.alloc::<u32>(26) {
        Err(RuntimeError::OutOfMemory { asked, free, live, cached, capacity }) => {
            assert_eq!((asked, free, live, cached, capacity), (104, 100, 900, 0, 1000));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        stream.alloc::<u64>(usize::MAX),
        Err(RuntimeError::OutOfMemory { asked: u64::MAX, .. })
    ));
    assert!(matches!(gpu.device.alloc_mapped::<u8>(101), Err(RuntimeError::OutOfMemory { .. })));
    assert_eq!(gpu.device.pool_statistics().allocations, 3, "what was refused is no allocation");
    let y = stream.clone_htod(&[5u8; 100]).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [5; 100]);
    drop(x);
    match stream.alloc::<u8>(901) {
        Err(RuntimeError::OutOfMemory { free, live, cached, .. }) => {
            assert_eq!((free, live, cached), (900, 100, 900), "what was cached did not help");
        }
        other => panic!("{other:?}"),
    }
    assert!(gpu.device.alloc_mapped::<u8>(900).is_ok());
}

#[test]
fn what_can_never_fit_is_not_waited_for() {
    let gpu = Gpu::with_memory(1000);
    let stream = gpu.device.default_stream();
    let x = stream.alloc_zeros::<u32>(100).unwrap();
    let _hold = gpu.hold(&stream, &x, 1);
    assert!(matches!(stream.alloc::<u32>(200), Err(RuntimeError::OutOfMemory { .. })));
    assert!(!stream.is_idle());
}

#[test]
fn memory_that_is_still_used_is_waited_for() {
    let gpu = Gpu::with_memory(1000);
    let stream = gpu.device.default_stream();
    let x = stream.alloc_zeros::<u32>(200).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    drop(x);
    // Of another size, so that the block cannot be used again, and there is no room for both.
    let allocating = stream.clone();
    let thread = std::thread::spawn(move || allocating.alloc_zeros::<u32>(210).map(|buffer| buffer.len()));
    until(|| gpu.device.pool_statistics().released == 1);
    hold.release();
    assert_eq!(thread.join().unwrap().unwrap(), 210);
}
