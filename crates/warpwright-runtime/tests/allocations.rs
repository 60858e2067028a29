//! Issuing what was prepared allocates nothing on the thread that does it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_runtime::{Device, HostBuffer, LaunchConfig, Stream, VmConfig};

thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
struct Counting;

// SAFETY: everything is the system allocator's; the count has no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// `y += x` over rows of `n`.
struct Add;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Add {}

impl AnyKernel for Add {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "add".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let n = || Extent::dim("n");
        vec![ArgDesc::input::<f32>("x", n()), ArgDesc::in_out::<f32>("y", n()), ArgDesc::scalar::<u32>("n")]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let (x, y, n) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.scalar::<u32>("n"));
        let i = k.global_tid();
        k.when(i.lt(n), || y.st(i, x.ld(i) + y.ld(i)));
    }
}

/// Waits until the first word of its parameter is not zero.
const SPIN: &str = include_str!("small/spin.ptx");

/// Holds the stream until the flag is set, so that everything that is issued meanwhile is in the queue at once.
fn hold(device: &Device, stream: &Stream) -> HostBuffer<u32> {
    let flag = device.alloc_mapped::<u32>(1).unwrap();
    let function = device.load_ptx(SPIN).unwrap().load_function("spin").unwrap();
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the kernel reads the one word of its parameter, which is mapped.
    unsafe { stream.launch_builder(&function).arg(flag.buffer()).launch(one) }.unwrap();
    flag
}

#[test]
fn issuing_what_was_prepared_allocates_nothing() {
    let device = warpwright_testing::device(VmConfig::default());
    let (stream, other) = (device.default_stream(), device.new_stream().unwrap());
    let x = stream.clone_htod(&[1.0f32; 4]).unwrap();
    let (y, z) = (stream.alloc_zeros::<f32>(4).unwrap(), stream.alloc_zeros::<f32>(4).unwrap());
    let kernel = device.kernel(&Add).unwrap();
    let add = kernel.bind().buffer("x", &x).buffer("y", &y).scalar("n", 4u32).prepare().unwrap();
    stream.begin_capture().unwrap();
    stream.launch(&add).unwrap();
    stream.launch(&add).unwrap();
    stream.memcpy_dtod(&y, &z).unwrap();
    let graph = stream.end_capture().unwrap().instantiate().unwrap();
    let event = other.record_event().unwrap();
    stream.synchronize().unwrap();
    let issue = || {
        for _ in 0..100 {
            stream.launch(&add).unwrap();
            stream.wait_event(&event).unwrap();
            graph.launch(&stream).unwrap();
            stream.memset_zeros(&z).unwrap();
            other.launch(&add).unwrap();
            other.memcpy_dtod(&x, &z).unwrap();
        }
    };
    // The queue grows to what is in it at once, and buffers learn which streams use them.
    for round in 0..4 {
        let flag = hold(&device, &stream);
        other.wait_event(&stream.record_event().unwrap()).unwrap();
        let before = ALLOCATIONS.get();
        issue();
        let allocations = ALLOCATIONS.get() - before;
        flag.set(0, 1).unwrap();
        device.synchronize().unwrap();
        assert!(round == 0 || allocations == 0, "round {round}: {allocations} allocations");
        assert!(round > 0 || allocations > 0, "the count counts");
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [4.0 * 100.0 * 4.0; 4]);
    assert_eq!(device.statistics().graph_launches, 400);

    // A step that is given a number and gives one back.
    let (input, output) = (x.slice(1..2).unwrap(), z.slice(1..2).unwrap());
    for step in 0..20u16 {
        let before = ALLOCATIONS.get();
        let mut result = [0.0];
        stream.memcpy_htod(&[f32::from(step)], &input).unwrap();
        stream.memset_zeros(&y).unwrap();
        graph.launch(&stream).unwrap();
        stream.memcpy_dtoh(&output, &mut result).unwrap();
        let allocations = ALLOCATIONS.get() - before;
        assert_eq!(result, [2.0 * f32::from(step)]);
        // The first ones grow what is kept for those that come. A virtual GPU has the bytes of a copy from or to the host,
        // and the copy itself, on the heap.
        let max = if device.properties().driver.is_none() { 6 } else { 0 };
        assert!(step < 4 || allocations <= max, "step {step}: {allocations} allocations");
    }
}
