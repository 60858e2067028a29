//! Which device, what it is like, and that its parts may go from thread to thread.

use crate::*;
use warpwright_ptx::ir::Arch;

#[test]
fn names_of_devices_are_read_and_written() {
    let names = [
        ("auto", DeviceSpec::Auto),
        ("vm", DeviceSpec::Vm),
        ("cuda:0", DeviceSpec::Cuda(0)),
        ("cuda:17", DeviceSpec::Cuda(17)),
    ];
    for (name, spec) in names {
        assert_eq!(name.parse::<DeviceSpec>().unwrap(), spec);
        assert_eq!(spec.to_string(), name);
    }
    for wrong in
        ["", "gpu", "VM", "cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:4294967296", "cuda:1 ", "vm:0"]
    {
        match wrong.parse::<DeviceSpec>() {
            Err(RuntimeError::UnknownDevice { given }) => assert_eq!(given, wrong),
            other => panic!("{wrong}: {other:?}"),
        }
    }
    assert_eq!(DeviceSpec::default(), DeviceSpec::Auto);
}

#[test]
fn a_device_is_chosen_and_says_why() {
    let chosen = Device::auto().unwrap();
    assert!(!chosen.reason.is_empty());
    let asked = DeviceSpec::Vm.select().unwrap();
    assert_ne!(chosen.reason, asked.reason);
    assert_ne!(chosen.device, asked.device, "every virtual device is one of its own");
    match Device::open(DeviceSpec::Cuda(3)) {
        Err(RuntimeError::NoCuda { ordinal: 3 }) => {}
        other => panic!("{other:?}"),
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

#[test]
fn handles_of_a_device_are_equal() {
    let (one, other) = (Device::vm(VmConfig::default()).unwrap(), Device::vm(VmConfig::default()).unwrap());
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_eq!(one.default_stream().device(), &one);
    assert_eq!(other.new_stream().unwrap().alloc::<u8>(1).unwrap().device(), &other);
}

#[test]
fn everything_may_go_from_thread_to_thread() {
    fn both<T: Send + Sync>() {}
    both::<Device>();
    both::<Stream>();
    both::<Event>();
    both::<Buffer<half::f16>>();
    both::<AnyBuffer>();
    both::<HostBuffer<u64>>();
    both::<RuntimeError>();
    both::<Selected>();
    both::<VmConfig>();
}
