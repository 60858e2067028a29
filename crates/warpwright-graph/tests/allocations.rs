//! A captured plan is replayed without allocating, on the host or on the device.
//!
//! The only test of its program: the allocator counts for each thread by itself, but nothing else is to run beside
//! it.

mod common;

use common::run::{begin, device, store};
use common::{Choice, ModelConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use warpwright_graph::{KernelLibrary, Plan, PlanOptions};

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // Threads that end may allocate when the counter is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all is the system's allocator's work; counting touches no memory that is allocated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn replays_allocate_nothing() {
    let device = device(false);
    let config = ModelConfig::small();
    let options = PlanOptions::for_device(&device);
    let graph = config.decode(1, Choice::ArgMax);
    let mut store = store(&device, &graph, 1);
    begin(&mut store, &[3], &[0]);
    let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");
    let mut executable = plan.bind(&mut store).expect("bound");
    assert!(allocations(|| drop(vec![0u8; 100])) == 1, "the allocator counts");

    // Launch by launch, once the queue has room for a step that nothing of is executed meanwhile: it has for
    // several that are issued one behind the other, which is much faster than they are executed.
    for _ in 0..16 {
        executable.issue(&KernelLibrary).expect("issued");
    }
    store.stream().synchronize().expect("done");
    let pool = device.pool_statistics();
    let eager = allocations(|| {
        executable.issue(&KernelLibrary).expect("issued");
        store.stream().synchronize().expect("done");
    });
    assert_eq!(eager, 0, "an execution allocates");

    // As a graph.
    let captured = executable.capture(&KernelLibrary).expect("captured");
    captured.replay().expect("replayed");
    store.stream().synchronize().expect("done");
    let mut token = [0u32];
    let replayed = allocations(|| {
        for _ in 0..16 {
            captured.replay().expect("replayed");
        }
        store.stream().synchronize().expect("done");
    });
    assert_eq!(replayed, 0, "a replay allocates");
    assert_eq!(device.pool_statistics(), pool, "replays allocate on the device");

    // The token of each step, as a program reads it.
    captured.executable().read_output_to("tokens", &mut token).expect("a token");
    let read = allocations(|| {
        captured.replay().expect("replayed");
        captured.executable().read_output_to("tokens", &mut token).expect("a token");
    });
    // The copy and a landing place for it are all.
    assert!(read <= 3, "{read} allocations for a token that is read");
    assert_eq!(store.read_state::<u32>("positions").expect("positions"), [16 + 1 + 1 + 16 + 1]);
}
