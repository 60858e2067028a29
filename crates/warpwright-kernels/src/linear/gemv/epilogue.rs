//! The end of a tile: sums over lanes and warps, and what the results become before they are stored.

use super::plan::{LANES, Lanes, Rows};
use super::tile::{Operands, Product, Scratch, Shape};
use warpwright_dsl::*;

/// Where results go, `columns × n`, and what is added to them.
#[derive(Clone, Copy)]
pub(crate) struct Output<'k> {
    pub(crate) y: Ptr<'k, Global, f32>,
    /// Added to each row of a matrix: `n`.
    pub(crate) bias: [Option<Ptr<'k, Global, f32>>; 2],
    /// Added to the result: `columns × n`.
    pub(crate) residual: Option<Ptr<'k, Global, f32>>,
}

/// Words of shared memory in which the warps leave their sums.
pub(super) fn words(product: &Product) -> u32 {
    let squares = if product.epsilon.is_some() { product.batch } else { 0 };
    product.warps * (warp_words(product) + squares)
}

/// Sums of a warp: by matrix, column and row of the tile.
pub(super) fn warp_words(product: &Product) -> u32 {
    product.tile_rows() * product.batch * product.matrices()
}

/// Adds up what the lanes and warps have, and stores the tile's results.
pub(super) fn finish<'k>(
    k: K<'k>,
    product: &Product,
    (shape, tile, rows, lanes): (&Shape<'k>, Reg<'k, u32>, Rows<'k>, Lanes<'k>),
    scratch: Scratch<'k>,
    (sums, squares): (&[Vec<Var<'k, f32>>], &[Var<'k, f32>]),
    operands: Operands<'k>,
) {
    let batch = product.batch;
    // By matrix, column and row of the group.
    let mine = scratch.partial.at(lanes.warp * warp_words(product)).at(lanes.group * rows.group);
    let matrices = sums.chunks(rows.group as usize);
    let all = matrices.flat_map(|rows| {
        (0..batch as usize).flat_map(|column| rows.iter().map(move |row| row[column].get()))
    });
    let all: Vec<_> = all.collect();
    k.spread(all.len(), LANES).each_sum(&all, |i, sum, here| {
        mine.st_if(here, i / rows.group * rows.tile + i % rows.group, sum);
    });
    for (column, squares) in (0..).zip(squares) {
        let total = k.warp_sum(squares.get());
        scratch.squares.at(column).st_if(lanes.lane.eq(0), lanes.warp * batch, total);
    }
    k.sync();

    let (results, threads) = (rows.tile * batch, product.warps * 32);
    for from in (0..results).step_by(threads as usize) {
        let i = k.tid() + from;
        let store = || one(k, product, (shape, tile, rows), scratch, i, operands);
        if results - from >= threads { store() } else { k.when(i.lt(results), store) }
    }
}

/// Stores result `i`: row `i mod rows` of column `i / rows`.
fn one<'k>(
    k: K<'k>,
    product: &Product,
    (shape, tile, rows): (&Shape<'k>, Reg<'k, u32>, Rows<'k>),
    Scratch { partial, squares, .. }: Scratch<'k>,
    i: Reg<'k, u32>,
    Operands { weights, output, .. }: Operands<'k>,
) {
    let batch = product.batch;
    let (column, row_of_tile) = (i / rows.tile, i % rows.tile);
    let (row, own) = rows.stored(tile, row_of_tile);
    let over_warps = |from: Ptr<'k, Shared, f32>, pitch: u32| {
        (1..product.warps).fold(from.ld(0), |sum, warp| sum + from.ld(warp * pitch))
    };
    let layout = product.layout();
    let mut factor = k.f32(1.0 / if product.exact { layout.floating().step } else { layout.byte_height() });
    if let Some([inverse, epsilon]) = shape.mean {
        let mean = over_warps(squares.at(column), batch) * inverse;
        // A column of zeros stays one where epsilon is zero.
        factor = (mean + epsilon).max(f32::MIN_POSITIVE).rsqrt() * factor;
    }
    let tensor_scale = shape.planes.last().filter(|_| product.format.has_tensor_scale());
    let result = |matrix: u32, weights: Ptr<'k, Global, u8>, bias: Option<Ptr<'k, Global, f32>>| {
        let factor = match tensor_scale.and_then(|plane| plane.offset) {
            Some(offset) => factor * weights.at(offset).cast::<f32>().ld(0),
            None => factor,
        };
        let sum = over_warps(partial.at(i + matrix * batch * rows.tile), warp_words(product));
        match (bias, own) {
            (Some(bias), Some(own)) => sum.mul_add(factor, bias.ld_if(own, row, 0.0)),
            (Some(bias), None) => sum.mul_add(factor, bias.ld(row)),
            (None, _) => sum * factor,
        }
    };
    let mut y = result(0, weights.0, output.bias[0]);
    if let Some(gate) = product.gate {
        y = gate.apply(y) * result(1, weights.1.unwrap_or(weights.0), output.bias[1]);
    }
    let at = if batch == 1 { row } else { column * rows.n.reg() + row };
    let store = || {
        let y = match output.residual {
            Some(residual) => y + residual.ld(at),
            None => y,
        };
        output.y.st(at, y);
    };
    match own {
        Some(own) => k.when(own, store),
        None => store(),
    }
}
