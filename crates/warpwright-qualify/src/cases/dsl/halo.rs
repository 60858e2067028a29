//! Tiles that begin before their matrix and end behind it: a stencil over tiles with a rim.

use super::{TARGETS, run_body};
use crate::common::{LaunchArg, wholes};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Rows and columns of what a block computes, and rows of its rim.
const SIDE: u32 = 16;
const RIM: u32 = 1;

/// How the tile comes to shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Through registers, at a barrier.
    Plain,
    /// By the stages of a pipeline, along the columns.
    Pipeline,
    /// From a register with a sign, whose sum nothing takes apart.
    Signed,
}

/// The sums of all elements and their eight neighbours, with zeros around the matrix. Tiles begin `left` columns before
/// what is computed from them.
fn stencil<T: Float>(k: K<'_>, [rows, columns]: [u32; 2], left: u32, load: Load) {
    let (x, y) = (k.ptr::<T>("x").matrix(rows, columns), k.ptr_mut::<f32>("y").matrix(rows, columns));
    let (r, c) = (k.tid() / SIDE, k.tid() % SIDE);
    let row = k.ctaid() * SIDE;
    let first_row = match load {
        Load::Signed => (row.to::<i32>() - RIM as i32).max(-7).to::<u32>(),
        _ => row - RIM,
    };
    let (height, width) = (SIDE + 2 * RIM, SIDE + 2 * left);
    if load == Load::Pipeline {
        let pipeline = k.pipeline(2);
        let tiles = pipeline.tile::<T>(height, width);
        pipeline.run(
            columns.div_ceil(SIDE),
            (),
            |stage, tile| tiles.at(stage).load(x, first_row, tile * SIDE - left),
            |stage, tile, ()| {
                let mut sum = k.f32(0.0);
                for (down, across) in (0..3).flat_map(|down| (0..3).map(move |across| (down, across))) {
                    sum = sum + tiles.at(stage).ld(r + down, c + left - 1 + across).f32();
                }
                y.st(row + r, tile * SIDE + c, [sum]);
            },
        );
        return;
    }
    let tile = k.shared_tile::<T>(height, width);
    k.each(k.range(0..columns.div_ceil(SIDE)), |i| {
        k.sync();
        tile.load(x, first_row, i * SIDE - left);
        k.sync();
        let mut sum = k.f32(0.0);
        for (down, across) in (0..3).flat_map(|down| (0..3).map(move |across| (down, across))) {
            sum = sum + tile.ld(r + down, c + left - 1 + across).f32();
        }
        y.st(row + r, i * SIDE + c, [sum]);
    });
}

/// The same by its definition.
fn exact(x: &[f64], [rows, columns]: [u32; 2]) -> Vec<f64> {
    let at = |row: i64, column: i64| {
        let inside = (0..i64::from(rows)).contains(&row) && (0..i64::from(columns)).contains(&column);
        if inside { x[(row * i64::from(columns) + column) as usize] } else { 0.0 }
    };
    let around = |row: i64, column: i64| {
        (-1..=1).flat_map(|down| (-1..=1).map(move |across| at(row + down, column + across))).sum()
    };
    (0..rows.into()).flat_map(|row| (0..columns.into()).map(move |column| around(row, column))).collect()
}

fn check<T: Float>(sm: u16, shape: [u32; 2], left: u32, load: Load) {
    let count = (shape[0] * shape[1]) as usize;
    let x = wholes(count, 3);
    let given = [LaunchArg::Input(T::TYPE, &x), LaunchArg::Output(Type::F32, count)];
    let blocks = shape[0].div_ceil(SIDE);
    let (outputs, _) = run_body(sm, (blocks, SIDE * SIDE), &given, |k| stencil::<T>(k, shape, left, load));
    assert_eq!(outputs[0], exact(&x, shape), "{} {shape:?} from {left} before, {load:?}, sm_{sm}", T::TYPE);
}

fn tiles_with_a_rim_are_zero_outside_of_the_matrix() {
    for sm in TARGETS {
        // Rows that copies of 2, 4, 8 and 16 bytes divide, one tile and less, and several.
        for shape in [[1, 1], [17, 45], [33, 50], [16, 36], [5, 40], [31, 64]] {
            for load in [Load::Plain, Load::Pipeline, Load::Signed] {
                check::<F16>(sm, shape, 8, load);
                check::<F16>(sm, shape, 4, load);
                check::<f32>(sm, shape, 4, load);
                check::<f32>(sm, shape, 2, load);
            }
        }
    }
}

crate::case_list! {
    tiles_with_a_rim_are_zero_outside_of_the_matrix,
}
