//! The pool: which memory a buffer gets, and what the checks know of it.

use crate::*;
use warpwright_dsl::{ArgDesc, Bounded, K, LaunchRule, any::AnyKernel};

#[test]
fn a_stream_uses_memory_again_at_once() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[1u32, 2]).unwrap();
    let hold = gpu.hold(&stream, &x, 5);
    let address = x.device_ptr();
    drop(x);
    let before = gpu.device.pool_statistics();
    assert_eq!((before.live_bytes, before.cached_bytes, before.reused), (0, 8, 0));
    // The kernel still runs, and comes before whatever happens to the new buffer.
    let y = stream.alloc_zeros::<u32>(2).unwrap();
    assert_eq!(y.device_ptr(), address);
    assert!(!stream.is_idle());
    let after = gpu.device.pool_statistics();
    assert_eq!((after.live_bytes, after.cached_bytes, after.reused), (8, 0, 1));
    hold.release();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0, 0], "zeroed after the kernel had added to it");
}

#[test]
fn another_stream_gets_memory_when_what_used_it_is_done() {
    let gpu = Gpu::plain();
    let (one, two) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = one.alloc_zeros::<u32>(2).unwrap();
    let hold = gpu.hold(&one, &x, 5);
    let address = x.device_ptr();
    drop(x);
    let y = two.alloc::<u32>(2).unwrap();
    assert_ne!(y.device_ptr(), address, "the kernel still adds to it");
    hold.release();
    one.synchronize().unwrap();
    let z = two.alloc::<u32>(2).unwrap();
    assert_eq!(z.device_ptr(), address);
}

#[test]
fn a_buffer_that_another_stream_uses_is_not_used_again() {
    let gpu = Gpu::plain();
    let (home, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = home.alloc_zeros::<u32>(2).unwrap();
    let allocated = home.record_event().unwrap();
    other.wait_event(&allocated).unwrap();
    let hold = gpu.hold(&other, &x, 5);
    let address = x.device_ptr();
    drop(x);
    let y = home.alloc::<u32>(2).unwrap();
    assert_ne!(y.device_ptr(), address, "a kernel of another stream still adds to it");
    let w = gpu.device.new_stream().unwrap().alloc::<u32>(2).unwrap();
    assert_ne!(w.device_ptr(), address);
    // Its own operations come after that kernel, and the first stream is done with the buffer.
    let z = other.alloc::<u32>(2).unwrap();
    // A driver need not know yet that the first stream is done.
    if warpwright_testing::test_device() == warpwright_testing::TestDevice::Vm {
        assert_eq!(z.device_ptr(), address);
    }
    hold.release();
    gpu.device.synchronize().unwrap();
}

#[test]
fn a_buffer_that_two_streams_use_is_of_neither() {
    let gpu = Gpu::plain();
    let (home, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = home.alloc_zeros::<u32>(2).unwrap();
    let hold = gpu.hold(&home, &x, 5);
    other.memset_zeros(&x).unwrap();
    drop(x);
    // Where it is does not matter: a driver may give the same memory to a stream and make it wait for all that used it.
    let others = [&home, &other].map(|stream| {
        let next = stream.alloc::<u32>(2).unwrap();
        stream.memset(&next, 7).unwrap();
        next
    });
    hold.release();
    gpu.device.synchronize().unwrap();
    for next in others {
        assert_eq!(home.clone_dtoh(&next).unwrap(), [7, 7]);
    }
}

#[test]
fn a_copy_on_another_stream_is_a_use() {
    let gpu = Gpu::plain();
    let (home, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let (x, y) = (home.alloc_zeros::<u32>(3).unwrap(), other.alloc_zeros::<u32>(1).unwrap());
    home.synchronize().unwrap();
    let hold = gpu.hold(&other, &y, 0);
    let target = other.alloc::<u32>(1).unwrap();
    // A slice counts for the whole.
    other.memcpy_dtod(&x.slice(1..2).unwrap(), &target).unwrap();
    let address = x.device_ptr();
    drop(x);
    assert_ne!(home.alloc::<u32>(3).unwrap().device_ptr(), address);
    hold.release();
    gpu.device.synchronize().unwrap();
}

/// Counts three numbers up.
struct Touch;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Touch {}

impl AnyKernel for Touch {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "touch".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::in_out::<u32>("x", 3)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let (x, i) = (k.ptr_mut::<u32>("x"), k.global_tid());
        k.when(i.lt(3), || x.st(i, x.ld(i) + 1));
    }
}

/// A replay uses the buffers of its graph, those of an update too.
#[test]
fn what_a_graph_uses_is_not_used_again() {
    let gpu = Gpu::plain();
    let (home, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let kernel = gpu.device.kernel(&Touch).unwrap();
    let touch = |x: &Buffer<u32>| kernel.bind().buffer("x", x).prepare().unwrap();
    for updated in [false, true] {
        let [x, y] = [(); 2].map(|()| home.alloc_zeros::<u32>(3).unwrap());
        home.begin_capture().unwrap();
        home.launch(&touch(&x)).unwrap();
        let graph = home.end_capture().unwrap();
        let mut exec = graph.instantiate().unwrap();
        let used = if updated {
            let (node, _) = graph.nodes().next().unwrap();
            exec.update(node, &touch(&y)).unwrap();
            y
        } else {
            x
        };
        drop(graph);
        let counter = home.alloc_zeros::<u32>(1).unwrap();
        home.synchronize().unwrap();
        let hold = gpu.hold(&other, &counter, 1);
        exec.launch(&other).unwrap();
        let address = used.device_ptr();
        drop((used, exec));
        // The block of the buffer that nothing uses is free for the first of them.
        let new = [(); 2].map(|()| home.alloc::<u32>(3).unwrap());
        assert!(new.iter().all(|new| new.device_ptr() != address), "a replay still adds to it");
        assert_eq!(other.alloc::<u32>(3).unwrap().device_ptr(), address);
        hold.release();
        gpu.device.synchronize().unwrap();
    }
}

#[test]
fn the_pool_counts_what_it_does() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    let x = stream.alloc::<u64>(100).unwrap();
    let y = stream.alloc::<u8>(10).unwrap();
    let all = device.pool_statistics();
    assert_eq!((all.live, all.live_bytes, all.peak_bytes, all.allocations), (2, 810, 810, 2));
    drop(x);
    let x = stream.alloc::<f32>(200).unwrap();
    drop(y);
    let z = stream.alloc::<u8>(11).unwrap();
    let all = device.pool_statistics();
    assert_eq!((all.live, all.live_bytes, all.peak_bytes), (2, 811, 811));
    assert_eq!((all.cached, all.cached_bytes, all.allocations, all.reused, all.released), (1, 10, 4, 1, 0));
    drop((x, z));
    device.trim_pool(800);
    let all = device.pool_statistics();
    assert_eq!((all.live_bytes, all.cached_bytes, all.cached, all.released), (0, 11, 1, 2));
    device.trim_pool(0);
    assert_eq!((device.pool_statistics().cached, device.pool_statistics().released), (0, 3));
    assert_eq!(device.pool_statistics().peak_bytes, 811);
}

#[test]
fn what_is_over_the_threshold_goes_back_at_once() {
    let device = Gpu::plain().device;
    let stream = device.default_stream();
    device.set_release_threshold(100);
    let (x, y) = (stream.alloc::<u8>(60).unwrap(), stream.alloc::<u8>(50).unwrap());
    drop(x);
    assert_eq!(device.pool_statistics().cached_bytes, 60);
    drop(y);
    assert_eq!((device.pool_statistics().cached_bytes, device.pool_statistics().released), (50, 1));
    device.set_release_threshold(0);
    assert_eq!(device.pool_statistics().cached_bytes, 0);
}
