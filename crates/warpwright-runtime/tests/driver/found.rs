//! What the virtual driver finds in a program of the runtime, and says by the status at its end.

use crate::{FOUND, Gpu, clean};
use warpwright_runtime::*;

#[test]
fn a_program_that_gives_everything_back_is_clean() {
    if let Some(apart) = clean("found::a_program_that_gives_everything_back_is_clean") {
        return apart.run().passed();
    }
    let gpu = Gpu::new(0);
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32]).unwrap();
    let mapped = gpu.device.alloc_mapped::<u32>(4).unwrap();
    stream.begin_capture().unwrap();
    gpu.launch_on(&stream, "add", &x, &x, 1).unwrap();
    stream.memcpy_dtod(&x, &mapped.buffer().slice(..1).unwrap()).unwrap();
    let graph = stream.end_capture().unwrap().instantiate().unwrap();
    for _ in 0..3 {
        graph.launch(&stream).unwrap();
    }
    let (begin, end) = (stream.record_event().unwrap(), stream.record_event().unwrap());
    end.synchronize().unwrap();
    end.elapsed(&begin).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(mapped.get(0).unwrap(), 4);
}

#[test]
fn memory_that_is_forgotten_is_a_leak() {
    if let Some(apart) = clean("found::memory_that_is_forgotten_is_a_leak") {
        return apart.run().exited(FOUND);
    }
    let gpu = Gpu::new(0);
    std::mem::forget(gpu.stream.clone_htod(&[1u32]).unwrap());
    gpu.device.synchronize().unwrap();
}

#[test]
fn mapped_memory_that_is_forgotten_is_a_leak() {
    if let Some(apart) = clean("found::mapped_memory_that_is_forgotten_is_a_leak") {
        return apart.run().exited(FOUND);
    }
    let gpu = Gpu::new(0);
    std::mem::forget(gpu.device.alloc_mapped::<u32>(1).unwrap());
    gpu.device.synchronize().unwrap();
}

#[test]
fn leaks_are_nothing_where_nobody_asks() {
    if let Some(apart) = clean("found::leaks_are_nothing_where_nobody_asks") {
        return apart.env("WARPWRIGHT_LEAKS", "0").run().passed();
    }
    std::mem::forget(Gpu::new(0).stream.clone_htod(&[1u32]).unwrap());
}

/// Reads what nobody has written, which a CUDA device does without a word.
fn reads_what_was_never_written() {
    let gpu = Gpu::new(1);
    let (x, y) = (gpu.stream.alloc::<u32>(1).unwrap(), gpu.stream.alloc_zeros::<u32>(1).unwrap());
    gpu.launch("move", &x, &y, 0).unwrap();
    gpu.stream.synchronize().unwrap();
}

#[test]
fn findings_are_told_by_the_status() {
    if let Some(apart) = clean("found::findings_are_told_by_the_status") {
        return apart.run().exited(FOUND);
    }
    reads_what_was_never_written();
}

#[test]
fn what_is_not_looked_for_is_not_found() {
    if let Some(apart) = clean("found::what_is_not_looked_for_is_not_found") {
        return apart.env("WARPWRIGHT_CHECK", "memcheck").run().passed();
    }
    reads_what_was_never_written();
}

#[test]
fn traps_are_told_by_the_status() {
    if let Some(apart) = clean("found::traps_are_told_by_the_status") {
        return apart.run().exited(FOUND);
    }
    let gpu = Gpu::new(1);
    let x = gpu.stream.alloc_zeros::<u32>(1).unwrap();
    gpu.launch("fail", &x, &x, 0).unwrap();
    assert!(matches!(gpu.stream.synchronize(), Err(RuntimeError::Failed(_))));
}
