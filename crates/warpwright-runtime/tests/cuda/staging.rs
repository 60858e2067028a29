//! Copies from and to memory of the host's that is not pinned.

use crate::*;

/// Elements of about a piece of pinned memory, and of many.
const PIECE: usize = (1 << 20) / 4;

#[test]
fn a_slice_is_free_when_its_upload_returns() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let lens = [1, 5, 1000, PIECE - 1, 17, PIECE, PIECE + 1, 3, 3 * PIECE + 7, 300, 1];
    let buffers: Vec<_> = lens.iter().map(|&len| stream.alloc::<u32>(len).unwrap()).collect();
    let mut slice = vec![0u32; 4 * PIECE];
    // While the device does something else, nothing is copied, and the host goes on.
    let hold = gpu.hold(&stream, &x, 1);
    for (seed, (&len, buffer)) in lens.iter().zip(&buffers).enumerate() {
        slice[..len].copy_from_slice(&numbers(seed as u32, len));
        stream.memcpy_htod(&slice[..len], buffer).unwrap();
        slice.fill(u32::MAX);
    }
    assert!(!stream.is_idle());
    hold.release();
    for (seed, (&len, buffer)) in lens.iter().zip(&buffers).enumerate() {
        assert!(stream.clone_dtoh(buffer).unwrap() == numbers(seed as u32, len), "upload {seed} of {len}");
    }
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
}

/// An upload that waits for the device keeps nobody from asking how far the stream is: they may be who lets it go on.
#[test]
fn an_upload_that_waits_keeps_nobody_from_asking() {
    let gpu = Gpu::open();
    let (stream, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = stream.clone_htod(&[1u32]).unwrap();
    let data = numbers(1, 40 * PIECE);
    let y = stream.alloc::<u32>(data.len()).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    let (answered, answers) = std::sync::mpsc::channel();
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let (gpu, stream, data, y) = (&gpu, &stream, &data, &y);
        // More than may be under way: it returns when the device has gone on.
        scope.spawn(|| stream.memcpy_htod(data, y).unwrap());
        scope.spawn(move || {
            for _ in 0..100 {
                let idle = stream.is_idle();
                // The pool asks whether what the stream was asked for last still uses a block.
                drop(other.alloc::<u32>(64).unwrap());
                // Streams that go ask after others that are gone.
                drop(gpu.device.new_stream().unwrap());
                answered.send(idle).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // Who does not answer is let go on too, so that the test ends.
        all.extend(std::iter::from_fn(|| answers.recv_timeout(Duration::from_secs(20)).ok()));
        hold.release();
    });
    assert_eq!(all, [false; 100]);
    assert!(stream.clone_dtoh(&y).unwrap() == data);
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
}

#[test]
fn copies_of_every_length_come_back() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    for (seed, len) in [0, 1, 2, 255, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, 5 * PIECE + 3, 20 * PIECE]
        .into_iter()
        .enumerate()
    {
        let data = numbers(seed as u32, len);
        let buffer = stream.clone_htod(&data).unwrap();
        assert!(stream.clone_dtoh(&buffer).unwrap() == data, "{len} elements");
    }
    // Bytes too, at odd places.
    let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
    let buffer = stream.clone_htod(&bytes).unwrap();
    let part = buffer.slice(777_777..2_888_888).unwrap();
    assert!(stream.clone_dtoh(&part).unwrap() == bytes[777_777..2_888_888]);
}

/// A copy of nothing waits as any other does: who says that it has passed takes what is before it for done.
#[test]
fn a_copy_of_nothing_to_the_host_comes_behind_the_rest() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let nothing = stream.alloc::<u32>(0).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    let (copied, copies) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (stream, nothing) = (&stream, &nothing);
        scope.spawn(move || copied.send(stream.memcpy_dtoh(nothing, &mut [])).unwrap());
        let early = copies.recv_timeout(Duration::from_millis(100));
        let idle = stream.is_idle();
        hold.release();
        assert!(early.is_err() && !idle);
        copies.recv().unwrap().unwrap();
    });
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
}

#[test]
fn threads_copy_at_the_same_time() {
    let gpu = Gpu::open();
    let shared = gpu.device.new_stream().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (gpu, shared) = (&gpu, &shared);
            scope.spawn(move || {
                let own = gpu.device.new_stream().unwrap();
                for round in 0..12u32 {
                    let stream = if round % 3 == 0 { shared } else { &own };
                    let len = [7, 9_001, PIECE + 13, 2 * PIECE][(round + thread) as usize % 4];
                    let data = numbers(100 * thread + round, len);
                    let buffer = stream.clone_htod(&data).unwrap();
                    assert!(stream.clone_dtoh(&buffer).unwrap() == data, "thread {thread}, round {round}");
                }
            });
        }
    });
}

#[test]
fn a_stream_that_goes_leaves_its_copies() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let buffers: Vec<_> = (0..8).map(|_| stream.alloc::<u32>(50_000).unwrap()).collect();
    stream.synchronize().unwrap();
    let events: Vec<_> = (buffers.iter().enumerate())
        .map(|(seed, buffer)| {
            let passing = gpu.device.new_stream().unwrap();
            passing.memcpy_htod(&numbers(seed as u32, 50_000), buffer).unwrap();
            passing.record_event().unwrap()
        })
        .collect();
    for (seed, (buffer, event)) in buffers.iter().zip(&events).enumerate() {
        stream.wait_event(event).unwrap();
        assert!(stream.clone_dtoh(buffer).unwrap() == numbers(seed as u32, 50_000), "upload {seed}");
    }
}
