//! A matrix of 8-bit numbers times a vector of them.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, numbers};

const WARPS: u32 = 2;

/// `y = A · x`, rows of `words` words of four signed bytes each; a warp per row.
fn gemv(k: K<'_>) {
    let (a, x, y) = (k.ptr::<i32>("a"), k.ptr::<i32>("x"), k.ptr_mut::<f32>("y"));
    let (rows, words) = (k.scalar::<u32>("rows"), k.scalar::<u32>("words"));
    let row = k.ctaid() * WARPS + k.warp();
    k.when(row.lt(rows), || {
        let a = a.at(row * words);
        let sum = k.fold(k.warp_strided(words), k.i32(0), |i, sum| a.ld(i).dp4a(x.ld(i), sum));
        y.st_if(k.lane().eq(0), row, k.warp_sum(sum).f32());
    });
}

pub(crate) fn day(rows: usize, words: usize) -> Day<'static> {
    let random =
        |count, seed| numbers(count, seed).iter().map(|x| ((x + 1.0) * 2e9) as u32).collect::<Vec<_>>();
    let (a, x) = (random(rows * words, 1), random(words, 2));
    let dot = |a: u32, b: u32| {
        let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        products.map(|(a, b)| i32::from(a as i8) * i32::from(b as i8)).sum::<i32>()
    };
    let exact = a.chunks(words).map(|row| row.iter().zip(&x).map(|(&a, &b)| f64::from(dot(a, b))).sum());
    let words_of = |list: &[u32]| &*list.iter().map(|&word| word.into()).collect::<Vec<f64>>().leak();
    Day {
        body: gemv,
        shape: (rows.div_ceil(WARPS as usize) as u32, WARPS * 32),
        exact: vec![(exact.collect(), 0.0)],
        given: vec![
            LaunchArg::Input(Type::U32, words_of(&a)),
            LaunchArg::Input(Type::U32, words_of(&x)),
            LaunchArg::Output(Type::F32, rows),
            LaunchArg::Scalar(rows as u32),
            LaunchArg::Scalar(words as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn rows_are_multiplied() {
    for (rows, words) in [(1, 1), (3, 33), (8, 100)] {
        day(rows, words).assert_right();
    }
}
