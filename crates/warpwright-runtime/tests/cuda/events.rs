//! Events: between streams, and between devices of both kinds.

use crate::*;
use std::sync::Arc;
use warpwright_runtime::cudarc::driver::CudaContext;

/// A virtual GPU beside the CUDA device.
fn beside() -> Gpu {
    Gpu::of(Device::vm(VmConfig::default()).unwrap())
}

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
fn a_cuda_stream_waits_for_a_virtual_gpu() {
    let (gpu, vm) = (Gpu::open(), beside());
    let (here, there) = (gpu.device.new_stream().unwrap(), vm.device.default_stream());
    let x = here.alloc_zeros::<u32>(1).unwrap();
    let y = there.alloc_zeros::<u32>(1).unwrap();
    here.synchronize().unwrap();
    let hold = vm.hold(&there, &y, 1);
    let event = there.record_event().unwrap();
    here.wait_event(&event).unwrap();
    gpu.add(&here, &x, 7);
    assert!(!here.is_idle());
    hold.release();
    assert_eq!(here.clone_dtoh(&x).unwrap(), [7]);
    assert!(event.is_complete());
    // One that is over keeps nobody waiting.
    here.wait_event(&event).unwrap();
    here.synchronize().unwrap();
}

#[test]
fn streams_that_wait_for_one_another_by_a_virtual_gpu_go_on() {
    let (gpu, vm) = (Gpu::open(), beside());
    let (one, two) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let there = vm.device.default_stream();
    let x = one.clone_htod(&[1u32, 10]).unwrap();
    let (x, y) = (x.slice(..1).unwrap(), x.slice(1..).unwrap());
    let (a, b) = (two.alloc_zeros::<u32>(1).unwrap(), there.alloc_zeros::<u32>(1).unwrap());
    gpu.device.synchronize().unwrap();
    there.synchronize().unwrap();
    let hold_there = vm.hold(&there, &b, 1);
    gpu.add(&one, &x, 1);
    let begun = one.record_event().unwrap();
    there.wait_event(&begun).unwrap();
    let first = there.record_event().unwrap();
    until(|| begun.is_complete());
    // The second stream comes to its wait after the first one has come to its own, which depends on it.
    let hold_here = gpu.hold(&two, &a, 1);
    two.wait_event(&first).unwrap();
    gpu.add(&two, &y, 1);
    there.wait_event(&two.record_event().unwrap()).unwrap();
    let second = there.record_event().unwrap();
    one.wait_event(&second).unwrap();
    one.memcpy_dtod(&y, &x).unwrap();
    // And once more round.
    there.wait_event(&one.record_event().unwrap()).unwrap();
    two.wait_event(&there.record_event().unwrap()).unwrap();
    gpu.add(&two, &x, 100);
    hold_there.release();
    until(|| first.is_complete());
    assert!(!second.is_complete() && !one.is_idle() && !two.is_idle());
    hold_here.release();
    until(|| one.is_idle() && two.is_idle());
    assert_eq!((two.clone_dtoh(&x).unwrap(), two.clone_dtoh(&y).unwrap()), (vec![111], vec![11]));
}

#[test]
fn waits_end_in_any_order() {
    let (gpu, vms) = (Gpu::open(), [beside(), beside()]);
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.alloc_zeros::<u32>(1).unwrap();
    stream.synchronize().unwrap();
    let mut holds = Vec::new();
    for vm in &vms {
        let there = vm.device.default_stream();
        let y = there.alloc_zeros::<u32>(1).unwrap();
        holds.push(vm.hold(&there, &y, 1));
        stream.wait_event(&there.record_event().unwrap()).unwrap();
        gpu.add(&stream, &x, 1);
    }
    let (first, second) = (holds.remove(0), holds.remove(0));
    second.release();
    vms[1].device.synchronize().unwrap();
    assert!(!stream.is_idle(), "it is at the first wait");
    first.release();
    until(|| stream.is_idle());
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
    // A stream waits as often as it is asked to.
    for n in 0..100 {
        let there = vms[n % 2].device.default_stream();
        stream.wait_event(&there.record_event().unwrap()).unwrap();
        gpu.add(&stream, &x, 1);
        there.wait_event(&stream.record_event().unwrap()).unwrap();
    }
    until(|| stream.is_idle());
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [102]);
}

#[test]
fn a_virtual_gpu_that_fails_keeps_no_stream_waiting() {
    let (gpu, vm) = (Gpu::open(), beside());
    let (here, there) = (gpu.device.new_stream().unwrap(), vm.device.default_stream());
    let fail = vm.device.load_ptx(faults::FAIL).and_then(|module| module.load_function("fail")).unwrap();
    let x = here.alloc_zeros::<u32>(1).unwrap();
    let y = there.alloc_zeros::<u32>(1).unwrap();
    let hold = vm.hold(&there, &y, 1);
    faults::fail(&there, &fail, &y);
    let event = there.record_event().unwrap();
    here.wait_event(&event).unwrap();
    gpu.add(&here, &x, 7);
    assert!(!here.is_idle());
    hold.release();
    until(|| here.is_idle());
    // The event is over, and the device that failed says so; this one did not.
    assert_eq!(here.clone_dtoh(&x).unwrap(), [7]);
    assert!(event.is_complete());
    let failed = faults::failure(event.synchronize());
    assert_eq!(failed.kernel, "fail");
    gpu.device.synchronize().unwrap();
}

#[test]
fn a_virtual_gpu_that_goes_keeps_no_stream_waiting() {
    let gpu = Gpu::open();
    let here = gpu.device.new_stream().unwrap();
    let x = here.alloc_zeros::<u32>(1).unwrap();
    {
        let vm = beside();
        let there = vm.device.default_stream();
        let flags = there.alloc_zeros::<u32>(2).unwrap();
        // Nobody lets it go on.
        vm.launch(&there, "spin", 1, &flags, &flags, 1);
        here.wait_event(&there.record_event().unwrap()).unwrap();
    }
    gpu.add(&here, &x, 7);
    until(|| here.is_idle());
    assert_eq!(here.clone_dtoh(&x).unwrap(), [7]);
}

#[test]
fn a_virtual_gpu_waits_for_a_cuda_stream() {
    let (gpu, vm) = (Gpu::open(), beside());
    let (here, there) = (vm.device.default_stream(), gpu.device.new_stream().unwrap());
    let x = here.alloc_zeros::<u32>(1).unwrap();
    let y = there.alloc_zeros::<u32>(1).unwrap();
    here.synchronize().unwrap();
    let hold = gpu.hold(&there, &y, 1);
    here.wait_event(&there.record_event().unwrap()).unwrap();
    vm.add(&here, &x, 7);
    assert!(!here.is_idle());
    hold.release();
    assert_eq!(here.clone_dtoh(&x).unwrap(), [7]);
    assert!(there.is_idle());
}

#[test]
fn a_device_that_waits_for_one_that_never_comes_can_go() {
    let vm = beside();
    let there = vm.device.default_stream();
    let y = there.alloc_zeros::<u32>(1).unwrap();
    let hold = vm.hold(&there, &y, 1);
    let event = there.record_event().unwrap();
    let context = CudaContext::new(0).unwrap();
    let theirs = context.new_stream().unwrap();
    let alone = Arc::strong_count(&context);
    {
        let device = Device::from_cudarc(context.clone(), theirs).unwrap();
        let stream = device.new_stream().unwrap();
        stream.wait_event(&event).unwrap();
    }
    // What it was asked for is over: it has nothing of the driver's any more, but its stream.
    until(|| Arc::strong_count(&context) < alone);
    assert!(!event.is_complete());
    hold.release();
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
