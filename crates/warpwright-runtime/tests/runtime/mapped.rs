//! Memory of the host's that kernels see.

use crate::*;

#[test]
fn the_host_reads_and_sets_while_a_kernel_runs() {
    let gpu = Gpu::checked();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[40u32]).unwrap();
    let flags = gpu.device.alloc_mapped::<u32>(2).unwrap();
    assert_eq!(flags.to_vec().unwrap(), [0, 0]);
    gpu.launch(&stream, "spin", &x, flags.buffer(), 2);
    until(|| flags.get(1).unwrap() == 1);
    assert!(!stream.is_idle());
    flags.set(0, 9).unwrap();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [42]);
    assert!(stream.is_idle());
    assert_eq!(flags.to_vec().unwrap(), [9, 1]);
}

#[test]
fn results_go_to_the_host_without_waiting() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let out = gpu.device.alloc_mapped::<u32>(3).unwrap();
    let hold = gpu.hold(&stream, &x, 6);
    stream.memcpy_dtod(&x, &out.buffer().slice(1..2).unwrap()).unwrap();
    let copied = stream.record_event().unwrap();
    assert!(!copied.is_complete());
    assert_eq!(out.get(1).unwrap(), 0);
    hold.release();
    copied.synchronize().unwrap();
    assert_eq!(out.to_vec().unwrap(), [0, 7, 0]);
    // And from the host, as any other memory.
    stream.memcpy_dtod(&out.buffer().slice(1..2).unwrap(), &x).unwrap();
    stream.memset_zeros(out.buffer()).unwrap();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [7]);
    assert_eq!(out.to_vec().unwrap(), [0; 3]);
}

#[test]
fn ranges_are_read_and_set_as_elements_are() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(some: [T; 4]) {
        let device = Gpu::plain().device;
        let buffer = device.alloc_mapped::<T>(7).unwrap();
        buffer.write(2, &some).unwrap();
        buffer.write(7, &[]).unwrap();
        let zero = T::zeroed();
        assert_eq!(buffer.to_vec().unwrap(), [zero, zero, some[0], some[1], some[2], some[3], zero]);
        let mut read = [zero; 3];
        buffer.read(3, &mut read).unwrap();
        assert_eq!(read, some[1..]);
        let behind = |result| matches!(result, Err(RuntimeError::Range { start: 4, end: 8, len: 7 }));
        assert!(behind(buffer.write(4, &some)) && behind(buffer.read(4, &mut [zero; 4])));
        assert_eq!(buffer.get(4).unwrap(), some[2], "what was refused has changed nothing");
    }
    check([1u8, 2, 255, 4]);
    check([-1i16, 2, -3, i16::MAX]);
    check([1.5f32, f32::MIN_POSITIVE, -0.25, f32::MAX]);
    check([1u64 << 63, 3, u64::MAX, 7]);
}

#[test]
fn elements_of_every_size_are_set_alone() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(one: T, other: T) {
        let device = Gpu::plain().device;
        let buffer = device.alloc_mapped::<T>(5).unwrap();
        buffer.set(1, one).unwrap();
        buffer.set(2, other).unwrap();
        buffer.clone().set(4, one).unwrap();
        let zero = T::zeroed();
        assert_eq!(buffer.to_vec().unwrap(), [zero, one, other, zero, one]);
        assert_eq!(buffer.get(2).unwrap(), other);
        assert_eq!(device.default_stream().clone_dtoh(buffer.buffer()).unwrap()[1..3], [one, other]);
    }
    check(0x81u8, 0xff);
    check(-2i16, i16::MIN);
    check(1.5f32, -3.25);
    check(u64::MAX, 1 << 40);
    check(half::bf16::from_f32(2.0), half::bf16::from_f32(-0.5));
}

#[test]
fn indices_are_inside() {
    let device = Gpu::plain().device;
    let buffer = device.alloc_mapped::<u16>(2).unwrap();
    assert!(!buffer.is_empty() && buffer.len() == 2);
    for index in [2, usize::MAX] {
        for result in [buffer.get(index).map(drop), buffer.set(index, 1)] {
            match result {
                Err(RuntimeError::Range { start, len: 2, .. }) => assert_eq!(start, index),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn mapped_memory_is_none_of_the_pool() {
    let device = Gpu::plain().device;
    drop(device.alloc_mapped::<u8>(100).unwrap());
    assert_eq!(device.pool_statistics(), PoolStatistics::default());
}
