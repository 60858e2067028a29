//! The end of a tile: sums over lanes and warps, and what the results become before they are stored.

use super::plan::LANES;
use super::tile::{Operands, Product, Shape};
use warpwright_dsl::*;

/// Adds up what the lanes and warps have, and stores the tile's results.
pub(super) fn merge<'k>(
    k: K<'k>,
    product: &Product,
    shape: &Shape<'k>,
    memory: Ptr<'k, Shared, f32>,
    (sums, squares): (&[Vec<Var<'k, f32>>], &[Var<'k, f32>]),
    operands: &Operands<'k>,
) {
    let (batch, rows, lanes) = (product.batch, shape.rows, shape.lanes);
    // Of the first warp; others are further by as much as a warp has.
    let partial = memory.at(product.staged_words());
    let mine = partial.at(lanes.warp * product.warp_words());
    // By matrix, column and row of the group.
    let of_matrix = |rows: &'_ [Vec<Var<'k, f32>>]| -> Vec<_> {
        (0..batch as usize).flat_map(|column| rows.iter().map(move |row| row[column].get())).collect()
    };
    let all: Vec<_> = sums.chunks(rows.group as usize).flat_map(of_matrix).collect();
    k.spread(all.len(), LANES).each_sum(&all, |i, sum, here| {
        mine.st_if(here, lanes.group * rows.group + i / rows.group * rows.tile() + i % rows.group, sum);
    });
    for (column, squares) in (0..).zip(squares) {
        mine.st_if(lanes.lane.eq(0), product.sums() + column, k.warp_sum(squares.get()));
    }
    k.sync();

    let (results, threads) = (rows.tile() * batch, product.warps * 32);
    for from in (0..results).step_by(threads as usize) {
        let i = k.tid() + from;
        k.when((results - from < threads).then(|| i.lt(results)), || {
            one(product, shape, partial, i, operands)
        });
    }
}

/// Stores result `i`: row `i mod rows` of column `i / rows`.
fn one<'k>(
    product: &Product,
    shape: &Shape<'k>,
    partial: Ptr<'k, Shared, f32>,
    i: Reg<'k, u32>,
    operands: &Operands<'k>,
) {
    let (k, batch, tile) = (i.kernel(), product.batch, shape.rows.tile());
    let (column, (row, own)) = (i / tile, shape.rows.stored(i % tile));
    let over_warps = |from: Ptr<'k, Shared, f32>| {
        (1..product.warps).fold(from.ld(0), |sum, warp| sum + from.ld(warp * product.warp_words()))
    };
    let mut factor = k.f32(1.0 / product.unit());
    if let Some([inverse, epsilon]) = shape.mean {
        let mean = over_warps(partial.at(product.sums()).at(column)) * inverse;
        // A column of zeros stays one where epsilon is zero.
        factor = (mean + epsilon).max(f32::MIN_POSITIVE).rsqrt() * factor;
    }
    let result = |matrix: usize| {
        let scale = shape.matrices[matrix].tensor_scale();
        let factor = scale.map_or(factor, |scale| factor * scale);
        let sum = over_warps(partial.at(i + matrix as u32 * batch * tile));
        match operands.bias[matrix] {
            Some(bias) => sum.mul_add(factor, bias.ld_if(own, row, 0.0)),
            None => sum * factor,
        }
    };
    let y = product.gate.map_or_else(|| result(0), |gate| gate.apply(result(0)) * result(1));
    let at = if batch == 1 { row } else { column * shape.rows.n.reg() + row };
    k.when(own, || {
        let y = operands.residual.map_or(y, |residual| y + residual.ld(at));
        operands.y.st(at, y);
    });
}
