//! Which device, what it is like, and that its parts may go from thread to thread.

use crate::*;

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
fn handles_of_a_device_are_equal() {
    let (one, other) = (Gpu::plain().device, Gpu::plain().device);
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
