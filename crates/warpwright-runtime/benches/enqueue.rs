//! Host time of enqueueing operations: the cost for the program, whatever the device does.
//!
//! A kernel that waits for the host blocks the device, so that nothing is executed while the clock runs, and the queue
//! is already allocated. Each figure is the best of several rounds of thousands of operations, in nanoseconds for each.
//! The goal for a prepared launch is 1 µs; it takes a lock, an entry in the queue and two reference counts. The last
//! lines measure the whole way: an operation on an idle device and back, and launches that are executed while more are
//! issued.
//!
//! On two cores of a busy virtual machine: 24 ns for a prepared launch (63 on a stream that is not its buffers' own),
//! 0.43 µs for one that is bound and checked each time, 78 ns for a graph of 200 launches, 162 ns for a buffer of the
//! pool, 45 µs to an idle device and back.
//!
//! `cargo bench -p warpwright-runtime --bench enqueue`

mod common;

use common::{Outcome, Touch};
use std::hint::black_box;
use std::time::Instant;
use warpwright_runtime::{Buffer, Device, PreparedLaunch, Stream, VmConfig};

const ROUNDS: usize = 7;
const OPERATIONS: usize = 4000;

struct Bench {
    device: Device,
    stream: Stream,
    buffers: [Buffer<f32>; 4],
    prepared: PreparedLaunch,
}

impl Bench {
    fn new() -> Outcome<Bench> {
        let device = Device::vm(VmConfig::default())?;
        let stream = device.default_stream();
        let new = || stream.alloc_zeros::<f32>(16);
        let buffers = [new()?, new()?, new()?, new()?];
        let [a, b, c, d] = &buffers;
        let kernel = device.kernel(&Touch)?;
        let binder = kernel.bind().buffer("a", a).buffer("b", b).buffer("c", c).buffer("d", d);
        let prepared = binder.scalar("n", 16u32).prepare()?;
        Ok(Bench { device, stream, buffers, prepared })
    }

    /// The time of one operation, with the device held.
    fn held(&self, what: &str, operations: usize, mut operation: impl FnMut() -> Outcome) -> Outcome {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let flag = common::hold(&self.device, &self.stream)?;
            let start = Instant::now();
            for _ in 0..operations {
                operation()?;
            }
            best = best.min(start.elapsed().as_secs_f64() / operations as f64);
            flag.set(0, 1)?;
            self.device.synchronize()?;
        }
        println!("{what:<44} {:>9.0} ns", best * 1e9);
        Ok(())
    }

    /// The time of one round, with the device at work.
    fn at_work(&self, what: &str, operations: usize, mut round: impl FnMut() -> Outcome) -> Outcome {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            self.device.synchronize()?;
            let start = Instant::now();
            round()?;
            best = best.min(start.elapsed().as_secs_f64() / operations as f64);
        }
        self.device.synchronize()?;
        println!("{what:<44} {:>9.0} ns", best * 1e9);
        Ok(())
    }
}

fn main() -> Outcome {
    let bench = Bench::new()?;
    let Bench { device, stream, buffers: [a, b, c, d], prepared } = &bench;
    let kernel = device.kernel(&Touch)?;
    bench.held("launch, prepared, 4 buffers", OPERATIONS, || Ok(stream.launch(prepared)?))?;
    let other = device.new_stream()?;
    bench.held("launch, prepared, on another stream", OPERATIONS, || Ok(other.launch(prepared)?))?;
    bench.held("launch, bound and checked each time", OPERATIONS, || {
        let binder = kernel.bind().buffer("a", a).buffer("b", b).buffer("c", c).buffer("d", d);
        Ok(binder.scalar("n", 16u32).launch(stream)?)
    })?;
    stream.begin_capture()?;
    for _ in 0..200 {
        stream.launch(prepared)?;
    }
    let graph = stream.end_capture()?.instantiate()?;
    bench.held("graph of 200 launches", 20, || Ok(graph.launch(stream)?))?;
    bench.held("copy within the device", OPERATIONS, || Ok(stream.memcpy_dtod(a, d)?))?;
    bench.held("copy of 64 bytes from the host", OPERATIONS, || Ok(stream.memcpy_htod(&[1.0; 16], d)?))?;
    bench.held("memset", OPERATIONS, || Ok(stream.memset_zeros(d)?))?;
    bench.held("event recorded and waited for", OPERATIONS, || {
        Ok(stream.wait_event(black_box(&stream.record_event()?))?)
    })?;
    bench.held("buffer allocated from the pool and dropped", OPERATIONS, || {
        stream.alloc::<f32>(16).map(|buffer| drop(black_box(buffer)))?;
        Ok(())
    })?;
    bench.at_work("memset on an idle device, and back", 1, || {
        stream.memset_zeros(d)?;
        Ok(stream.synchronize()?)
    })?;
    bench.at_work("launch on an idle device, and back", 1, || {
        stream.launch(prepared)?;
        Ok(stream.synchronize()?)
    })?;
    bench.at_work("launch, issued while others are executed", OPERATIONS, || {
        for _ in 0..OPERATIONS {
            stream.launch(prepared)?;
        }
        Ok(())
    })
}
