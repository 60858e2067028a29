//! Streams and events: what comes before what.

use crate::*;

#[test]
fn a_stream_keeps_its_order() {
    let gpu = Gpu::checked();
    let stream = gpu.device.default_stream();
    let (x, y) = (stream.alloc_zeros::<u32>(1).unwrap(), stream.alloc_zeros::<u32>(1).unwrap());
    let mut expected = Vec::new();
    let mut sums = Vec::new();
    for step in 1..=20 {
        gpu.launch(&stream, "add", &x, &y, step);
        stream.memcpy_dtod(&x, &y).unwrap();
        sums.push(stream.alloc_zeros::<u32>(1).unwrap());
        stream.memcpy_dtod(&y, &sums[expected.len()]).unwrap();
        expected.push(step * (step + 1) / 2);
    }
    let found: Vec<u32> = sums.iter().map(|sum| stream.clone_dtoh(sum).unwrap()[0]).collect();
    assert_eq!(found, expected);
    assert_eq!(gpu.device.statistics().launches, 20);
}

#[test]
fn a_stream_waits_for_the_event_of_another() {
    let gpu = Gpu::plain();
    let (one, two) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = one.clone_htod(&[1u32]).unwrap();
    let out = gpu.device.alloc_mapped::<u32>(1).unwrap();
    let hold = gpu.hold(&one, &x, 6);
    let added = one.record_event().unwrap();
    two.wait_event(&added).unwrap();
    two.memcpy_dtod(&x, out.buffer()).unwrap();
    let copied = two.record_event().unwrap();
    assert!(!added.is_complete() && !copied.is_complete());
    assert!(!one.is_idle() && !two.is_idle());
    assert_eq!(out.get(0).unwrap(), 0);
    hold.release();
    copied.synchronize().unwrap();
    assert_eq!(out.get(0).unwrap(), 7);
    assert!(added.is_complete() && copied.is_complete());
    assert!(one.is_idle() && two.is_idle());
}

#[test]
fn a_device_waits_for_the_event_of_another() {
    let (here, there) = (Gpu::plain(), Gpu::plain());
    let (one, two) = (here.device.default_stream(), there.device.default_stream());
    let (x, y) = (one.alloc_zeros::<u32>(1).unwrap(), two.alloc_zeros::<u32>(1).unwrap());
    let hold = here.hold(&one, &x, 1);
    let first = one.record_event().unwrap();
    two.wait_event(&first).unwrap();
    there.launch(&two, "add", &y, &y, 5);
    let second = two.record_event().unwrap();
    // Long enough for a device that does not wait.
    std::thread::sleep(Duration::from_millis(20));
    assert!(!second.is_complete());
    hold.release();
    second.synchronize().unwrap();
    assert!(first.is_complete(), "the second comes after it");
    // Their clocks have nothing to do with one another.
    assert!(matches!(second.elapsed(&first), Err(RuntimeError::OtherDevice { .. })));
    assert_eq!(two.clone_dtoh(&y).unwrap(), [5]);
}

#[test]
fn time_on_the_device_is_that_between_events() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.alloc_zeros::<u32>(1).unwrap();
    let start = stream.record_event().unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    let end = stream.record_event().unwrap();
    assert!(matches!(end.elapsed(&start), Err(RuntimeError::Incomplete)));
    // The kernel runs for at least that long.
    let held = Duration::from_millis(15);
    std::thread::sleep(held);
    hold.release();
    end.synchronize().unwrap();
    assert!(end.elapsed(&start).unwrap() >= held);
    assert_eq!(start.elapsed(&end).unwrap(), Duration::ZERO);
    assert_eq!(end.elapsed(&end).unwrap(), Duration::ZERO);
}

#[test]
fn the_default_stream_is_one() {
    let gpu = Gpu::plain();
    let x = gpu.device.default_stream().alloc_zeros::<u32>(1).unwrap();
    let hold = gpu.hold(&gpu.device.default_stream(), &x, 3);
    assert!(!gpu.device.default_stream().is_idle());
    assert!(gpu.device.new_stream().unwrap().is_idle(), "one that was asked for nothing");
    hold.release();
    assert_eq!(gpu.device.default_stream().clone_dtoh(&x).unwrap(), [3]);
}

#[test]
fn a_device_waits_for_all_its_streams() {
    let gpu = Gpu::plain();
    let streams: Vec<Stream> = (0..3).map(|_| gpu.device.new_stream().unwrap()).collect();
    let x: Vec<_> = streams.iter().map(|stream| stream.alloc_zeros::<u32>(1).unwrap()).collect();
    let hold = gpu.hold(&streams[0], &x[0], 1);
    for (stream, x) in streams.iter().zip(&x) {
        gpu.launch(stream, "add", x, x, 1);
    }
    hold.release();
    gpu.device.synchronize().unwrap();
    assert!(streams.iter().all(Stream::is_idle));
    gpu.device.synchronize().unwrap();
}

#[test]
fn threads_use_a_device_at_once() {
    let gpu = Gpu::checked();
    let shared = gpu.device.default_stream();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (gpu, shared) = (&gpu, shared.clone());
            scope.spawn(move || {
                let own = gpu.device.new_stream().unwrap();
                let x = own.clone_htod(&[thread]).unwrap();
                for round in 0..20 {
                    gpu.launch(&own, "add", &x, &x, 10);
                    let event = own.record_event().unwrap();
                    shared.wait_event(&event).unwrap();
                    let y = shared.alloc::<u32>(1).unwrap();
                    shared.memcpy_dtod(&x, &y).unwrap();
                    let expected = thread + 10 * (round + 1);
                    assert_eq!(shared.clone_dtoh(&y).unwrap(), [expected]);
                    if round % 7 == 0 {
                        gpu.device.synchronize().unwrap();
                    }
                }
            });
        }
    });
    let pool = gpu.device.pool_statistics();
    assert_eq!((pool.live, pool.live_bytes, pool.allocations), (0, 0, 4 + 80));
    assert_eq!(gpu.device.statistics().launches, 80);
}
