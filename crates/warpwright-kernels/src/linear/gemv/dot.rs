//! Dot products: a lane's share of each of its rows with the activations of each column.

use super::activations::Stage;
use super::format::{Layout, Quad, Share};
use super::scales::Scales;
use warpwright_ptx::dsl::*;

/// The running sums of a lane, by row and column, in units of [`unit`].
pub(super) struct Sums<'k> {
    pub(super) of: Vec<Vec<Var<'k, f32>>>,
}

/// What a lane's running sum is multiplied with at the end.
pub(super) fn unit(layout: Layout, exact: bool) -> f32 {
    if exact { 1.0 / layout.exact_step() } else { 1.0 / layout.int8_scale() }
}

/// Activations of the stage, each read once.
struct Cache<'k, const N: usize, T> {
    read: Vec<Vec<Option<[Reg<'k, T>; N]>>>,
}

impl<'k, const N: usize, T> Cache<'k, N, T> {
    fn new(columns: usize, count: u32) -> Self {
        Cache { read: vec![vec![None; count as usize]; columns] }
    }

    fn get(&mut self, column: usize, i: u32, read: impl Fn() -> [Reg<'k, T>; N]) -> [Reg<'k, T>; N] {
        *self.read[column][i as usize].get_or_insert_with(read)
    }
}

/// Adds `Σ scale · Σ weight · x` of the rows to the columns `from ..` of the sums, with activations of `f32`.
pub(super) fn exact<'k>(
    k: K<'k>,
    layout: Layout,
    stage: Stage<'k>,
    rows: &[(Share<'k>, Scales<'k>)],
    sums: &Sums<'k>,
    (from, columns): (u32, u32),
) {
    let at = |column: u32| (from + column) as usize;
    let begin: Vec<_> = (0..columns).map(|column| stage.sums(column)).collect();
    let parts = layout.parts().max(1) as usize;
    // By row, column and part.
    let mut dots: Vec<Vec<Vec<Reg<'k, f32>>>> = (0..rows.len())
        .map(|row| {
            let begin = |column: u32| match &begin[column as usize][..] {
                [] => vec![sums.of[row][at(column)].get()],
                begin => begin[..parts].to_vec(),
            };
            (0..columns).map(begin).collect()
        })
        .collect();
    let mut cache = Cache::<4, f32>::new(columns as usize, layout.chunks());
    for step in 0..layout.steps() {
        for (row, (share, _)) in rows.iter().enumerate() {
            for Quad { chunk, part, factors } in layout.exact(share, step) {
                for column in 0..columns {
                    let x = cache.get(column as usize, chunk, || stage.exact(column, chunk));
                    let dot = &mut dots[row][column as usize][part];
                    *dot = (0..4).fold(*dot, |dot, i| factors[i].mul_add(x[i], dot));
                }
            }
        }
    }
    for (row, (_, scales)) in rows.iter().enumerate() {
        for column in 0..columns {
            let sum = sums.of[row][at(column)];
            let dots = &dots[row][column as usize];
            match scales {
                Scales::None => sum.set(dots[0]),
                Scales::Parts(scales) => {
                    sum.set(scales.iter().zip(dots).fold(sum.get(), |sum, (&d, &dot)| d.mul_add(dot, sum)));
                }
                Scales::Super { d, scales, minima } => {
                    let mut total = d.mul_add(weighted(scales, dots), sum.get());
                    if let Some((dmin, minima)) = minima {
                        let offsets = weighted(minima, &begin[column as usize][parts..]);
                        total = (-*dmin).mul_add(offsets, total);
                    }
                    sum.set(total);
                }
            }
        }
    }
    let _ = k;
}

/// `Σ weights · values`.
fn weighted<'k>(weights: &[Reg<'k, f32>], values: &[Reg<'k, f32>]) -> Reg<'k, f32> {
    let first = weights[0] * values[0];
    weights.iter().zip(values).skip(1).fold(first, |sum, (&weight, &value)| weight.mul_add(value, sum))
}

/// The same with activations of `q8_1`.
pub(super) fn int8<'k>(
    k: K<'k>,
    layout: Layout,
    stage: Stage<'k>,
    rows: &[(Share<'k>, Scales<'k>)],
    sums: &Sums<'k>,
    (from, columns): (u32, u32),
) {
    let scales_of: Vec<_> = (0..columns).map(|column| stage.int8_scales(column)).collect();
    let parts = layout.parts() as usize;
    let mut dots = vec![vec![vec![k.i32(0); parts]; columns as usize]; rows.len()];
    let mut cache = Cache::<4, u32>::new(columns as usize, layout.chunks() / 4);
    for step in 0..layout.steps() {
        for (row, (share, _)) in rows.iter().enumerate() {
            for Quad { chunk, part, factors } in layout.int8(share, step) {
                for column in 0..columns {
                    let words = cache.get(column as usize, chunk / 4, || stage.int8(column, chunk / 4));
                    let x = words[chunk as usize % 4].bits::<i32>();
                    let dot = &mut dots[row][column as usize][part];
                    *dot = if layout.int8_signed() {
                        factors.bits::<i32>().dp4a(x, *dot)
                    } else {
                        factors.dp4a(x, *dot)
                    };
                }
            }
        }
    }
    for (row, (_, scales)) in rows.iter().enumerate() {
        for column in 0..columns {
            let sum = sums.of[row][(from + column) as usize];
            let x = &scales_of[column as usize];
            let dots: Vec<_> = dots[row][column as usize].iter().map(|dot| dot.f32()).collect();
            let scaled: Vec<_> = dots.iter().zip(x).map(|(&dot, [scale, _])| dot * *scale).collect();
            match scales {
                Scales::None => {}
                Scales::Parts(scales) => {
                    let term = |sum, part: usize| {
                        let value = match layout.int8_offset() {
                            Some(offset) => x[part][1].mul_add(-offset, scaled[part]),
                            None => scaled[part],
                        };
                        scales[part].mul_add(value, sum)
                    };
                    sum.set((0..parts).fold(sum.get(), term));
                }
                Scales::Super { d, scales, minima } => {
                    let mut total = d.mul_add(weighted(scales, &scaled), sum.get());
                    if let Some((dmin, minima)) = minima {
                        let offsets = weighted(minima, &[x[0][1], x[1][1]]);
                        total = (-*dmin).mul_add(offsets, total);
                    }
                    sum.set(total);
                }
            }
        }
    }
}
