//! Two streams with a missing wait between them, which some orders expose.
//!
//! ```text
//! cargo run -p warpwright-device --example forgotten_wait
//! ```

use std::error::Error;
use std::sync::Arc;
use warpwright_device::{
    Bytes, Engine, Failure, FailureDomain, Op, Order, Pattern, Signal, Stream, StreamKind,
};
use warpwright_vm::{Device, DeviceConfig};

/// Streams of which nothing is skipped, whatever fails.
struct Careless;

impl FailureDomain for Careless {
    fn id(&self) -> u64 {
        1
    }

    fn skips(&self, _ticket: u64) -> bool {
        false
    }

    fn failed(&self, failure: Failure) {
        eprintln!("{failure}");
    }
}

/// One stream fills `x` with sevens, the other copies it to `y`; `waits` says whether the second waits for the first.
fn copied(order: Order, waits: bool) -> Result<Vec<u8>, Box<dyn Error>> {
    let engine = Engine::start("device", Device::new(DeviceConfig::default())?, order)?;
    let (x, y) = (engine.vm().alloc_zeros::<u8>(4)?, engine.vm().alloc_zeros::<u8>(4)?);
    let domain: Arc<dyn FailureDomain> = Arc::new(Careless);
    let stream = || Stream::new(engine.queue(), domain.clone(), StreamKind::NonBlocking);
    let (first, second) = (stream(), stream());
    let bytes = |buffer: &warpwright_vm::Buffer<u8>| Bytes::new(buffer.span(0, 4));

    // Nothing begins before all is asked for, so that the order has a choice.
    let begin = Signal::new(engine.queue());
    let filled = Signal::new(engine.queue());
    first.submit(Op::Wait(begin.clone()));
    first.submit(Op::Fill {
        target: bytes(&x),
        pattern: Pattern::of16(0x0707),
        width: 4,
        height: 1,
        pitch: 4,
    });
    first.submit(Op::Signal(filled.clone()));
    second.submit(Op::Wait(begin.clone()));
    if waits {
        second.submit(Op::Wait(filled));
    }
    second.submit(Op::Move { target: bytes(&y), source: bytes(&x) });
    stream().submit(Op::Signal(begin));
    second.wait();
    Ok(y.read())
}

fn main() -> Result<(), Box<dyn Error>> {
    for order in [Order::Issue, Order::Reverse, Order::Random(1)] {
        let (right, wrong) = (copied(order, true)?, copied(order, false)?);
        println!("{order}: with the wait {right:?}, without it {wrong:?}");
    }
    Ok(())
}
