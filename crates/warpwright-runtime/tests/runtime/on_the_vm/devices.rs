//! Which device is chosen where there is no other, and what its configuration makes of it.

use crate::*;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::{CudaError, cuda_driver, devices};

#[test]
fn a_device_is_chosen_and_says_why() {
    let chosen = Device::auto().unwrap();
    assert!(!chosen.reason.is_empty());
    let asked = DeviceSpec::Vm.select().unwrap();
    assert_ne!(chosen.reason, asked.reason);
    assert_ne!(chosen.device, asked.device, "every virtual device is one of its own");
    // There is no such device, and where there is no driver that is what is said.
    match (Device::open(DeviceSpec::Cuda(u32::MAX)), cuda_driver()) {
        (Err(RuntimeError::Cuda(error)), Err(why)) => assert_eq!(*error, why),
        (Err(RuntimeError::Cuda(error)), Ok(_)) => {
            let found = u32::try_from(devices().unwrap().len() - 1).unwrap();
            assert_eq!(*error, CudaError::NoDevice { ordinal: u32::MAX, found });
        }
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn properties_are_those_of_the_configuration() {
    let mut config = VmConfig::default();
    config.device.arch = Arch::sm(86);
    config.device.multiprocessors = 7;
    config.device.memory = 1 << 30;
    let device = Device::vm(config).unwrap();
    let properties = device.properties();
    assert_eq!((properties.arch, properties.multiprocessors, properties.memory), (Arch::sm(86), 7, 1 << 30));
    // The table of compute capabilities: 8.6.
    assert_eq!(properties.threads_per_multiprocessor, 1536);
    assert_eq!(properties.blocks_per_multiprocessor, 16);
    assert_eq!(properties.shared_per_multiprocessor, 100 << 10);
    assert_eq!((properties.shared_per_block, properties.shared_per_block_optin), (48 << 10, 99 << 10));
}
