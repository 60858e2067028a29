//! Handles that go while the device is at work.

use crate::*;

#[test]
fn a_stream_may_go_before_its_work() {
    let gpu = Gpu::plain();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    gpu.launch(&stream, "add", &x, &x, 10);
    let done = stream.record_event().unwrap();
    drop(stream);
    hold.release();
    done.synchronize().unwrap();
    assert_eq!(gpu.device.default_stream().clone_dtoh(&x).unwrap(), [12]);
}

#[test]
fn buffers_may_go_before_their_work() {
    let gpu = Gpu::checked();
    let stream = gpu.device.new_stream().unwrap();
    let out = gpu.device.alloc_mapped::<u32>(1).unwrap();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    gpu.launch(&stream, "move", &x, out.buffer(), 0);
    drop(x);
    // Whatever the pool holds: what was issued has its memory.
    gpu.device.trim_pool(0);
    hold.release();
    stream.synchronize().unwrap();
    assert_eq!(out.get(0).unwrap(), 2);
}

#[test]
fn every_handle_keeps_the_device() {
    let Gpu { device, module } = Gpu::plain();
    let stream = device.default_stream();
    drop((device, module));
    let buffer = stream.clone_htod(&[1u32, 2]).unwrap();
    stream.synchronize().unwrap();
    drop(stream);
    assert_eq!(buffer.device().new_stream().unwrap().clone_dtoh(&buffer).unwrap(), [1, 2]);
}
