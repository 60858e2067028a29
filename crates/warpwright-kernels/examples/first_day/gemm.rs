//! A product of matrices of any shape, with GELU on the way out.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, numbers, product};

/// Rows and columns of a tile of each matrix.
const TILE: u32 = 16;

/// `C = gelu(A · B)`, row-major, `C` m × n and `A` m × depth, one element of `C` per thread of a tile of 16 × 16.
fn gemm_gelu(k: K<'_>) {
    let (a, b, c) = (k.ptr::<f32>("a"), k.ptr::<f32>("b"), k.ptr_mut::<f32>("c"));
    let [m, n, depth] = ["m", "n", "depth"].map(|name| k.scalar::<u32>(name));
    let [tile_a, tile_b] = [k.shared::<f32>(TILE * TILE), k.shared::<f32>(TILE * TILE)];
    let (x, y) = (k.tid() % TILE, k.tid() / TILE);
    let across = (n + (TILE - 1)) / TILE;
    let (row, column) = (k.ctaid() / across * TILE + y, k.ctaid() % across * TILE + x);

    let sum = k.fold(k.range(k.u32(0)..depth).step(TILE), k.f32(0.0), |at, sum| {
        tile_a.st(k.tid(), a.ld_if(row.lt(m) & (at + x).lt(depth), row * depth + at + x, 0.0));
        tile_b.st(k.tid(), b.ld_if(column.lt(n) & (at + y).lt(depth), (at + y) * n + column, 0.0));
        k.sync();
        let sum = (0..TILE).fold(sum, |sum, i| tile_a.ld(y * TILE + i).mul_add(tile_b.ld(x + i * TILE), sum));
        k.sync();
        sum
    });
    let inner = sum * 0.797_884_6 * (sum * sum).mul_add(0.044_715, 1.0);
    c.st_if(row.lt(m) & column.lt(n), row * n + column, sum * 0.5 * (inner.tanh() + 1.0));
}

pub(crate) fn day(m: usize, n: usize, depth: usize) -> Day<'static> {
    let single = |count, seed| numbers(count, seed).iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    let (a, b) = (single(m * depth, 1), single(depth * n, 2));
    let (sums, _) = product(&a, &b, [m, n, depth]);
    let gelu = |x: f64| 0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh());
    let tiles = m.div_ceil(TILE as usize) * n.div_ceil(TILE as usize);
    Day {
        body: gemm_gelu,
        shape: (tiles as u32, TILE * TILE),
        exact: vec![(sums.into_iter().map(gelu).collect(), 1e-4)],
        given: vec![
            LaunchArg::Input(Type::F32, a.leak()),
            LaunchArg::Input(Type::F32, b.leak()),
            LaunchArg::Output(Type::F32, m * n),
            LaunchArg::Scalar(m as u32),
            LaunchArg::Scalar(n as u32),
            LaunchArg::Scalar(depth as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn ragged_products_are_right() {
    for (m, n, depth) in [(1, 1, 1), (17, 33, 40), (31, 16, 7)] {
        day(m, n, depth).assert_right();
    }
}
