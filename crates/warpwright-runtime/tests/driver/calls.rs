//! Drivers that return what no header has, or lack a function.

use crate::{Gpu, failure};
use warpwright_runtime::*;
use warpwright_testing::Apart;

/// A process in which some functions return that, and do nothing.
fn refusing(test: &str, functions: &str) -> Option<Apart> {
    Apart::new(test).map(|apart| apart.driver("80,90").env("WARPWRIGHT_REFUSE", functions))
}

/// The call that failed, and what it returned.
fn refused<T>(result: Result<T>) -> (&'static str, u32) {
    match result.map(drop) {
        Err(RuntimeError::Cuda(error)) => match *error {
            CudaError::Call(call) => (call.call, call.code),
            other => panic!("{other:?}"),
        },
        other => panic!("a call that failed is expected: {other:?}"),
    }
}

#[test]
fn a_code_that_nobody_knows_is_told_as_a_number() {
    let test = "calls::a_code_that_nobody_knows_is_told_as_a_number";
    if let Some(apart) = refusing(test, "cuStreamCreateWithPriority=9999") {
        return apart.run().passed();
    }
    let error = Device::cuda(0).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cuStreamCreateWithPriority failed: the driver says no more (an error without a name, 9999)"
    );
    assert_eq!(refused(Err::<(), _>(error)), ("cuStreamCreateWithPriority", 9999));
}

#[test]
fn a_context_that_is_refused_is_refused_here() {
    let test = "calls::a_context_that_is_refused_is_refused_here";
    if let Some(apart) = refusing(test, "cuDevicePrimaryCtxRetain=4321") {
        return apart.run().passed();
    }
    assert_eq!(refused(Device::cuda(1)), ("cuDevicePrimaryCtxRetain", 4321));
}

#[test]
fn a_launch_may_fail_with_any_code_and_the_device_goes_on() {
    let test = "calls::a_launch_may_fail_with_any_code_and_the_device_goes_on";
    if let Some(apart) = refusing(test, "cuLaunchKernel=9999") {
        return apart.run().passed();
    }
    let gpu = Gpu::new(1);
    let x = gpu.stream.clone_htod(&[7u32]).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    let failed = failure(gpu.stream.synchronize());
    assert_eq!((&*failed.kernel, failed.lost), ("add", false));
    assert_eq!(
        failed.message,
        "cuLaunchKernel failed: the driver says no more (an error without a name, 9999)"
    );
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [7]);
}

#[test]
fn a_graph_may_fail_with_any_code() {
    let test = "calls::a_graph_may_fail_with_any_code";
    if let Some(apart) = refusing(test, "cuGraphAddKernelNode_v2=12345") {
        return apart.run().passed();
    }
    let gpu = Gpu::new(1);
    let x = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    gpu.stream.begin_capture().unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    let graph = gpu.stream.end_capture().unwrap();
    match graph.instantiate().map(drop) {
        Err(RuntimeError::Cuda(error)) => match *error {
            CudaError::Graph { node: Some(0), error } => assert_eq!(error.code, 12345),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [0]);
}

/// Drivers of about 12.2 take no node that sets memory of a pool.
#[test]
fn a_memset_that_is_refused_as_a_node_is_in_the_graph_all_the_same() {
    let test = "calls::a_memset_that_is_refused_as_a_node_is_in_the_graph_all_the_same";
    if let Some(apart) = refusing(test, "cuGraphAddMemsetNode=1") {
        return apart.run().passed();
    }
    let gpu = Gpu::new(1);
    let x = gpu.stream.clone_htod(&[7u32, 7]).unwrap();
    gpu.stream.begin_capture().unwrap();
    gpu.stream.memset_zeros(&x.slice(..1).unwrap()).unwrap();
    gpu.launch("add", &x, &x, 3).unwrap();
    gpu.stream.memset_any(x.slice(1..).unwrap().as_any(), 1).unwrap();
    let exec = gpu.stream.end_capture().unwrap().instantiate().unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [7, 7]);
    exec.launch(&gpu.stream).unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [3, 0x0101_0101]);
}

#[test]
fn a_wait_that_the_driver_refuses_is_told() {
    let test = "calls::a_wait_that_the_driver_refuses_is_told";
    if let Some(apart) = refusing(test, "cuStreamWaitEvent=801") {
        return apart.run().passed();
    }
    let gpu = Gpu::new(1);
    let other = gpu.device.new_stream().unwrap();
    let x = gpu.stream.clone_htod(&[7u32]).unwrap();
    gpu.stream.synchronize().unwrap();
    gpu.stream.wait_event(&other.record_event().unwrap()).unwrap();
    // It would not have waited.
    gpu.launch("add", &x, &x, 1).unwrap();
    let failed = failure(gpu.stream.synchronize());
    assert_eq!((&*failed.kernel, failed.lost), ("wait for an event", false));
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [7]);
}

/// What there is in place of a device, with a driver that lacks a function.
fn missing() -> (&'static str, Option<DriverVersion>, String) {
    match Device::cuda(0).map(drop) {
        Err(RuntimeError::Cuda(error)) => match *error {
            CudaError::MissingFunction { function, found } => (function, found, error.to_string()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_that_the_driver_lacks_is_named() {
    if let Some(apart) = Apart::new("calls::a_function_that_the_driver_lacks_is_named") {
        return apart.driver_without("cuGraphUpload", "90").run().passed();
    }
    let (function, found, text) = missing();
    assert_eq!((function, found), ("cuGraphUpload", Some(DriverVersion { major: 13, minor: 5 })));
    assert_eq!(
        text,
        "the CUDA driver, of version 13.5 of the driver API, has no function `cuGraphUpload`, which every driver since \
         12.2 of the driver API has: the library that the loader finds is not NVIDIA's, or not whole; install NVIDIA's \
         driver again"
    );
    assert!(Device::auto().unwrap().device.is_virtual(), "there is still the virtual GPU");
}

#[test]
fn a_library_without_a_version_is_no_driver() {
    if let Some(apart) = Apart::new("calls::a_library_without_a_version_is_no_driver") {
        return apart.driver_without("cuDriverGetVersion", "90").run().passed();
    }
    let (function, found, _) = missing();
    assert_eq!((function, found), ("cuDriverGetVersion", None));
}

#[test]
fn the_environment_asks_for_tables_of_lines() {
    if let Some(apart) = Apart::new("calls::the_environment_asks_for_tables_of_lines") {
        return apart.driver("90").env("WARPWRIGHT_LINE_INFO", "1").run().passed();
    }
    assert!(CudaConfig::new(0).line_info);
    let gpu = Gpu::new(0);
    let x = gpu.stream.clone_htod(&[1u32]).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [2]);
}
