//! Memory that is dropped while the device uses it, and memory that is not there.

use crate::*;

#[test]
fn what_is_dropped_is_given_back_behind_those_who_use_it() {
    let gpu = Gpu::open();
    // Nothing is kept: what is dropped goes back to the driver.
    gpu.device.set_release_threshold(0);
    let (home, user, other) = (gpu.device.new_stream(), gpu.device.new_stream(), gpu.device.new_stream());
    let (home, user, other) = (home.unwrap(), user.unwrap(), other.unwrap());
    let result = home.clone_htod(&[0u32]).unwrap();
    let x = home.clone_htod(&numbers(1, 100_000)).unwrap();
    user.wait_event(&home.record_event().unwrap()).unwrap();
    let go = home.clone_htod(&[1u32]).unwrap();
    user.wait_event(&home.record_event().unwrap()).unwrap();
    let hold = gpu.hold(&user, &go, 1);
    // Behind the kernel that waits: it reads what is dropped now.
    user.memcpy_dtod(&x.slice(7..8).unwrap(), &result).unwrap();
    drop(x);
    let fillers: Vec<_> = (0..4).map(|_| other.alloc::<u32>(100_000).unwrap()).collect();
    for filler in &fillers {
        other.memset_any(filler.as_any(), 0xee).unwrap();
    }
    assert!(!user.is_idle(), "nobody has waited for the kernel");
    hold.release();
    assert_eq!(user.clone_dtoh(&result).unwrap(), numbers(1, 8)[7..]);
}

#[test]
fn dropping_waits_for_nothing() {
    let gpu = Gpu::open();
    gpu.device.set_release_threshold(0);
    let (busy, stream) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = busy.clone_htod(&[40u32]).unwrap();
    let mapped = gpu.device.alloc_mapped::<u32>(3).unwrap();
    let passing = gpu.device.new_stream().unwrap();
    // What nothing uses any more, and what still will be.
    drop(gpu.device.load_ptx(KERNELS).unwrap());
    drop(gpu.device.alloc_mapped::<u64>(10).unwrap());
    gpu.device.synchronize().unwrap();
    let hold = gpu.hold(&busy, &x, 2);
    // The kernel before it is not over, and this is used behind it.
    busy.memcpy_dtod(&x, &mapped.buffer().slice(..1).unwrap()).unwrap();
    drop(mapped);
    busy.memset_zeros(&stream.alloc::<u32>(1000).unwrap()).unwrap();
    passing.wait_event(&busy.record_event().unwrap()).unwrap();
    drop(passing);
    drop(gpu.device.alloc_mapped::<u64>(100).unwrap());
    drop(gpu.device.load_ptx(KERNELS).unwrap());
    assert!(!busy.is_idle());
    hold.release();
    assert_eq!(busy.clone_dtoh(&x).unwrap(), [42]);
}

#[test]
fn mapped_memory_is_the_same_on_both_sides() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let host = gpu.device.alloc_mapped::<u32>(1000).unwrap();
    assert!(host.to_vec().unwrap() == [0; 1000] && host.buffer().as_any().is_mapped());
    host.write(0, &numbers(3, 1000)).unwrap();
    let x = stream.alloc::<u32>(1000).unwrap();
    stream.memcpy_dtod(host.buffer(), &x).unwrap();
    gpu.launch(&stream, "add", 1000, &x, &x, 5);
    stream.memcpy_dtod(&x, host.buffer()).unwrap();
    gpu.launch(&stream, "add", 3, host.buffer(), &x, 1);
    stream.synchronize().unwrap();
    let added = |at: usize, n: u32| n.wrapping_add(if at < 3 { 6 } else { 5 });
    let needed: Vec<_> = numbers(3, 1000).into_iter().enumerate().map(|(at, n)| added(at, n)).collect();
    assert!(host.to_vec().unwrap() == needed);
    // Elements of every size, as one each.
    let bytes = gpu.device.alloc_mapped::<u8>(11).unwrap();
    bytes.write(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    assert_eq!((bytes.get(9).unwrap(), bytes.to_vec().unwrap()), (9, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]));
    let wide = gpu.device.alloc_mapped::<u64>(2).unwrap();
    wide.set(1, u64::MAX - 5).unwrap();
    assert_eq!(wide.to_vec().unwrap(), [0, u64::MAX - 5]);
}

#[test]
fn nothing_is_no_memory() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let nothing = stream.alloc_zeros::<u32>(0).unwrap();
    stream.memcpy_htod(&[], &nothing).unwrap();
    stream.memcpy_dtod(&nothing, &stream.alloc::<u32>(0).unwrap()).unwrap();
    stream.begin_capture().unwrap();
    stream.memset_zeros(&nothing).unwrap();
    let graph = stream.end_capture().unwrap().instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&nothing).unwrap(), []);
    assert_eq!(gpu.device.alloc_mapped::<u64>(0).unwrap().to_vec().unwrap(), []);
}

#[test]
fn memory_that_is_not_there_is_said_to_be() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let live = stream.alloc_zeros::<u8>(3000).unwrap();
    drop(stream.alloc_zeros::<u8>(70_000).unwrap());
    let max = gpu.device.properties().memory;
    match stream.alloc::<u8>(max as usize) {
        Err(RuntimeError::OutOfMemory { asked, free, live, cached, capacity }) => {
            assert_eq!((asked, live, cached, capacity), (max, 3000, 70_000, max));
            assert!(free > 0 && free <= max);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        stream.alloc::<u64>(usize::MAX),
        Err(RuntimeError::OutOfMemory { asked: u64::MAX, .. })
    ));
    assert_eq!(gpu.device.pool_statistics().cached_bytes, 0, "what was cached has been given back");
    assert_eq!(stream.clone_dtoh(&live).unwrap(), [0; 3000]);
}
