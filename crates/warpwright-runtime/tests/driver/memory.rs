//! Memory that is not there.

use crate::Gpu;
use warpwright_runtime::*;
use warpwright_testing::Apart;

const MIB: usize = 1 << 20;

#[test]
fn memory_is_out_when_it_is_out() {
    if let Some(apart) = Apart::new("memory::memory_is_out_when_it_is_out") {
        let apart = apart.driver("90").env("WARPWRIGHT_MEMORY", "64M").env("WARPWRIGHT_LEAKS", "1");
        return apart.env("WARPWRIGHT_EXIT_STATUS", "97").run().passed();
    }
    let gpu = Gpu::new(0);
    let x = gpu.stream.alloc::<u8>(40 * MIB).unwrap();
    let asked = |bytes: usize| match gpu.stream.alloc::<u8>(bytes) {
        Err(RuntimeError::OutOfMemory { asked, free, live, capacity, .. }) => {
            assert_eq!((asked, live, capacity), (bytes as u64, 40 << 20, 64 << 20));
            assert!(free <= 24 << 20, "{free}");
        }
        other => panic!("{other:?}"),
    };
    asked(40 * MIB);
    asked(1 << 40);
    // It is no failure of the device: what fits is there, and works.
    let y = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    gpu.launch("add", &y, &y, 5).unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&y).unwrap(), [5]);
    // What is cached is given back where it stands in the way.
    drop(x);
    assert_eq!(gpu.device.pool_statistics().cached_bytes, 40 << 20);
    let x = gpu.stream.alloc::<u8>(50 * MIB).unwrap();
    assert_eq!(gpu.device.pool_statistics().cached_bytes, 0);
    drop(x);
    // A device that is idle is gone when its last handle is: nothing is left when the process ends.
    gpu.device.synchronize().unwrap();
}

#[test]
fn memory_that_a_kernel_uses_is_waited_for() {
    if let Some(apart) = Apart::new("memory::memory_that_a_kernel_uses_is_waited_for") {
        return apart.driver("90").env("WARPWRIGHT_MEMORY", "64M").run().passed();
    }
    let gpu = Gpu::new(0);
    let x = gpu.stream.alloc_zeros::<u32>(10 * MIB).unwrap();
    let flags = gpu.busy();
    gpu.launch("add", &x, &x, 1).unwrap();
    drop(x);
    let stream = gpu.stream.clone();
    let waiting = std::thread::spawn(move || stream.alloc_zeros::<u32>(11 * MIB).map(|x| x.len()));
    std::thread::sleep(std::time::Duration::from_millis(20));
    flags.set(0, 1).unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), 11 * MIB);
}
