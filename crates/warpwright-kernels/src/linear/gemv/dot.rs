//! `Σ scale · Σ q·x`: a lane's weights of each of its rows with the activations of each column.
//!
//! A quant is multiplied as the float `zero + step · q`, or as a byte `zero + q`. So the sum over a part begins with
//! `-zero · Σ x`, and is `step · Σ q·x` in the end.

use super::stage::{SCALES, Stage, TOTALS};
use super::weights::{Layout, MIN_PART, Share};
use crate::weights::Floating;
use std::ops::Range;
use warpwright_dsl::*;

/// The lane's running sums, by row and column.
type Sums<'k> = [Vec<Var<'k, f32>>];
/// By column and part.
type Parts<D> = Vec<Vec<D>>;

/// Adds a pass with activations of `f32`. Sums are in units of the step of floats.
pub(super) fn exact<'k>(stage: Stage<'k>, pass: &Range<u32>, rows: &[Share<'k>], sums: &Sums<'k>) {
    let (layout, parts) = (stage.layout(), stage.layout().parts_of(pass));
    let Floating { step, zero } = layout.floating();
    let totals = stage.columns(|column| stage.kept(column, TOTALS, parts.len()));
    let begin = |row: usize, column: usize| match &totals[column][..] {
        [] => vec![sums[row][column].get()],
        totals => totals.iter().map(|&total| total * -zero).collect(),
    };
    let x = |chunk| stage.columns(|column| stage.floats(column, chunk, pass));
    let weights = |row: usize, chunk| rows[row].floats(chunk);
    let add = |dot, weights: [_; 4], x: [_; 4]| plus(dot, &weights, &x);
    let dots = dot_products(layout, pass, rows.len(), begin, x, weights, add);
    let totals = map(totals, |_, _, total| total * step);
    for (row, dots) in dots.into_iter().enumerate() {
        add_scaled(&rows[row], parts.clone(), dots, &totals, &sums[row]);
    }
}

/// Adds all with activations of bytes. Sums are in units of the height of codes.
pub(super) fn int8<'k>(stage: Stage<'k>, rows: &[Share<'k>], sums: &Sums<'k>) {
    let Some(units) = stage.layout().units else { return };
    let (pass, parts) = (0..stage.layout().chunks, 0..units.parts() as usize);
    let totals = stage.columns(|column| stage.kept(column, TOTALS, parts.len()));
    let totals = map(totals, |_, _, total| total.bits::<i32>());
    let scales = stage.columns(|column| stage.kept(column, SCALES, parts.len()));
    let begin = |_, column: usize| {
        let zeros = (0..).zip(&totals[column]).map(|(part, &total)| total * -(units.zero(part) as i32));
        zeros.collect()
    };
    let mut run = Vec::new();
    let x = |chunk| {
        if chunk % MIN_PART == 0 {
            run = stage.columns(|column| stage.bytes(column, chunk / MIN_PART));
        }
        run.iter().map(|words| words[(chunk % MIN_PART) as usize].bits::<i32>()).collect()
    };
    let weights = |row: usize, chunk| rows[row].bytes(chunk);
    let add = |dot, weights: Reg<'k, u32>, x| weights.dp4a(x, dot);
    let dots = dot_products(stage.layout(), &pass, rows.len(), begin, x, weights, add);
    let totals = map(totals, |column, part, total| total.f32() * (scales[column][part] * units.height()));
    let to_height = map(scales, |_, part, scale| scale * units.to_height(part as u32));
    for (row, dots) in dots.into_iter().enumerate() {
        let dots = map(dots, |column, part, dot| dot.f32() * to_height[column][part]);
        add_scaled(&rows[row], parts.clone(), dots, &totals, &sums[row]);
    }
}

/// `Σ q·x` by row, column and part: `begin`, with `add` of the row's weights and the column's activations of each chunk of
/// the pass. A chunk is read once for all rows and columns.
fn dot_products<W: Copy, X: Copy, D: Copy>(
    layout: Layout,
    pass: &Range<u32>,
    rows: usize,
    begin: impl Fn(usize, usize) -> Vec<D>,
    mut x: impl FnMut(u32) -> Vec<X>,
    weights: impl Fn(usize, u32) -> W,
    add: impl Fn(D, W, X) -> D,
) -> Vec<Parts<D>> {
    let mut dots: Vec<Parts<D>> = Vec::new();
    for chunk in pass.clone() {
        let x = x(chunk);
        if dots.is_empty() {
            dots = (0..rows).map(|row| (0..x.len()).map(|column| begin(row, column)).collect()).collect();
        }
        let part = ((chunk - pass.start) / layout.part_chunks()) as usize;
        for (row, dots) in dots.iter_mut().enumerate() {
            let weights = weights(row, chunk);
            for (dots, &x) in dots.iter_mut().zip(&x) {
                dots[part] = add(dots[part], weights, x);
            }
        }
    }
    dots
}

/// Something of each column and part.
fn map<D, E>(parts: Parts<D>, of: impl Fn(usize, usize, D) -> E) -> Parts<E> {
    let column = |(column, parts): (usize, Vec<D>)| {
        parts.into_iter().enumerate().map(|(part, dot)| of(column, part, dot)).collect()
    };
    parts.into_iter().enumerate().map(column).collect()
}

/// `Σ scale · Σ q·x`: adds `d · Σ scale · dot - dmin · Σ minimum · total` of the parts to the running sums of a row, with
/// the totals of the activations.
fn add_scaled<'k>(
    share: &Share<'k>,
    parts: Range<usize>,
    dots: Parts<Reg<'k, f32>>,
    totals: &Parts<Reg<'k, f32>>,
    sums: &[Var<'k, f32>],
) {
    for ((sum, dots), totals) in sums.iter().zip(dots).zip(totals) {
        let Share::Unit(unit) = share else {
            sum.set(dots[0]);
            continue;
        };
        let scales = &unit.scales;
        let times = |d: Option<Reg<'k, f32>>, sum, values: &[Reg<'k, f32>], by: &[Reg<'k, f32>]| match d {
            Some(d) => d.mul_add(plus(values[0] * by[0], &values[1..], &by[1..]), sum),
            None => plus(sum, values, by),
        };
        sum.set(times(scales.d, sum.get(), &scales.scales[parts.clone()], &dots));
        if !scales.minima.is_empty() {
            let minima: Vec<_> = scales.minima[parts.clone()].iter().map(|&minimum| -minimum).collect();
            sum.set(times(scales.dmin, sum.get(), &minima, totals));
        }
    }
}

/// `sum + Σ a · b`.
fn plus<'k>(sum: Reg<'k, f32>, a: &[Reg<'k, f32>], b: &[Reg<'k, f32>]) -> Reg<'k, f32> {
    a.iter().zip(b).fold(sum, |sum, (&a, &b)| a.mul_add(b, sum))
}
