//! What fails on a CUDA device: who is told, of what, and that nothing is done any more.
//!
//! A kernel that fails ends the device's context for its process. So each test has a process of its own: the test
//! starts the program that it is in with its own name, and is what the new process runs.

use crate::*;
use warpwright_runtime::{CudaError, DriverVersion};

/// Traps.
pub(crate) const FAIL: &str = ".version 7.8
.target sm_75
.address_size 64
.visible .entry fail(.param .u64 p, .param .u64 q, .param .u32 n)
{
    trap;
}
";

fn failing() -> (Gpu, Function) {
    with_config(CudaConfig::new(0))
}

fn with_config(config: CudaConfig) -> (Gpu, Function) {
    let gpu = Gpu::of(Device::cuda_with(config).expect("these tests want a CUDA device"));
    let fail = gpu.device.load_ptx(FAIL).and_then(|module| module.load_function("fail")).expect("the kernel");
    (gpu, fail)
}

pub(crate) fn fail(stream: &Stream, function: &Function, p: &Buffer<u32>) {
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let builder = stream.launch_builder(function).arg(p).arg(p).arg(0u32);
    // SAFETY: the kernel accesses nothing.
    unsafe { builder.launch(one) }.expect("issued");
}

/// The failure that a call returned.
pub(crate) fn failure<T: std::fmt::Debug>(result: Result<T>) -> Failure {
    match result {
        Err(RuntimeError::Failed(failure)) => *failure,
        other => panic!("a failure is expected: {other:?}"),
    }
}

#[test]
fn a_device_that_failed_is_lost_and_says_so_to_everybody() {
    alone("faults::a_device_that_failed_is_lost_and_says_so_to_everybody", &[], || {
        let (gpu, function) = failing();
        let (stream, other) = (gpu.device.default_stream(), gpu.device.new_stream().unwrap());
        let x = stream.clone_htod(&[1u32]).unwrap();
        let before = other.record_event().unwrap();
        before.synchronize().unwrap();
        gpu.add(&stream, &x, 1);
        stream.synchronize().unwrap();
        // What was seen complete has not failed: it is this one.
        fail(&stream, &function, &x);
        let failed = failure(stream.synchronize());
        assert_eq!((&*failed.kernel, failed.launch, failed.last.as_ref()), ("fail", Some(1), None));
        assert!(failed.lost);
        assert_eq!(gpu.device.failures(), 1);
        for again in
            [stream.synchronize(), other.synchronize(), gpu.device.synchronize(), before.synchronize()]
        {
            let again = failure(again);
            assert_eq!((again.kernel, again.launch, again.lost), ("fail".into(), Some(1), true));
        }
        assert_eq!(gpu.device.failures(), 5);
        // Nothing is done any more, and nobody waits for it.
        let launches = gpu.device.statistics().launches;
        gpu.add(&other, &x, 1);
        other.memset_zeros(&x).unwrap();
        let skipped = other.record_event().unwrap();
        assert!(skipped.is_complete() && other.is_idle());
        assert!(matches!(skipped.elapsed(&before), Err(RuntimeError::Incomplete)));
        assert_eq!(gpu.device.statistics().launches, launches);
        failure(other.clone_dtoh(&x));
        assert!(gpu.device.new_stream().and_then(|stream| stream.alloc::<u32>(5)).is_err());
        drop((x, skipped, before, stream, other, function, gpu));
    });
}

#[test]
fn an_allocation_that_meets_the_error_first_names_the_launch() {
    alone("faults::an_allocation_that_meets_the_error_first_names_the_launch", &[], || {
        let (gpu, function) = failing();
        let stream = gpu.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        fail(&stream, &function, &x);
        // The device fails some time after the launch.
        let mut given = Vec::new();
        let mut len = 1;
        until(|| {
            len += 1;
            given.push(stream.alloc::<u32>(len));
            given.last().is_some_and(Result::is_err)
        });
        let failed = failure(given.pop().expect("the last one"));
        assert_eq!((&*failed.kernel, failed.launch, failed.lost), ("fail", Some(0), true));
        let failed = failure(gpu.device.alloc_mapped::<u32>(3));
        assert_eq!((&*failed.kernel, failed.launch, failed.lost), ("fail", Some(0), true));
        stream.begin_capture().unwrap();
        gpu.add(&stream, &x, 1);
        let failed = failure(stream.end_capture().unwrap().instantiate());
        assert_eq!((&*failed.kernel, failed.launch), ("fail", Some(0)));
    });
}

#[test]
fn where_it_is_not_known_which_launch_failed_they_are_named_from_first_to_last() {
    // In another order the stream that waits may be done, and out of suspicion, before the launch that fails begins.
    let in_order = [("WARPWRIGHT_ORDER", "issue")];
    alone(
        "faults::where_it_is_not_known_which_launch_failed_they_are_named_from_first_to_last",
        &in_order,
        || {
            let (gpu, function) = failing();
            let (stream, other) = (gpu.device.default_stream(), gpu.device.new_stream().unwrap());
            let (x, y) = (stream.alloc_zeros::<u32>(1).unwrap(), other.alloc_zeros::<u32>(1).unwrap());
            gpu.add(&stream, &x, 1);
            gpu.device.synchronize().unwrap();
            let hold = gpu.hold(&other, &y, 1);
            fail(&stream, &function, &x);
            gpu.add(&stream, &x, 1);
            gpu.add(&stream, &x, 1);
            hold.release();
            let failed = failure(gpu.device.synchronize());
            // The launch of both streams that is the first, and that which is the last.
            assert_eq!((&*failed.kernel, failed.launch), ("spin", Some(1)));
            assert!(failed.lost && failed.last.is_some_and(|(_, number)| number >= 2));
        },
    );
}

#[test]
fn launches_that_wait_for_themselves_say_which_one_it_was() {
    alone("faults::launches_that_wait_for_themselves_say_which_one_it_was", &[], || {
        let mut config = CudaConfig::new(0);
        config.sync_launches = true;
        let (gpu, function) = with_config(config);
        let stream = gpu.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        gpu.add(&stream, &x, 1);
        fail(&stream, &function, &x);
        gpu.add(&stream, &x, 1);
        let failed = failure(stream.synchronize());
        assert_eq!((&*failed.kernel, failed.launch, failed.last), ("fail", Some(1), None));
        assert_eq!(gpu.device.statistics().launches, 2, "what is behind it is not issued");
    });
}

#[test]
fn a_variable_makes_launches_wait_for_themselves() {
    let on = [("WARPWRIGHT_SYNC_LAUNCHES", "1")];
    alone("faults::a_variable_makes_launches_wait_for_themselves", &on, || {
        assert!(CudaConfig::new(0).sync_launches);
        let gpu = Gpu::open();
        let stream = gpu.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        gpu.add(&stream, &x, 1);
        // Nobody has asked, and it is over.
        stream.begin_capture().unwrap();
        gpu.add(&stream, &x, 1);
        let graph = stream.end_capture().unwrap().instantiate().unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
    });
}

#[test]
fn the_replay_of_a_graph_names_its_kernels() {
    alone("faults::the_replay_of_a_graph_names_its_kernels", &[], || {
        let (gpu, function) = failing();
        let stream = gpu.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        stream.begin_capture().unwrap();
        gpu.add(&stream, &x, 1);
        fail(&stream, &function, &x);
        gpu.add(&stream, &x, 1);
        let graph = stream.end_capture().unwrap().instantiate().unwrap();
        graph.launch(&stream).unwrap();
        let failed = failure(stream.synchronize());
        assert_eq!((failed.kernel, failed.launch), ("add".into(), Some(0)));
        assert_eq!(failed.last, Some(("add".into(), 2)));
    });
}

#[test]
fn a_driver_that_is_too_old_is_refused_with_what_it_is_and_what_is_needed() {
    // Only the driver of the virtual GPU can be made old.
    let old = [("WARPWRIGHT_DRIVER_VERSION", "11040")];
    alone("faults::a_driver_that_is_too_old_is_refused_with_what_it_is_and_what_is_needed", &old, || {
        let version = |major, minor| DriverVersion { major, minor };
        match (warpwright_runtime::cuda_driver(), Device::cuda(0)) {
            (Err(why), Err(RuntimeError::Cuda(error))) => {
                assert_eq!(why, CudaError::OldDriver { found: version(11, 4), needed: version(12, 2) });
                assert_eq!(*error, why);
                assert!(Device::auto().unwrap().device.properties().driver.is_none());
            }
            // A real one has the version that it has.
            (Ok(found), Ok(device)) => {
                assert!(found >= version(12, 2) && !device.is_virtual());
            }
            other => panic!("{other:?}"),
        }
    });
}
