//! How fast the device moves memory: the measure of everything that memory bounds.

use super::Item;
use crate::event::Finding;
use crate::measure::{Bench, Failure, Size, in_turn, numbers};
use warpwright_kernels::CopyBytes;
use warpwright_kernels::tune::Launch;
use warpwright_ptx::ir::Type;

/// The figure that shares of bandwidth refer to.
pub(crate) const COPY: &str = "copy by the driver";

pub(super) fn items(size: Size) -> Vec<Item> {
    let bytes: u64 = size.pick(64 << 10, 512 << 20, 2 << 30);
    let kernel = move |bench: &Bench<'_>, found: &mut dyn FnMut(Finding)| {
        let launches = bench.prepare(&Launch::new(CopyBytes::new(bytes), &[]), 1, true)?;
        let samples = bench.replayed(1, |stream| Ok(in_turn(stream, &launches, 1)?))?;
        found(Finding::Figure(samples.figure("copy by a kernel", Some(2 * bytes), None)));
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
        found(Finding::Figure(samples.figure(COPY, Some(2 * bytes), None)));
        Ok(())
    };
    let fill = move |bench: &Bench<'_>, found: &mut dyn FnMut(Finding)| {
        let (x, _) = buffers(bench)?;
        let samples = bench.replayed(1, |stream| Ok(stream.memset_any(&x, 7)?))?;
        found(Finding::Figure(samples.figure("fill by the driver", Some(bytes), None)));
        Ok(())
    };
    vec![
        Item::measure(COPY, size, copy),
        Item::measure("copy by a kernel", size, kernel),
        Item::measure("fill by the driver", size, fill),
    ]
}
