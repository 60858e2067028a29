//! CUDA devices among the others: listed, opened, chosen.

use crate::*;
use warpwright_runtime::{CudaError, cuda_driver, devices};

#[test]
fn cuda_devices_are_listed_before_the_virtual_gpu() {
    let listed = devices().unwrap();
    let (vm, cuda) = listed.split_last().unwrap();
    assert_eq!((vm.spec, vm.is_virtual, vm.properties.driver), (DeviceSpec::Vm, true, None));
    let version = cuda_driver().unwrap();
    for (ordinal, info) in (0..).zip(cuda) {
        assert_eq!(info.spec, DeviceSpec::Cuda(ordinal));
        let device = Device::open(info.spec).unwrap();
        assert_eq!(device.properties(), &info.properties);
        assert_eq!(device.is_virtual(), info.is_virtual);
        assert_eq!(device.host_threads().is_some(), info.is_virtual);
        assert_eq!(info.properties.driver, Some(version));
        let (major, minor) = info.compute_capability;
        assert!(u32::from(info.properties.arch.sm) <= 10 * major + minor);
        assert!(info.properties.l2_cache.is_some_and(|bytes| bytes > 0));
        assert!(info.pci_bus_id.is_some() && info.uuid.is_some());
        assert!(info.properties.multiprocessors > 0 && info.properties.memory > 1 << 30);
        let shared = &info.properties;
        assert_eq!(shared.shared_per_block, 48 << 10);
        assert!(shared.shared_per_block_optin > shared.shared_per_block);
        assert!(shared.shared_per_multiprocessor >= shared.shared_per_block_optin);
    }
    let uuids: std::collections::HashSet<_> = cuda.iter().map(|info| info.uuid).collect();
    assert_eq!(uuids.len(), cuda.len());
}

#[test]
fn a_device_that_is_not_there_says_how_many_there_are() {
    let found = u32::try_from(devices().unwrap().len() - 1).unwrap();
    match Device::cuda(found) {
        Err(RuntimeError::Cuda(error)) => assert_eq!(*error, CudaError::NoDevice { ordinal: found, found }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_real_device_is_chosen_and_a_virtual_one_only_without_a_driver() {
    let chosen = Device::auto().unwrap();
    let real = devices().unwrap().iter().any(|info| !info.is_virtual);
    assert_eq!(chosen.device.is_virtual(), !real);
    assert_eq!(chosen.device.properties().driver.is_some(), real);
}

#[test]
fn devices_of_one_number_have_their_own_pools_and_the_same_memory() {
    let (one, other) = (Device::cuda(0).unwrap(), Device::cuda(0).unwrap());
    assert_ne!(one, other);
    let stream = one.default_stream();
    let x = stream.clone_htod(&[1u32, 2]).unwrap();
    assert_eq!((one.pool_statistics().live, other.pool_statistics().live), (1, 0));
    assert!(matches!(other.default_stream().memset_zeros(&x), Err(RuntimeError::OtherDevice { .. })));
    drop(other);
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [1, 2]);
}

#[test]
fn many_threads_use_one_device() {
    let gpu = Gpu::open();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let gpu = &gpu;
            scope.spawn(move || {
                let stream = gpu.device.new_stream().unwrap();
                for round in 0..20 {
                    let x = stream.clone_htod(&[thread, round]).unwrap();
                    let first = x.slice(..1).unwrap();
                    gpu.add(&stream, &first, 100);
                    gpu.add(&stream, &first, 1000);
                    assert_eq!(stream.clone_dtoh(&x).unwrap(), [thread + 1100, round]);
                }
            });
        }
    });
    assert_eq!(gpu.device.statistics().launches, 4 * 20 * 2);
}
