//! Which devices there are, if any; several of them, several streams, several threads.

use crate::{Gpu, clean};
use std::sync::Barrier;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::*;
use warpwright_testing::Apart;

/// Why there are no CUDA devices.
fn refused(result: Result<Device>) -> CudaError {
    match result {
        Err(RuntimeError::Cuda(error)) => *error,
        Err(other) => panic!("{other}"),
        Ok(device) => panic!("{device:?}"),
    }
}

/// Without CUDA devices there is the virtual GPU, and everything says so.
fn the_virtual_gpu_is_all_there_is() {
    let all = devices().unwrap();
    assert_eq!(all.iter().map(|info| info.spec).collect::<Vec<_>>(), [DeviceSpec::Vm]);
    let chosen = Device::auto().unwrap();
    assert!(chosen.device.is_virtual() && !chosen.reason.is_empty());
}

#[test]
fn no_driver() {
    if let Some(apart) = Apart::new("several::no_driver") {
        return apart.broken_driver().run().passed();
    }
    for _ in 0..2 {
        assert!(matches!(refused(Device::cuda(0)), CudaError::NoDriver { .. }));
    }
    assert!(matches!(cuda_driver(), Err(CudaError::NoDriver { .. })));
    the_virtual_gpu_is_all_there_is();
}

#[test]
fn an_old_driver() {
    if let Some(apart) = Apart::new("several::an_old_driver") {
        return apart.driver("90").env("WARPWRIGHT_DRIVER_VERSION", "11040").run().passed();
    }
    let CudaError::OldDriver { found, needed } = refused(Device::cuda(0)) else { panic!("another error") };
    assert_eq!((found.major, found.minor), (11, 4));
    assert!(needed > found);
    the_virtual_gpu_is_all_there_is();
}

#[test]
fn no_devices() {
    if let Some(apart) = Apart::new("several::no_devices") {
        return apart.driver("90").env("CUDA_VISIBLE_DEVICES", "").run().passed();
    }
    assert_eq!(refused(Device::cuda(0)), CudaError::NoDevice { ordinal: 0, found: 0 });
    assert!(cuda_driver().is_ok());
    the_virtual_gpu_is_all_there_is();
}

#[test]
fn devices_are_listed_and_opened_by_number() {
    if let Some(apart) = Apart::new("several::devices_are_listed_and_opened_by_number") {
        return apart.driver("75,80,90").env("WARPWRIGHT_MEMORY", "3G").run().passed();
    }
    let all = devices().unwrap();
    let cuda = &all[..3];
    for (info, (ordinal, sm)) in cuda.iter().zip([(0, 75), (1, 80), (2, 90)]) {
        assert_eq!((info.spec, info.properties.arch), (DeviceSpec::Cuda(ordinal), Arch::sm(sm)));
        assert!(info.is_virtual);
        assert_eq!(info.properties.memory, 3 << 30);
        let device = Device::cuda(ordinal).unwrap();
        assert_eq!(device.properties(), &info.properties);
        assert_ne!(device, Device::cuda(ordinal).unwrap());
    }
    assert_eq!(all[3].spec, DeviceSpec::Vm);
    assert_eq!(refused(Device::cuda(3)), CudaError::NoDevice { ordinal: 3, found: 3 });
    assert_eq!(refused(Device::cuda(u32::MAX)), CudaError::NoDevice { ordinal: u32::MAX, found: 3 });
}

/// Four threads on two devices, with two streams each, that wait for one another by events, over and over.
#[test]
fn threads_streams_and_devices() {
    if let Some(apart) = clean("several::threads_streams_and_devices") {
        return apart.run().passed();
    }
    let gpus = [Gpu::new(0), Gpu::new(1)];
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (gpu, barrier) = (&gpus[thread % 2], &barrier);
            scope.spawn(move || {
                let streams = [(); 2].map(|()| gpu.device.new_stream().unwrap());
                let x = streams[0].alloc_zeros::<u32>(1).unwrap();
                barrier.wait();
                for round in 0..50 {
                    let stream = &streams[round % 2];
                    gpu.launch_on(stream, "add", &x, &x, 1).unwrap();
                    let done = stream.record_event().unwrap();
                    streams[1 - round % 2].wait_event(&done).unwrap();
                    // What goes and comes between.
                    drop(stream.clone_htod(&[round as u32; 9]).unwrap());
                }
                assert_eq!(streams[0].clone_dtoh(&x).unwrap(), [50]);
            });
        }
    });
    for gpu in &gpus {
        gpu.device.synchronize().unwrap();
        assert_eq!(gpu.device.statistics().launches, 100);
        assert_eq!(gpu.device.pool_statistics().live, 0);
    }
}
