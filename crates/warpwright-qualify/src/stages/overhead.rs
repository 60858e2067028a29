//! What launches and barriers cost by themselves, and the clock of the multiprocessors.

use super::Item;
use crate::event::Finding;
use crate::measure::probes::{GridBarriers, StoreWord, Ticks, TicksArgs};
use crate::measure::{Bench, Failure, Samples, Size, in_turn};
use std::time::Instant;
use warpwright_kernels::tune::Launch;

/// Launches one after the other, and programmatic dependent ones; below sm_90 both are the same.
const OVERLAP: [(bool, &str); 2] = [(false, ""), (true, ", overlapping")];

pub(super) fn items(size: Size) -> Vec<Item> {
    vec![
        Item::measure("clock", size, clock),
        Item::measure("launch", size, launch),
        Item::measure("node of a graph", size, node),
        Item::measure("grid barrier", size, barrier),
    ]
}

/// Cycles a second, as the device is found.
fn clock(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let kernel =
        bench.device.kernel(&Ticks { nanoseconds: bench.size.pick(10_000, 1_000_000, 10_000_000) })?;
    let ticks = bench.stream.alloc::<u64>(2)?;
    let sample = || {
        kernel.with(TicksArgs { ticks: &ticks }).launch(&bench.stream)?;
        match bench.stream.clone_dtoh(&ticks)?[..] {
            [cycles, nanoseconds] if nanoseconds > 0 => Ok(cycles as f64 * 1e9 / nanoseconds as f64),
            _ => Err::<f64, Failure>("no time has passed".into()),
        }
    };
    let samples = (0..bench.size.pick(1, 5, 9)).map(|_| sample()).collect::<Result<_, _>>()?;
    let figure = Samples(samples).figure("clock of a multiprocessor", None, None);
    found(Finding::Figure(crate::Figure { unit: "Hz".into(), ..figure }));
    Ok(())
}

/// Launches one by one: until the host has issued them, and until the device has done them.
fn launch(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let works = bench.size.pick(10, 500, 1000);
    for (overlap, how) in OVERLAP {
        let launches = bench.prepare(&Launch::new(StoreWord, &[]), 1, overlap)?;
        let mut issued = Vec::new();
        let samples = bench.repeated(works, || {
            let start = Instant::now();
            in_turn(&bench.stream, &launches, works)?;
            issued.push(start.elapsed().as_secs_f64() / works as f64);
            Ok(())
        })?;
        found(Finding::Figure(Samples(issued).figure(format!("launch{how}, time of the host"), None, None)));
        found(Finding::Figure(samples.figure(format!("launch after launch{how}"), None, None)));
    }
    Ok(())
}

fn node(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let works = bench.size.pick(10, 500, 1000);
    for (overlap, how) in OVERLAP {
        let launches = bench.prepare(&Launch::new(StoreWord, &[]), 1, overlap)?;
        let samples = bench.replayed(works, |stream| Ok(in_turn(stream, &launches, works)?))?;
        found(Finding::Figure(samples.figure(format!("node after node of a graph{how}"), None, None)));
    }
    Ok(())
}

/// A barrier of a block for each multiprocessor: the difference between many and none.
fn barrier(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let blocks = bench.size.pick(
        2,
        bench.device.properties().multiprocessors,
        bench.device.properties().multiprocessors,
    );
    let rounds = bench.size.pick(4, 500, 1000);
    let mut times = Vec::new();
    for rounds in [0, rounds] {
        let launches = bench.prepare(&Launch::new(GridBarriers { rounds, blocks }, &[]), 1, false)?;
        let samples = bench.replayed(1, |stream| Ok(in_turn(stream, &launches, 1)?))?;
        times.push(samples.0);
    }
    let [without, with] = &times[..] else { unreachable!("both were measured") };
    let each = with.iter().zip(without).map(|(with, without)| (with - without) / f64::from(rounds));
    found(Finding::Figure(Samples(each.collect()).figure("grid barrier", None, None)));
    Ok(())
}
