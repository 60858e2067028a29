//! Programs that have cudarc already.

use crate::*;
use warpwright_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use warpwright_runtime::cudarc::driver::{CudaContext, CudaSlice, DeviceSlice};

#[test]
fn both_sides_are_in_the_order_of_one_stream() {
    let context = CudaContext::new(0).unwrap();
    for theirs in [context.new_stream().unwrap(), context.default_stream()] {
        let gpu = Gpu::of(Device::from_cudarc(context.clone(), theirs.clone()).unwrap());
        let ours = gpu.device.default_stream();
        let mut x = theirs.clone_htod(&[1u32, 2, 3]).unwrap();
        let flag = ours.clone_htod(&[0u32]).unwrap();
        let hold = gpu.hold(&ours, &flag, 1);
        gpu.device.borrow(&mut x, |x| gpu.launch(&ours, "add", 3, &x, &x, 10)).unwrap();
        let y = theirs.clone_dtod(&x).unwrap();
        hold.release();
        assert_eq!(theirs.clone_dtoh(&y).unwrap(), [11, 12, 13]);
    }
}

#[test]
fn slices_of_other_streams_are_waited_for_both_ways() {
    let context = CudaContext::new(0).unwrap();
    let (theirs, elsewhere) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let gpu = Gpu::of(Device::from_cudarc(context, theirs).unwrap());
    let (ours, another) = (gpu.device.default_stream(), gpu.device.new_stream().unwrap());
    let mut x = elsewhere.clone_htod(&[1u32, 2, 3]).unwrap();
    let y: CudaSlice<u32> = elsewhere.alloc_zeros(3).unwrap();
    let flag = another.clone_htod(&[0u32]).unwrap();
    let hold = gpu.hold(&another, &flag, 1);
    let kept = gpu.device.borrow((&mut x, vec![&y]), |(x, y)| {
        another.wait_event(&ours.record_event().unwrap()).unwrap();
        gpu.launch(&another, "add", 3, &x, &x, 10);
        assert_eq!((x.len(), y[0].len(), y.len()), (3, 3, 1));
        y
    });
    // Asked for on the slice's stream, and done behind ours, which waits for the host.
    elsewhere.memset_zeros(&mut x.slice_mut(1..2)).unwrap();
    hold.release();
    assert_eq!(elsewhere.clone_dtoh(&x).unwrap(), [11, 0, 13]);
    // What was kept is a handle of nothing.
    let kept = &kept.unwrap()[0];
    assert!(matches!(ours.clone_dtoh(kept), Err(RuntimeError::LoanEnded)));
    assert!(matches!(ours.memset_zeros(&kept.slice(1..).unwrap()), Err(RuntimeError::LoanEnded)));
}

#[test]
fn a_graph_of_lent_memory_is_refused_later() {
    let context = CudaContext::new(0).unwrap();
    let theirs = context.default_stream();
    let gpu = Gpu::of(Device::from_cudarc(context, theirs.clone()).unwrap());
    let ours = gpu.device.default_stream();
    let mut x = theirs.clone_htod(&[7u32]).unwrap();
    let graph = gpu.device.borrow(&mut x, |x| {
        let stream = gpu.device.new_stream().unwrap();
        stream.begin_capture().unwrap();
        gpu.add(&stream, &x, 1);
        let exec = stream.end_capture().unwrap().instantiate().unwrap();
        exec.launch(&ours).unwrap();
        exec
    });
    assert!(matches!(graph.unwrap().launch(&ours), Err(RuntimeError::LoanEnded)));
    assert_eq!(theirs.clone_dtoh(&x).unwrap(), [8]);
}

#[test]
fn buffers_are_views_of_cudarc_for_a_time() {
    let context = CudaContext::new(0).unwrap();
    let theirs = context.new_stream().unwrap();
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32, 2, 3, 4]).unwrap();
    let (part, flag) = (x.slice(1..).unwrap(), stream.clone_htod(&[0u32]).unwrap());
    let hold = gpu.hold(&stream, &flag, 1);
    stream
        .lend(&part, |mut view| {
            assert_eq!(view.len(), 3);
            // On a stream of theirs, which waits for ours.
            theirs.memset_zeros(&mut view.slice_mut(..1)).unwrap();
            let ours = view.stream().clone();
            ours.memcpy_htod(&[9u32], &mut view.slice_mut(2..)).unwrap();
        })
        .unwrap();
    gpu.add(&stream, &part, 5);
    hold.release();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [1, 5, 3, 9]);
}

#[test]
fn what_is_of_another_context_or_kind_is_refused() {
    let vm = Device::vm(VmConfig::default()).unwrap();
    let context = CudaContext::new(0).unwrap();
    let x = context.default_stream().clone_htod(&[1u32]).unwrap();
    assert!(matches!(vm.borrow(&x, |_| ()), Err(RuntimeError::NotCuda { operation: "borrow" })));
    let stream = vm.default_stream();
    let y = stream.alloc::<u32>(1).unwrap();
    assert!(matches!(stream.lend(&y, |_| ()), Err(RuntimeError::NotCuda { operation: "lend" })));
    let gpu = Gpu::open();
    assert!(matches!(gpu.device.default_stream().lend(&y, |_| ()), Err(RuntimeError::OtherDevice { .. })));
}

#[test]
fn what_is_dropped_does_not_disturb_a_capture_of_theirs() {
    let context = CudaContext::new(0).unwrap();
    // SAFETY: all is on one stream.
    unsafe { context.disable_event_tracking() };
    let theirs = context.new_stream().unwrap();
    let gpu = Gpu::of(Device::from_cudarc(context, theirs.clone()).unwrap());
    gpu.device.set_release_threshold(0);
    let ours = gpu.device.default_stream();
    let x = ours.clone_htod(&[1u32]).unwrap();
    let (y, mapped) = (ours.alloc::<u32>(5).unwrap(), gpu.device.alloc_mapped::<u32>(5).unwrap());
    ours.memset_zeros(&y).unwrap();
    ours.memset_zeros(mapped.buffer()).unwrap();
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    // Launches of ours are in their graph.
    gpu.add(&ours, &x, 3);
    drop((y, mapped));
    let graph = theirs.end_capture(CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
    assert_eq!(ours.clone_dtoh(&x).unwrap(), [1]);
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(ours.clone_dtoh(&x).unwrap(), [7]);
}
