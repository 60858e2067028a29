//! Dot products: a lane's share of each of its rows with the activations of each column.

use super::activations::Stage;
use super::format::{Layout, Share};
use super::scales::Scales;
use std::ops::Range;
use warpwright_dsl::*;

/// What a lane's running sum is multiplied with at the end.
pub(super) fn unit(layout: Layout, exact: bool) -> f32 {
    if exact { 1.0 / layout.exact_step() } else { 1.0 / layout.int8_scale() }
}

/// A row of the lane's group.
pub(super) struct Row<'k> {
    pub(super) share: Share<'k>,
    pub(super) scales: Scales<'k>,
    /// Its running sums, one for each column, in units of [`unit`].
    pub(super) sums: Vec<Var<'k, f32>>,
}

/// Adds `Σ scale · Σ weight · x` over a pass, with activations of `f32`.
pub(super) fn exact<'k>(layout: Layout, stage: Stage<'k>, rows: &[Row<'k>], pass: Range<u32>) {
    let columns = rows.first().map_or(0, |row| row.sums.len() as u32);
    let parts = if layout.parts() == 0 {
        0..0
    } else {
        pass.start / layout.part_chunks()..pass.end / layout.part_chunks()
    };
    let begin: Vec<_> = (0..columns).map(|column| stage.sums(column, parts.len() as u32)).collect();
    // By row, column and part of the pass.
    let mut dots: Vec<Vec<Vec<Reg<'k, f32>>>> = (rows.iter())
        .map(|row| {
            let sums = row.sums.iter().zip(&begin);
            let first = |(sum, begin): (&Var<'k, f32>, &Vec<_>)| match &begin[..] {
                [] => vec![sum.get()],
                begin => begin.iter().map(|(bias, _)| *bias).collect(),
            };
            sums.map(first).collect()
        })
        .collect();
    for chunk in pass.clone() {
        let part = if parts.is_empty() { 0 } else { (chunk / layout.part_chunks() - parts.start) as usize };
        let x: Vec<_> = (0..columns).map(|column| stage.exact(column, chunk, &pass)).collect();
        for (row, dots) in rows.iter().zip(&mut dots) {
            let factors = layout.exact(&row.share, chunk);
            for (x, dots) in x.iter().zip(dots) {
                dots[part] = (0..4).fold(dots[part], |dot, i| factors[i].mul_add(x[i], dot));
            }
        }
    }
    let parts = parts.start as usize..parts.end as usize;
    for (row, dots) in rows.iter().zip(&dots) {
        for ((sum, dots), begin) in row.sums.iter().zip(dots).zip(&begin) {
            sum.set(match &row.scales {
                Scales::None => dots[0],
                Scales::Parts(scales) => scales[parts.clone()]
                    .iter()
                    .zip(dots)
                    .fold(sum.get(), |sum, (&d, &dot)| d.mul_add(dot, sum)),
                Scales::Super { d, scales, minima } => {
                    let total = d.mul_add(weighted(&scales[parts.clone()], dots), sum.get());
                    let over: Vec<_> = begin.iter().filter_map(|(_, sum)| *sum).collect();
                    less_minima(total, minima.as_ref().map(|(dmin, m)| (*dmin, &m[parts.clone()])), &over)
                }
            });
        }
    }
}

/// `Σ weights · values`.
fn weighted<'k>(weights: &[Reg<'k, f32>], values: &[Reg<'k, f32>]) -> Reg<'k, f32> {
    let first = weights[0] * values[0];
    weights.iter().zip(values).skip(1).fold(first, |sum, (&weight, &value)| weight.mul_add(value, sum))
}

/// `total - dmin · Σ minima · sums`, where there are minima.
fn less_minima<'k>(
    total: Reg<'k, f32>,
    minima: Option<(Reg<'k, f32>, &[Reg<'k, f32>])>,
    sums: &[Reg<'k, f32>],
) -> Reg<'k, f32> {
    match minima {
        Some((dmin, minima)) => (-dmin).mul_add(weighted(minima, sums), total),
        None => total,
    }
}

/// The same with activations of `q8_1`, over all chunks.
pub(super) fn int8<'k>(k: K<'k>, layout: Layout, stage: Stage<'k>, rows: &[Row<'k>]) {
    let columns = rows.first().map_or(0, |row| row.sums.len());
    let blocks: Vec<_> = (0..columns as u32).map(|column| stage.int8_scales(column)).collect();
    let parts = layout.parts() as usize;
    let mut dots = vec![vec![vec![k.i32(0); parts]; columns]; rows.len()];
    for four in 0..layout.chunks() / 4 {
        let x: Vec<_> = (0..columns as u32).map(|column| stage.int8(column, four)).collect();
        for chunk in 4 * four..4 * four + 4 {
            let part = (chunk / layout.part_chunks()) as usize;
            for (row, dots) in rows.iter().zip(&mut dots) {
                let Some(quants) = layout.int8(&row.share, chunk) else { continue };
                for (x, dots) in x.iter().zip(dots) {
                    let x = x[chunk as usize % 4].bits::<i32>();
                    dots[part] = if layout.int8_signed() {
                        quants.bits::<i32>().dp4a(x, dots[part])
                    } else {
                        quants.dp4a(x, dots[part])
                    };
                }
            }
        }
    }
    for (row, dots) in rows.iter().zip(&dots) {
        for ((sum, dots), blocks) in row.sums.iter().zip(dots).zip(&blocks) {
            let scaled = dots.iter().zip(blocks).map(|(dot, [scale, sum])| match layout.int8_offset() {
                Some(offset) => dot.f32().mul_add(*scale, *sum * -offset),
                None => dot.f32() * *scale,
            });
            let scaled: Vec<_> = scaled.collect();
            sum.set(match &row.scales {
                Scales::None => sum.get(),
                Scales::Parts(scales) => {
                    scales.iter().zip(&scaled).fold(sum.get(), |sum, (&d, &dot)| d.mul_add(dot, sum))
                }
                Scales::Super { d, scales, minima } => {
                    let total = d.mul_add(weighted(scales, &scaled), sum.get());
                    let over: Vec<_> = blocks.iter().map(|[_, sum]| *sum).collect();
                    less_minima(total, minima.as_ref().map(|(dmin, m)| (*dmin, &m[..])), &over)
                }
            });
        }
    }
}
