//! How fast the device moves memory: the measure of everything that memory bounds.

use super::Item;
use crate::event::Finding;
use crate::measure::{Bench, Failure, Size, in_turn, numbers};
use warpwright_kernels::CopyBytes;
use warpwright_kernels::tune::Launch;
use warpwright_ptx::ir::Type;

/// The figures of copies: shares of bandwidth refer to the faster. A copy of the driver in a graph may be slower than one
/// by a kernel.
pub(crate) const COPIES: [&str; 2] = ["copy by the driver", "copy by a kernel"];

pub(super) fn items(size: Size) -> Vec<Item> {
    let bytes: u64 = size.pick(64 << 10, 512 << 20, 2 << 30);
    let kernel = move |bench: &Bench<'_>, found: &mut dyn FnMut(Finding)| {
        let launches = bench.prepare(&Launch::new(CopyBytes::new(bytes), &[]), 1, true)?;
        let samples = bench.replayed(1, |stream| Ok(in_turn(stream, &launches, 1)?))?;
        found(Finding::Figure(samples.figure(COPIES[1], Some(2 * bytes), None)));
        Ok(())
    };
    let buffers = move |bench: &Bench<'_>| -> Result<_, Failure> {
        let x = numbers(&bench.stream, Type::U32, bytes / 4, 1)?;
        let y = numbers(&bench.stream, Type::U32, bytes / 4, 2)?;
        Ok((x, y))
    };
    let copy = move |bench: &Bench<'_>, found: &mut dyn FnMut(Finding)| {
        let (x, y) = buffers(bench)?;
        let samples = bench.replayed(1, |stream| Ok(stream.memcpy_dtod_any(&x, &y)?))?;
        found(Finding::Figure(samples.figure(COPIES[0], Some(2 * bytes), None)));
        Ok(())
    };
    let fill = move |bench: &Bench<'_>, found: &mut dyn FnMut(Finding)| {
        let (x, _) = buffers(bench)?;
        let samples = bench.replayed(1, |stream| Ok(stream.memset_any(&x, 7)?))?;
        found(Finding::Figure(samples.figure("fill by the driver", Some(bytes), None)));
        Ok(())
    };
    vec![
        Item::measure(COPIES[0], size, copy),
        Item::measure(COPIES[1], size, kernel),
        Item::measure("fill by the driver", size, fill),
    ]
}
