//! The place of each key among sorted numbers.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::LaunchArg;

/// Each thread finds the first of `n` sorted numbers that is not less than its key; `n` where all are.
fn lower_bound(k: K<'_>) {
    let (xs, keys, places) = (k.ptr::<u32>("xs"), k.ptr::<u32>("keys"), k.ptr_mut::<u32>("places"));
    let (n, queries) = (k.scalar::<u32>("n"), k.scalar::<u32>("queries"));
    let i = k.global_tid();
    k.when(i.lt(queries), || {
        let key = keys.ld(i);
        let place = k.loop_((k.u32(0), n), |out, (low, high)| {
            out.break_if(low.eq(high), low);
            let middle = (low + high) >> 1;
            xs.ld(middle).lt(key).choose((middle + 1, high), (low, middle))
        });
        places.st(i, place);
    });
}

/// The same, which stops where it has found the key: its place, or `n` where it is not there.
fn find(k: K<'_>) {
    let (xs, keys, places) = (k.ptr::<u32>("xs"), k.ptr::<u32>("keys"), k.ptr_mut::<u32>("places"));
    let (n, queries) = (k.scalar::<u32>("n"), k.scalar::<u32>("queries"));
    let i = k.global_tid();
    k.when(i.lt(queries), || {
        let key = keys.ld(i);
        let place = k.loop_((k.u32(0), n), |out, (low, high)| {
            out.break_if(low.eq(high), n);
            let middle = (low + high) >> 1;
            let x = xs.ld(middle);
            out.break_if(x.eq(key), middle);
            x.lt(key).choose((middle + 1, high), (low, middle))
        });
        places.st(i, place);
    });
}

/// Even numbers are searched for odd and even ones, from below the first to above the last.
fn searched(body: fn(K<'_>), n: usize, queries: usize, exact: impl Fn(u32, &[u32]) -> usize) -> Day<'static> {
    let xs: Vec<u32> = (1..=n as u32).map(|i| 2 * i).collect();
    let keys: Vec<u32> = (0..queries as u32).map(|i| i * 7 % (2 * n as u32 + 4)).collect();
    let exact = keys.iter().map(|&key| exact(key, &xs) as f64).collect();
    let leak = |list: &[u32]| &*list.iter().map(|&x| x.into()).collect::<Vec<f64>>().leak();
    Day {
        body,
        shape: (queries.div_ceil(64) as u32, 64),
        given: vec![
            LaunchArg::Input(Type::U32, leak(&xs)),
            LaunchArg::Input(Type::U32, leak(&keys)),
            LaunchArg::Output(Type::U32, queries),
            LaunchArg::Scalar(n as u32),
            LaunchArg::Scalar(queries as u32),
        ],
        exact: vec![(exact, 0.0)],
        ..Day::default()
    }
}

pub(crate) fn day(n: usize, queries: usize) -> Day<'static> {
    searched(lower_bound, n, queries, |key, xs| xs.partition_point(|&x| x < key))
}

pub(crate) fn stopping(n: usize, queries: usize) -> Day<'static> {
    searched(find, n, queries, |key, xs| xs.binary_search(&key).unwrap_or(xs.len()))
}

#[test]
fn keys_are_placed() {
    for (n, queries) in [(1, 5), (2, 64), (33, 70), (1000, 333)] {
        day(n, queries).assert_right();
    }
}

#[test]
fn keys_are_found() {
    for (n, queries) in [(1, 5), (2, 64), (33, 70), (1000, 333)] {
        stopping(n, queries).assert_right();
    }
}
