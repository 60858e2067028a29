//! Devices that go while kernels run that would never end: a virtual GPU stops those.

use crate::*;

#[test]
fn a_device_may_go_before_its_work() {
    ends(|| {
        let gpu = Gpu::plain();
        let stream = gpu.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        let flags = gpu.device.alloc_mapped::<u32>(2).unwrap();
        // Nobody will ever tell it to go on.
        gpu.launch(&stream, "spin", &x, flags.buffer(), 1);
        until(|| flags.get(1).unwrap() == 1);
        for _ in 0..100 {
            gpu.launch(&stream, "spin", &x, flags.buffer(), 1);
        }
    });
}

#[test]
fn a_device_may_go_before_its_work_begins() {
    ends(|| {
        for _ in 0..20 {
            let gpu = Gpu::plain();
            let stream = gpu.device.default_stream();
            let x = stream.alloc_zeros::<u32>(1).unwrap();
            let flags = gpu.device.alloc_mapped::<u32>(2).unwrap();
            gpu.launch(&stream, "spin", &x, flags.buffer(), 1);
        }
    });
}

#[test]
fn nobody_waits_for_a_device_that_is_gone() {
    ends(|| {
        let (gone, stays) = (Gpu::plain(), Gpu::plain());
        let stream = stays.device.default_stream();
        let x = gone.device.default_stream().alloc_zeros::<u32>(1).unwrap();
        let flags = gone.device.alloc_mapped::<u32>(2).unwrap();
        gone.launch(&gone.device.default_stream(), "spin", &x, flags.buffer(), 1);
        let never = gone.device.default_stream().record_event().unwrap();
        stream.wait_event(&never).unwrap();
        drop((never, x, flags, gone));
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_device_that_waits_for_another_may_go() {
    ends(|| {
        let (busy, gone) = (Gpu::plain(), Gpu::plain());
        let stream = busy.device.default_stream();
        let x = stream.alloc_zeros::<u32>(1).unwrap();
        let hold = busy.hold(&stream, &x, 1);
        let event = stream.record_event().unwrap();
        gone.device.default_stream().wait_event(&event).unwrap();
        // Time for it to begin to wait.
        std::thread::sleep(Duration::from_millis(20));
        drop(gone);
        assert!(!event.is_complete());
        drop(hold);
        stream.synchronize().unwrap();
    });
}
