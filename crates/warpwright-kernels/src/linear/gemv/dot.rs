//! `Σ scale · Σ q·x`: a lane's weights of each of its rows with the activations of each column.
//!
//! The sum over a part begins with what the stage has kept for it, minus the sum of the activations times what the quant 0
//! is as a factor. So factors may be any linear function of quants.

use super::stage::Stage;
use super::weights::{Layout, RUN, Share};
use crate::weights::Floating;
use std::ops::Range;
use warpwright_dsl::*;

/// A row of the lane's group.
pub(super) struct Row<'k> {
    pub(super) share: Share<'k>,
    /// Its running sums, one for each column.
    pub(super) sums: Vec<Var<'k, f32>>,
}

/// Adds a pass with activations of `f32`. Sums are in units of the step of floats.
pub(super) fn exact<'k>(layout: Layout, stage: Stage<'k>, rows: &[Row<'k>], pass: Range<u32>) {
    let parts = stage.parts(&pass);
    let sums: Vec<Vec<Reg<'k, f32>>> = stage.each_column(|column| stage.kept(column, 0, parts.len()));
    let Floating { step, zero } = layout.floating();
    let first = |row: &Row<'k>, column: usize| match &sums[column][..] {
        [] => vec![row.sums[column].get()],
        sums => sums.iter().map(|&sum| sum * -zero).collect(),
    };
    let over = |column: usize| sums[column].iter().map(|&sum| sum * step).collect();
    let x = |chunk| stage.each_column(|column| stage.floats(column, chunk, &pass));
    let add = |share: &Share<'k>, chunk, x: [Reg<'k, f32>; 4], dot: Reg<'k, f32>| {
        share.floats(chunk).into_iter().zip(x).fold(dot, |dot, (weight, x)| weight.mul_add(x, dot))
    };
    let dots = dots(layout, rows, (&pass, &parts), first, x, add);
    finish(rows, parts, dots, over);
}

/// Adds all with activations of bytes.
pub(super) fn int8<'k>(layout: Layout, stage: Stage<'k>, rows: &[Row<'k>]) {
    let pass = 0..layout.chunks();
    let parts = stage.parts(&pass);
    let count = parts.len();
    let sums: Vec<Vec<Reg<'k, i32>>> = stage.each_column(|column| stage.kept(column, 0, count));
    let zero = |part: usize| -(layout.byte_zero(part as u32) as i32);
    let first = |_: &Row<'k>, column: usize| (0..count).map(|part| sums[column][part] * zero(part)).collect();
    // What brings the codes of all parts to the same height; numbers grow by it, so that they lose nothing.
    let scales: Vec<Vec<Reg<'k, f32>>> = stage.each_column(|column| stage.kept(column, 1, count));
    let scale = |column: usize, part: usize| scales[column][part] * layout.byte_scale(part as u32);
    let over = |column: usize| {
        let sum = |part: usize| sums[column][part].f32() * (scales[column][part] * layout.byte_height());
        (0..count).map(sum).collect()
    };
    let mut runs = Vec::new();
    let x = |chunk| {
        if chunk % RUN == 0 {
            runs = stage.each_column(|column| stage.bytes(column, chunk / RUN));
        }
        runs.iter().map(|words| words[(chunk % RUN) as usize]).collect()
    };
    let add = |share: &Share<'k>, chunk, x: Reg<'k, u32>, dot: Reg<'k, i32>| match share.bytes(chunk) {
        Some(codes) => codes.dp4a(x.bits::<i32>(), dot),
        None => dot,
    };
    let dots = dots(layout, rows, (&pass, &parts), first, x, add);
    let scaled = dots.into_iter().map(|columns| {
        let of_column = |(column, dots): (usize, Vec<Reg<'k, i32>>)| {
            dots.iter().enumerate().map(|(part, dot)| dot.f32() * scale(column, part)).collect()
        };
        columns.into_iter().enumerate().map(of_column).collect()
    });
    finish(rows, parts, scaled.collect(), over);
}

/// By row and column, the sums over the parts of a pass.
type Dots<D> = Vec<Vec<Vec<D>>>;

/// Goes through the chunks of a pass, each of which is read once for all rows and columns.
fn dots<'k, X: Copy, D: Copy>(
    layout: Layout,
    rows: &[Row<'k>],
    (pass, parts): (&Range<u32>, &Range<usize>),
    first: impl Fn(&Row<'k>, usize) -> Vec<D>,
    mut x: impl FnMut(u32) -> Vec<X>,
    add: impl Fn(&Share<'k>, u32, X, D) -> D,
) -> Dots<D> {
    let columns = rows.first().map_or(0, |row| row.sums.len());
    let begin = |row| (0..columns).map(|column| first(row, column)).collect();
    let mut dots: Dots<D> = rows.iter().map(begin).collect();
    for chunk in pass.clone() {
        let x = x(chunk);
        let part = if parts.is_empty() { 0 } else { (chunk / layout.part_chunks()) as usize - parts.start };
        for (row, dots) in rows.iter().zip(&mut dots) {
            for (&x, dots) in x.iter().zip(dots) {
                dots[part] = add(&row.share, chunk, x, dots[part]);
            }
        }
    }
    dots
}

/// Adds what the sums over parts stand for to the running sums: `d · Σ scale · dot - dmin · Σ minimum · over`, with the sums
/// of the activations of a column as `over`.
fn finish<'k>(
    rows: &[Row<'k>],
    parts: Range<usize>,
    dots: Dots<Reg<'k, f32>>,
    over: impl Fn(usize) -> Vec<Reg<'k, f32>>,
) {
    let columns = rows.first().map_or(0, |row| row.sums.len());
    let over: Vec<_> = (0..columns).map(over).collect();
    for (row, dots) in rows.iter().zip(dots) {
        for ((sum, dots), over) in row.sums.iter().zip(dots).zip(&over) {
            let Share::Unit(_, scales) = &row.share else {
                sum.set(dots[0]);
                continue;
            };
            let total = plus(sum.get(), scales.d, &scales.scales[parts.clone()], &dots);
            sum.set(match &scales.minima[..] {
                [] => total,
                minima => {
                    let minima: Vec<_> = minima[parts.clone()].iter().map(|&minimum| -minimum).collect();
                    plus(total, scales.dmin, &minima, over)
                }
            });
        }
    }
}

/// `sum + d · Σ scales · values`.
fn plus<'k>(
    sum: Reg<'k, f32>,
    d: Option<Reg<'k, f32>>,
    scales: &[Reg<'k, f32>],
    values: &[Reg<'k, f32>],
) -> Reg<'k, f32> {
    let mut pairs = scales.iter().zip(values);
    match (d, pairs.next()) {
        (Some(d), Some((&scale, &value))) => {
            let weighted = pairs.fold(scale * value, |sum, (&scale, &value)| scale.mul_add(value, sum));
            d.mul_add(weighted, sum)
        }
        (_, first) => {
            first.into_iter().chain(pairs).fold(sum, |sum, (&scale, &value)| scale.mul_add(value, sum))
        }
    }
}
