//! Rows of a paged cache in their order.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, numbers};

/// Rows of a page.
const PAGE: u32 = 8;
/// Numbers of a row, four of which a thread moves.
const WIDTH: u32 = 20;
/// The number of a page that is not there: its rows are zeros.
const ABSENT: u32 = u32::MAX;

/// `y[row] = cache[table[row / PAGE]][row % PAGE]`: a thread moves four numbers of each row of its stride.
fn paged_gather(k: K<'_>) {
    let (cache, table, y) = (k.ptr::<f32>("cache"), k.ptr::<u32>("table"), k.ptr_mut::<f32>("y"));
    let rows = k.scalar::<u32>("rows");
    k.each(k.grid_strided(rows * (WIDTH / 4)), |piece| {
        let (row, column) = (piece / (WIDTH / 4), piece % (WIDTH / 4) * 4);
        let page = table.ld(row / PAGE);
        let from = (page * PAGE + row % PAGE) * WIDTH + column;
        y.st_vec(row * WIDTH + column, cache.ld_vec_if::<4>(page.ne(ABSENT), from, 0.0));
    });
}

pub(crate) fn day(rows: usize) -> Day<'static> {
    let (page, width) = (PAGE as usize, WIDTH as usize);
    let pages = rows.div_ceil(page);
    let cache: Vec<f64> =
        numbers((pages + 3) * page * width, 4).iter().map(|&x| f64::from(x as f32)).collect();
    let table: Vec<u32> =
        (0..pages).map(|i| if i % 4 == 3 { ABSENT } else { (i * 5 % (pages + 3)) as u32 }).collect();
    let exact = (0..rows * width).map(|at| match table[at / width / page] {
        ABSENT => 0.0,
        number => cache[(number as usize * page + at / width % page) * width + at % width],
    });
    Day {
        body: paged_gather,
        shape: (2, 64),
        exact: vec![(exact.collect(), 0.0)],
        given: vec![
            LaunchArg::Input(Type::F32, cache.leak()),
            LaunchArg::Input(Type::U32, table.iter().map(|&page| page.into()).collect::<Vec<f64>>().leak()),
            LaunchArg::Output(Type::F32, rows * width),
            LaunchArg::Scalar(rows as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn pages_are_gathered() {
    for rows in [1, 7, 50, 100] {
        day(rows).assert_right();
    }
}
