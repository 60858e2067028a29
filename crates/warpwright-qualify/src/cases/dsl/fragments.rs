//! Fragments straight from global memory and factors that are sums of halves, by their numbers.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, numbers, product, rounded, wholes};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Type};

/// `rows` rows of `width`, of which `there` are in the matrix: what is beyond counts as zero.
fn beyond(rows: &[f64], width: usize, there: usize) -> Vec<f64> {
    rows.iter().enumerate().map(|(i, &x)| if i / width < there { x } else { 0.0 }).collect()
}

fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns).copied()).collect()
}

/// `S = q·Kᵀ` and `Vᵀ·Sᵀ`, exactly, of the rows of K and V that there are.
fn check<T: Direct>(sm: u16, width: u32, keys: u32, there: u32) {
    let what = format!("{} of {width}, {there} of {keys} rows, on sm_{sm}", T::TYPE);
    let [d, n] = [width, keys].map(|side| side as usize);
    let (q, k_rows, v_rows) = (wholes(8 * d, 1), wholes(n * d, 2), wholes(n * d, 3));
    let given = [
        LaunchArg::Input(Type::F32, &q),
        LaunchArg::Input(T::TYPE, &k_rows),
        LaunchArg::Input(T::TYPE, &v_rows),
        LaunchArg::Output(Type::F32, 8 * n),
        LaunchArg::Output(Type::F32, 8 * d),
    ];
    let found = outputs(sm, (1, 32), &given, |k| {
        let q = k.ptr::<f32>("q");
        let [keys_in, values_in] = ["k", "v"].map(|name| k.ptr::<T>(name).matrix(there, width));
        let (s, out) = (k.ptr_mut::<f32>("s"), k.ptr_mut::<f32>("out"));
        let heads = k.rows_for_fragments(8, width, |row, column| {
            let at = |i: u32| q.ld_if(column.lt(width), row * width + column + i, 0.0);
            (0..8).map(at).collect()
        });
        let q = heads.as_terms::<T::Factor>(1).stacked_a();
        let loaded = keys_in.fragments::<B>(0, keys, None, None);
        // The same again: what was loaded stays.
        let loaded = keys_in.fragments(k.tid() + 100, keys, Some(k.tid().ge(100)), Some(loaded));
        let zero = k.accumulators(16, keys);
        let scores = (0..loaded.runs())
            .fold(zero, |sums, run| q.k_steps(run * 32, 32).mma(loaded.run(k, run).operand(k), sums));
        let whole = q.mma(loaded.operand(k), zero);
        let scores = (scores + whole).row_block(0, 8) * 0.5;
        scores.store(s.matrix(8, keys), 0, 0);
        let values = values_in.fragments::<A>(0, keys, None, None).operand(k);
        let weights = scores.as_terms::<T::Factor>(3).as_bt();
        let zero = k.accumulators(values.rows(), 8);
        let sums = weights.into_iter().fold(zero, |sums, weights| values.mma(weights, sums));
        sums.reduce_scatter::<T>(3, |element, column, pair| {
            k.when(element.lt(width), || out.st_vec(column * width + element, pair));
        });
    });
    let (keys, values) = (beyond(&k_rows, d, there as usize), beyond(&v_rows, d, there as usize));
    let scores = product(&q, &transposed(&keys, d), [8, n, d]).0;
    assert_eq!(found[0], scores, "{what}");
    assert_eq!(found[1], product(&scores, &values, [8, d, n]).0, "{what}");
}

fn rows_are_factors_as_they_are_loaded() {
    for sm in TARGETS {
        for (width, keys, there) in [(32, 16, 16), (40, 16, 9), (64, 32, 32), (96, 16, 1), (128, 32, 19)] {
            check::<F16>(sm, width, keys, there);
            if sm >= 80 {
                check::<Bf16>(sm, width, keys, there);
            }
            if width % 32 == 0 {
                check::<i8>(sm, width, keys, there);
            }
        }
    }
}

/// Every byte, and the extremes of scales.
fn bytes_are_exact_as_halves() {
    let bytes: Vec<f64> = (0..256).map(|i| f64::from(i - 128)).collect();
    for sm in TARGETS {
        let given = [LaunchArg::Input(Type::S8, &bytes), LaunchArg::Output(Type::F32, 16 * 16)];
        let found = outputs(sm, (1, 32), &given, |k| {
            let (x, y) = (k.ptr::<i8>("x").matrix(16, 16), k.ptr_mut::<f32>("y"));
            let x = x.fragments::<A>(0, 16, None, None).operand(k);
            let one = k.accumulators(8, 16).map_at(|row, column, _| row.eq(column).select(1.0, 0.0));
            let other = k.accumulators(8, 16).map_at(|row, column, _| (row + 8).eq(column).select(1.0, 0.0));
            for (first, unit) in [(0, one), (8, other)] {
                let [unit] = unit.as_terms(1).as_bt()[..] else { panic!("a term") };
                x.mma(unit, k.accumulators(32, 8)).reduce_scatter::<i8>(1, |element, column, pair| {
                    k.when(element.lt(16), || y.st_vec((column + first) * 16 + element, pair));
                });
            }
        });
        assert_eq!(found[0], bytes, "sm_{sm}");
    }
}

fn rows_of_a_narrow_matrix_stand_beside_columns() {
    for sm in TARGETS {
        for width in [1, 2, 3, 4, 6, 8, 16] {
            let x: Vec<f64> = (0..24 * width).map(f64::from).collect();
            let given =
                [LaunchArg::Input(Type::F16, &x), LaunchArg::Output(Type::F32, (width * 8 * 24) as usize)];
            let found = outputs(sm, (1, 32), &given, |k| {
                let (x, y) = (k.ptr::<F16>("x").matrix(20, width), k.ptr_mut::<f32>("y"));
                let loaded = x.per_column(0, 24, None, None);
                let loaded = x.per_column(k.tid() + 50, 24, Some(k.tid().ge(99)), Some(loaded));
                assert_eq!(loaded.width(), width);
                for j in 0..width {
                    let tile = k.accumulators(8, 24).mul_add(1.0, loaded.column(j));
                    tile.store(y.at(j * 8 * 24).matrix(8, 24), 0, 0);
                }
            });
            for (i, &found) in found[0].iter().enumerate() {
                let (j, row) = (i / (8 * 24), i % 24);
                let expected = if row < 20 { x[row * width as usize + j] } else { 0.0 };
                assert_eq!(found, expected, "{width} on sm_{sm}");
            }
        }
    }
}

/// `a·bᵀ` with a of `f32` in so many terms: as near as they promise, the rows small, large and of both.
fn check_terms<T: Half>(sm: u16, terms: u32, bits: i32) {
    let mut a = rounded(Type::F32, &numbers(16 * 32, 5));
    for (i, a) in a.iter_mut().enumerate() {
        *a *= [1.0, 1e-6, 1e6, if i % 3 == 0 { 1e3 } else { 1e-3 }][i / 32 % 4];
    }
    let a = rounded(Type::F32, &a);
    let b = rounded(T::TYPE, &numbers(8 * 32, 6));
    let given = [
        LaunchArg::Input(Type::F32, &a),
        LaunchArg::Input(T::TYPE, &b),
        LaunchArg::Output(Type::F32, 16 * 8),
    ];
    let found = outputs(sm, (1, 32), &given, |k| {
        let (a, b) = (k.ptr::<f32>("a"), k.ptr::<T>("b"));
        let b_tile = k.shared_tile::<T>(8, 32);
        b_tile.load(b.matrix(8, 32), 0, 0);
        k.sync();
        let a = k.accumulators(16, 32).map_at(|row, column, _| a.ld(row * 32 + column));
        let (a, down) = a.normalized_rows(14);
        let stacked = a.as_terms::<T>(terms).stacked_a();
        assert_eq!(stacked.rows(), 16 * terms);
        let sums = stacked.mma(b_tile.load_bt(), k.accumulators(16 * terms, 8)).fold_rows(16) * down;
        sums.store(k.ptr_mut::<f32>("y").matrix(16, 8), 0, 0);
    });
    for (i, found) in found[0].iter().enumerate() {
        let (row, column) = (&a[i / 8 * 32..][..32], &b[i % 8 * 32..][..32]);
        let pairs = || row.iter().zip(column);
        let exact: f64 = pairs().map(|(a, b)| a * b).sum();
        let magnitude: f64 = pairs().map(|(a, b)| (a * b).abs()).sum();
        let largest = row.iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        let rest = largest * 2f64.powi(-38) * column.iter().map(|b| b.abs()).sum::<f64>();
        let bound = magnitude * (2f64.powi(-bits) + 2f64.powi(-20)) + rest;
        assert!((found - exact).abs() <= bound, "{} in {terms} on sm_{sm}: {found}, {exact}", T::TYPE);
    }
}

fn sums_of_halves_are_nearly_the_numbers() {
    for sm in TARGETS {
        for terms in 1..=3 {
            check_terms::<F16>(sm, terms, 11 * terms as i32);
            if sm >= 80 {
                check_terms::<Bf16>(sm, terms, 8 * terms as i32);
            }
        }
    }
}

/// Eight rows of accumulators are the columns of a right factor; terms of eight rows lie over one another.
fn accumulators_become_factors_where_they_stand() {
    for sm in TARGETS {
        let (a, b) = (wholes(16 * 32, 1), wholes(24 * 32, 2));
        let given = [
            LaunchArg::Input(Type::F32, &a),
            LaunchArg::Input(Type::F32, &b),
            LaunchArg::Output(Type::F32, 16 * 24),
            LaunchArg::Output(Type::F32, 24 * 24),
        ];
        let found = outputs(sm, (1, 32), &given, |k| {
            let (a, b) = (k.ptr::<f32>("a"), k.ptr::<f32>("b"));
            let [a, b] = [(a, 16), (b, 24)].map(|(from, rows)| {
                k.accumulators(rows, 32).map_at(|row, column, _| from.ld(row * 32 + column))
            });
            let [right] = b.as_terms::<F16>(1).as_bt()[..] else { panic!("a term") };
            let sums = a.as_a::<F16>().mma(right, k.accumulators(16, 24));
            sums.store(k.ptr_mut::<f32>("c").matrix(16, 24), 0, 0);
            let square = b.as_terms::<F16>(1).stacked_a();
            assert_eq!(square.rows(), 32);
            let sums = square.mma(right, k.accumulators(32, 24)).row_block(0, 24);
            sums.store(k.ptr_mut::<f32>("d").matrix(24, 24), 0, 0);
        });
        let bt = transposed(&b, 32);
        assert_eq!(found[0], product(&a, &bt, [16, 24, 32]).0, "sm_{sm}");
        assert_eq!(found[1], product(&b, &bt, [24, 24, 32]).0, "sm_{sm}");
    }
}

fn blocks_of_tiles_are_cut_folded_and_laid_over_one_another() {
    let given = [
        LaunchArg::Output(Type::F32, 24 * 16),
        LaunchArg::Output(Type::F32, 8 * 16),
        LaunchArg::Output(Type::F32, 16 * 8),
    ];
    let found = outputs(80, (1, 32), &given, |k| {
        let tile = k.accumulators(24, 16).map_at(|row, column, _| (row * 100 + column).f32());
        let turned = tile.row_block(8, 16).over(tile.row_block(0, 8));
        let columns = tile.row_block(0, 16).row_max().as_columns().map(|value| value * 2.0);
        (turned + columns.max(columns)).store(k.ptr_mut::<f32>("x").matrix(24, 16), 0, 0);
        tile.fold_rows(8).store(k.ptr_mut::<f32>("y").matrix(8, 16), 0, 0);
        tile.row_block(0, 16).fold_columns(8).store(k.ptr_mut::<f32>("z").matrix(16, 8), 0, 0);
    });
    for (i, &found) in found[0].iter().enumerate() {
        let (row, column) = (i / 16, i % 16);
        assert_eq!(found, ((row + 8) % 24 * 100 + column + 2 * (column * 100 + 15)) as f64);
    }
    for (i, &found) in found[1].iter().enumerate() {
        assert_eq!(found, (3 * (i / 16 * 100 + i % 16) + 2400) as f64);
    }
    for (i, &found) in found[2].iter().enumerate() {
        assert_eq!(found, (2 * (i / 8 * 100 + i % 8) + 8) as f64);
    }
}

fn what_does_not_fit_is_a_mistake() {
    let codes = |body: fn(K<'_>)| {
        let built = build("body", &LaunchRule::new(32), Arch::sm(80), body);
        built.expect_err("a mistake").iter().map(|mistake| mistake.code).collect::<Vec<_>>()
    };
    let shape = [Code::VectorShape];
    assert_eq!(codes(|k| _ = k.accumulators(16, 16).row_block(4, 8)), shape);
    assert_eq!(codes(|k| _ = k.accumulators(16, 16).row_block(8, 16)), shape);
    assert_eq!(codes(|k| _ = k.accumulators(16, 16).over(k.accumulators(16, 8))), shape);
    assert_eq!(codes(|k| _ = k.accumulators(24, 16).fold_rows(16)), shape);
    assert_eq!(codes(|k| _ = k.accumulators(24, 16).fold_columns(4)), shape);
    assert_eq!(codes(|k| _ = k.accumulators(16, 16).as_terms::<F16>(5)), shape);
    assert_eq!(codes(|k| _ = k.accumulators(8, 8).mul_add(k.rows(16, 1.0), 1.0)), shape);
    assert_eq!(
        codes(|k| _ = k.ptr::<F16>("x").matrix(k.tid(), k.tid()).fragments::<B>(0, 8, None, None)),
        shape
    );
    assert_eq!(codes(|k| _ = k.ptr::<F16>("x").matrix(8, 32).fragments::<A>(0, 8, None, None)), shape);
    assert_eq!(codes(|k| _ = k.ptr::<F16>("x").matrix(8, 4).per_column(0, 8, None, None).column(4)), shape);
}

crate::case_list! {
    rows_are_factors_as_they_are_loaded,
    bytes_are_exact_as_halves,
    rows_of_a_narrow_matrix_stand_beside_columns,
    sums_of_halves_are_nearly_the_numbers,
    accumulators_become_factors_where_they_stand,
    blocks_of_tiles_are_cut_folded_and_laid_over_one_another,
    what_does_not_fit_is_a_mistake,
}
