//! Programs that have cudarc already.
//!
//! Whoever waits for the whole context, as cudarc does when it makes a stream, ends all captures with an error. So a test in
//! which cudarc captures has a process of its own.

use crate::*;
use std::sync::Arc;
use warpwright_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use warpwright_runtime::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceSlice};

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
    // It keeps events with slices, since it has made streams.
    let context = CudaContext::new(0).unwrap();
    let theirs = context.new_stream().unwrap();
    let gpu = Gpu::of(Device::from_cudarc(context.clone(), context.default_stream()).unwrap());
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
    alone("interop::what_is_dropped_does_not_disturb_a_capture_of_theirs", &[], || {
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
    });
}

/// Checks of a process: a finding of a kernel or memory that is not given back is an error.
const CHECKED: &[(&str, &str)] =
    &[("WARPWRIGHT_CHECK", "all"), ("WARPWRIGHT_LEAKS", "1"), ("WARPWRIGHT_EXIT_STATUS", "86")];

/// Buffers that are used in a capture of theirs and dropped before their graph runs, as a stream that has taken their
/// memory sees it. `stream` is ours, and `theirs` the same as cudarc has it.
fn dropped_in_a_capture(gpu: &Gpu, stream: &Stream, theirs: &Arc<CudaStream>) {
    let live = gpu.device.pool_statistics().live_bytes;
    let result = stream.alloc_zeros::<u32>(2).unwrap();
    let [x, y] = [1u32, 10].map(|first| stream.clone_htod(&[first, first]).unwrap());
    stream.begin_capture().unwrap();
    gpu.launch(stream, "add", 2, &y, &y, 100);
    let inner = stream.end_capture().unwrap().instantiate().unwrap();
    stream.synchronize().unwrap();
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    gpu.add(stream, &x, 3);
    stream.memcpy_dtod(&x, &result).unwrap();
    stream.memset_any(x.slice(1..).unwrap().as_any(), 0).unwrap();
    inner.launch(stream).unwrap();
    stream.memcpy_dtod(&y.slice(1..).unwrap(), &result.slice(1..).unwrap()).unwrap();
    drop((x, y, inner));
    let graph = theirs.end_capture(CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
    // What the pool had back it would give to these.
    let others = [(); 8].map(|()| stream.clone_htod(&[5u32, 5]).unwrap());
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(stream.clone_dtoh(&result).unwrap(), [7, 210]);
    others.iter().for_each(|other| assert_eq!(stream.clone_dtoh(other).unwrap(), [5, 5]));
    // A replay that is under way needs it still.
    let flag = stream.clone_htod(&[0u32]).unwrap();
    let hold = gpu.hold(stream, &flag, 1);
    graph.launch().unwrap();
    drop(graph);
    let held = gpu.device.pool_statistics().live_bytes;
    hold.release();
    assert_eq!(stream.clone_dtoh(&result).unwrap(), [10, 310]);
    until(|| gpu.device.pool_statistics().live_bytes < held);
    drop((result, flag, others));
    until(|| gpu.device.pool_statistics().live_bytes == live);
}

#[test]
fn a_graph_of_theirs_keeps_what_ours_uses() {
    alone("interop::a_graph_of_theirs_keeps_what_ours_uses", CHECKED, || {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: all is on one stream.
        unsafe { context.disable_event_tracking() };
        let theirs = context.new_stream().unwrap();
        let gpu = Gpu::of(Device::from_cudarc(context, theirs.clone()).unwrap());
        dropped_in_a_capture(&gpu, &gpu.device.default_stream(), &theirs);
    });
}

#[test]
fn a_stream_of_ours_that_they_had_is_captured_as_theirs_are() {
    alone("interop::a_stream_of_ours_that_they_had_is_captured_as_theirs_are", CHECKED, || {
        let gpu = Gpu::open();
        let stream = gpu.device.new_stream().unwrap();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        let theirs = stream.lend(&x, |view| view.stream().clone()).unwrap();
        dropped_in_a_capture(&gpu, &stream, &theirs);
    });
}

#[test]
fn a_device_lives_as_long_as_a_graph_of_theirs_that_uses_it() {
    alone("interop::a_device_lives_as_long_as_a_graph_of_theirs_that_uses_it", CHECKED, || {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: all is on one stream.
        unsafe { context.disable_event_tracking() };
        let theirs = context.new_stream().unwrap();
        let mut result = theirs.clone_htod(&[0u32]).unwrap();
        let alone = Arc::strong_count(&context);
        let gpu = Gpu::of(Device::from_cudarc(context.clone(), theirs.clone()).unwrap());
        let ours = gpu.device.default_stream();
        let x = ours.clone_htod(&[1u32]).unwrap();
        ours.synchronize().unwrap();
        theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
        gpu.add(&ours, &x, 3);
        gpu.device.borrow(&mut result, |result| ours.memcpy_dtod(&x, &result)).unwrap().unwrap();
        drop((ours, x, gpu));
        let graph = theirs.end_capture(CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
        assert!(Arc::strong_count(&context) > alone);
        graph.launch().unwrap();
        graph.launch().unwrap();
        assert_eq!(theirs.clone_dtoh(&result).unwrap(), [7]);
        drop(graph);
        until(|| Arc::strong_count(&context) == alone);
    });
}

/// A stream of theirs that is the default one of a device, and captures in a mode that forbids everything that waits.
fn capturing(gpu: impl FnOnce(&Gpu)) -> (Gpu, Arc<CudaStream>) {
    let context = CudaContext::new(0).unwrap();
    // SAFETY: all of theirs is on one stream.
    unsafe { context.disable_event_tracking() };
    let theirs = context.new_stream().unwrap();
    let ours = Gpu::of(Device::from_cudarc(context, theirs.clone()).unwrap());
    gpu(&ours);
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    (ours, theirs)
}

#[test]
fn what_is_done_on_other_streams_does_not_end_a_capture_of_theirs() {
    alone("interop::what_is_done_on_other_streams_does_not_end_a_capture_of_theirs", &[], || {
        let mut before = None;
        let (gpu, theirs) = capturing(|gpu| {
            let ours = gpu.device.default_stream();
            let other = gpu.device.new_stream().unwrap();
            let x = ours.clone_htod(&[1u32]).unwrap();
            // Memory whose last use is on the stream that captures: it is asked whether that is over.
            ours.memset_zeros(&ours.alloc::<u32>(70).unwrap()).unwrap();
            ours.memset_zeros(&ours.alloc::<u32>(80).unwrap()).unwrap();
            let event = other.record_event().unwrap();
            before = Some((ours, other, x, event));
        });
        let (ours, other, x, event) = before.unwrap();
        gpu.add(&ours, &x, 3);
        let y = other.alloc::<u32>(70).unwrap();
        other.memcpy_htod(&numbers(1, 70), &y).unwrap();
        assert!(other.clone_dtoh(&y).unwrap() == numbers(1, 70));
        until(|| event.is_complete() && other.is_idle());
        assert!(!ours.is_idle(), "it is not known before they are done");
        // More than is kept for a time at which nothing runs.
        for _ in 0..300 {
            let mapped = gpu.device.alloc_mapped::<u32>(1).unwrap();
            mapped.set(0, 5).unwrap();
            other.memset_zeros(mapped.buffer()).unwrap();
        }
        other.synchronize().unwrap();
        drop(other.alloc::<u32>(90).unwrap());
        let graph = theirs.end_capture(CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
        graph.launch().unwrap();
        assert_eq!(ours.clone_dtoh(&x).unwrap(), [4]);
    });
}

#[test]
fn what_is_meant_for_once_is_not_captured() {
    alone("interop::what_is_meant_for_once_is_not_captured", &[], || {
        let mut before = None;
        let (gpu, theirs) = capturing(|gpu| {
            let ours = gpu.device.default_stream();
            let x = ours.clone_htod(&[1u32]).unwrap();
            before = Some((ours, x));
        });
        let (ours, x) = before.unwrap();
        let refused = |error: RuntimeError| match error {
            RuntimeError::Cuda(error) => error.to_string(),
            RuntimeError::Failed(failure) => failure.message,
            other => panic!("{other}"),
        };
        let calls = [
            refused(ours.alloc::<u32>(9).unwrap_err()),
            refused(ours.clone_dtoh(&x).unwrap_err()),
            refused(ours.synchronize().unwrap_err()),
            refused(gpu.device.synchronize().unwrap_err()),
        ];
        for (said, call) in calls.iter().zip([
            "cuMemAllocAsync",
            "cuMemcpyDtoHAsync",
            "cuStreamSynchronize",
            "cuStreamSynchronize",
        ]) {
            assert!(said.starts_with(call), "{said}");
        }
        // This one is told by the next call that waits.
        ours.memcpy_htod(&[7], &x).unwrap();
        assert!(refused(ours.synchronize().unwrap_err()).starts_with("cuMemcpyHtoDAsync"));
        gpu.add(&ours, &x, 3);
        let graph = theirs.end_capture(CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
        graph.launch().unwrap();
        assert_eq!(ours.clone_dtoh(&x).unwrap(), [4]);
    });
}

/// cudarc's slices keep the stream that they were made on.
#[test]
fn a_stream_that_cudarc_keeps_outlives_ours() {
    let kept = {
        let gpu = Gpu::open();
        let stream = gpu.device.new_stream().unwrap();
        let x = stream.clone_htod(&[1u32, 2, 3]).unwrap();
        stream.lend(&x, |view| view.stream().clone().clone_dtod(&view)).unwrap().unwrap()
    };
    let theirs = kept.stream().clone();
    assert_eq!(theirs.clone_dtoh(&kept).unwrap(), [1, 2, 3]);
    drop((kept, theirs));
    // It is destroyed when there is an opportunity.
    Gpu::open().device.new_stream().unwrap();
}
