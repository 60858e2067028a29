//! Events: between streams.

use crate::*;

#[test]
fn a_stream_waits_for_another_one() {
    let gpu = Gpu::open();
    let (one, two) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let (x, y) = (one.alloc_zeros::<u32>(1).unwrap(), two.alloc_zeros::<u32>(1).unwrap());
    gpu.device.synchronize().unwrap();
    let start = one.record_event().unwrap();
    let hold = gpu.hold(&one, &x, 5);
    let end = one.record_event().unwrap();
    two.wait_event(&end).unwrap();
    two.memcpy_dtod(&x, &y).unwrap();
    assert!(!end.is_complete() && !one.is_idle() && !two.is_idle());
    assert!(matches!(end.elapsed(&start), Err(RuntimeError::Incomplete)));
    hold.release();
    assert_eq!(two.clone_dtoh(&y).unwrap(), [5]);
    assert!(end.is_complete() && two.is_idle());
    assert!(end.elapsed(&start).unwrap() > Duration::ZERO);
    assert_eq!(start.elapsed(&end).unwrap(), Duration::ZERO, "the later one is no earlier one");
}

#[test]
fn streams_of_another_kind_of_device_are_not_waited_for() {
    let gpu = Gpu::open();
    let vm = Device::vm(VmConfig::default()).unwrap();
    let (here, there) = (gpu.device.default_stream(), vm.default_stream());
    let (ours, theirs) = (here.record_event().unwrap(), there.record_event().unwrap());
    for refused in [here.wait_event(&theirs), there.wait_event(&ours)] {
        assert!(matches!(refused, Err(RuntimeError::OtherKind { operation: "wait_event" })), "{refused:?}");
    }
}

#[test]
fn a_stream_that_is_dropped_does_what_it_was_asked_for() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let x = stream.alloc_zeros::<u32>(1).unwrap();
    stream.synchronize().unwrap();
    let short = gpu.device.new_stream().unwrap();
    let hold = gpu.hold(&short, &x, 3);
    let event = short.record_event().unwrap();
    drop(short);
    assert!(!event.is_complete());
    stream.wait_event(&event).unwrap();
    hold.release();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [3]);
}

#[test]
fn tickets_are_asked_as_often_as_wanted() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.alloc_zeros::<u32>(1).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    for _ in 0..50 {
        gpu.add(&stream, &x, 1);
        assert!(!stream.is_idle());
    }
    hold.release();
    until(|| stream.is_idle());
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [51]);
}
