//! Every tile operation by its numbers, on the virtual GPU with every check on: fragments, swizzles and
//! pipelines for each type and target, and an attention made of them.

use super::{TARGETS, run_body};
use crate::common::{LaunchArg, assert_no_conflicts, numbers, product, rounded, wholes};
use std::f64::consts::LOG2_E;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns).copied()).collect()
}

/// `A·B` and `A·Bᵀ` by one warp, exactly: the factors are small whole numbers.
fn check_products<T: Factor>(sm: u16, [m, n, depth]: [u32; 3]) {
    let size = [m, n, depth].map(|side| side as usize);
    let (a, b) = (wholes(size[0] * size[2], 1), wholes(size[2] * size[1], 2));
    let (exact, _) = product(&a, &b, size);
    for turned in [false, true] {
        let b_given = if turned { transposed(&b, size[1]) } else { b.clone() };
        let given = [
            LaunchArg::Input(T::TYPE, &a),
            LaunchArg::Input(T::TYPE, &b_given),
            LaunchArg::Output(Type::F32, size[0] * size[1]),
        ];
        let (outputs, report) = run_body(sm, (1, 32), &given, |k| {
            let (a, b, c) = (k.ptr::<T>("a"), k.ptr::<T>("b"), k.ptr_mut::<f32>("c"));
            let a_tile = k.shared_tile::<T>(m, depth);
            a_tile.load(a.matrix(m, depth), 0, 0);
            let (rows, columns) = if turned { (n, depth) } else { (depth, n) };
            let b_tile = k.shared_tile::<T>(rows, columns);
            b_tile.load(b.matrix(rows, columns), 0, 0);
            k.sync();
            let b = if turned { b_tile.load_bt() } else { b_tile.load_b() };
            a_tile.load_a().mma(b, k.accumulators(m, n)).store(c.matrix(m, n), 0, 0);
        });
        let what = format!("{} {m}x{n}x{depth} on sm_{sm}, transposed: {turned}", T::TYPE);
        assert_eq!(outputs[0], exact, "{what}");
        assert_no_conflicts(&report, &what);
    }
}

fn products_are_exact_and_free_of_bank_conflicts() {
    for sm in TARGETS {
        for shape in [[16, 8, 16], [16, 16, 32], [32, 24, 48], [48, 40, 64], [16, 64, 80], [64, 32, 16]] {
            check_products::<F16>(sm, shape);
            if sm >= 80 {
                check_products::<Bf16>(sm, shape);
                check_products::<f32>(sm, shape);
            }
        }
    }
}

fn elements_know_their_row_and_column() {
    let given = [LaunchArg::Output(Type::F32, 32 * 24)];
    let (outputs, _) = run_body(80, (1, 32), &given, |k| {
        let tile = k.accumulators(32, 24).map_at(|row, column, _| (row * 100 + column).f32());
        tile.store(k.ptr_mut::<f32>("y").matrix(32, 24), 0, 0);
    });
    let expected: Vec<_> =
        (0..32).flat_map(|row| (0..24).map(move |column| f64::from(row * 100 + column))).collect();
    assert_eq!(outputs[0], expected);
}

fn rows_are_reduced_and_stand_beside_tiles() {
    let x = wholes(32 * 16, 7);
    let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, 32 * 16)];
    let (outputs, _) = run_body(80, (1, 32), &given, |k| {
        let (x, y) = (k.ptr::<f32>("x").matrix(32, 16), k.ptr_mut::<f32>("y").matrix(32, 16));
        let t = k.accumulators(32, 16).map_at(|row, column, _| x.ld(row, column));
        let scale = (t.row_max() + 8.0).max(k.rows(32, 6.0));
        let t = ((t - t.row_sum()) * scale + t).max(-100.0).zip(t, |a, b| a - b * 2.0);
        t.store(y, 0, 0);
    });
    for (row, (x, y)) in x.chunks_exact(16).zip(outputs[0].chunks_exact(16)).enumerate() {
        let (sum, max) = (x.iter().sum::<f64>(), x.iter().copied().fold(f64::MIN, f64::max));
        let scale = (max + 8.0).max(6.0);
        let expected: Vec<_> = x.iter().map(|x| ((x - sum) * scale + x).max(-100.0) - x * 2.0).collect();
        assert_eq!(y, expected, "row {row}");
    }
}

fn rows_and_columns_have_values_by_their_numbers() {
    for (rows, columns) in [(16, 8), (32, 24), (48, 16)] {
        let given = [LaunchArg::Output(Type::F32, (rows * columns) as usize)];
        let (outputs, _) = run_body(80, (1, 32), &given, |k| {
            let row = k.rows_at(rows, |row| (row * 100).f32());
            let column = k.columns_at(columns, |column| (column * column).f32());
            let tile = (k.accumulators(rows, columns) + 1.0) * row + column;
            tile.store(k.ptr_mut::<f32>("y").matrix(rows, columns), 0, 0);
        });
        let row = |row| (0..columns).map(move |column| f64::from(row * 100 + column * column));
        assert_eq!(outputs[0], (0..rows).flat_map(row).collect::<Vec<_>>(), "{rows}x{columns}");
    }
}

fn stores_stop_at_the_edges_of_the_matrix() {
    for (rows, columns, pitch) in [(1, 1, 1), (5, 7, 9), (16, 15, 16), (17, 16, 20), (40, 40, 40)] {
        let given = [LaunchArg::Output(Type::F16, 40 * 40)];
        let (outputs, _) = run_body(80, (1, 32), &given, |k| {
            let tile = k.accumulators(16, 16).map_at(|row, column, _| (row * 16 + column).f32());
            tile.store(k.ptr_mut::<F16>("y").matrix(rows, columns).pitch(pitch), 0, 0);
        });
        for (i, &y) in outputs[0].iter().enumerate() {
            let (row, column) = (i as u32 / pitch, i as u32 % pitch);
            let stored = row < rows.min(16) && column < columns.min(16);
            let expected = if stored { f64::from(row * 16 + column) } else { f64::NAN };
            assert!(y == expected || y.is_nan() && !stored, "{rows}x{columns}, {row}, {column}: {y}");
        }
    }
}

fn accumulators_become_factors_where_they_stand() {
    for sm in TARGETS {
        let b = wholes(32 * 8, 3);
        let given = [LaunchArg::Input(Type::F16, &b), LaunchArg::Output(Type::F32, 16 * 8)];
        let (outputs, _) = run_body(sm, (1, 32), &given, |k| {
            let (b, c) = (k.ptr::<F16>("b"), k.ptr_mut::<f32>("c"));
            let tile = k.shared_tile::<F16>(32, 8);
            tile.load(b.matrix(32, 8), 0, 0);
            k.sync();
            let a = k.accumulators(16, 32).map_at(|row, column, _| row.f32() - column.f32());
            a.as_a().mma(tile.load_b(), k.accumulators(16, 8)).store(c.matrix(16, 8), 0, 0);
        });
        let a: Vec<_> = (0..16).flat_map(|row| (0..32).map(move |column| f64::from(row - column))).collect();
        assert_eq!(outputs[0], product(&a, &b, [16, 8, 32]).0, "sm_{sm}");
    }
}

/// A shared tile to global memory, element by element.
fn copy_back<'k, T: Data, X: Readable>(
    k: K<'k>,
    tile: SharedTile<'k, T, X>,
    y: Ptr<'k, Global, T>,
    [rows, columns]: [u32; 2],
) {
    k.each(k.strided(rows * columns), |i| y.st(i, tile.ld(i / columns, i % columns)));
}

/// A window of a matrix whose rows are `pitch` apart, copied to shared memory and back, whatever the
/// alignment.
fn check_window<T: Data>(sm: u16, [columns, pitch]: [u32; 2], start: [u32; 2], shape: [u32; 2]) {
    let rows = 13;
    let values: Vec<_> = (0..rows * pitch).map(|i| f64::from(i % 251 + 1)).collect();
    let [height, width] = shape;
    for stages in [0, 2] {
        let given =
            [LaunchArg::Input(T::TYPE, &values), LaunchArg::Output(T::TYPE, (height * width) as usize)];
        let (outputs, _) = run_body(sm, (1, 96), &given, |k| {
            let x = k.ptr::<T>("x").matrix(rows, columns).pitch(pitch);
            let y = k.ptr_mut::<T>("y");
            if stages == 0 {
                let tile = k.shared_tile::<T>(height, width);
                tile.load(x, start[0], start[1]);
                k.sync();
                copy_back(k, tile, y, shape);
            } else {
                let pipeline = k.pipeline(stages);
                let tile = pipeline.tile::<T>(height, width);
                let load = |stage, _| tile.at(stage).load(x, start[0], start[1]);
                pipeline.run(1, (), load, |stage, _, ()| copy_back(k, tile.at(stage), y, shape));
            }
        });
        let expected: Vec<_> = (0..height)
            .flat_map(|row| (0..width).map(move |column| (start[0] + row, start[1] + column)))
            .map(|(row, column)| {
                let inside = row < rows && column < columns;
                if inside { values[(row * pitch + column) as usize] } else { 0.0 }
            })
            .collect();
        assert_eq!(
            outputs[0],
            expected,
            "{} on sm_{sm}: {shape:?} at {start:?} of {rows}x{columns}, {pitch} apart, {stages} stages",
            T::TYPE
        );
    }
}

fn copies_fill_with_zeros_beyond_the_edges() {
    for sm in TARGETS {
        for columns in [1, 6, 7, 8, 20, 32, 63, 64] {
            for pitch in [columns, columns + 1, columns + 8] {
                check_window::<F16>(sm, [columns, pitch], [0, 0], [8, 64]);
                check_window::<F16>(sm, [columns, pitch], [9, 8], [8, 24]);
                check_window::<f32>(sm, [columns, pitch], [4, 4], [16, 12]);
            }
        }
    }
}

fn windows_are_parts_of_their_tiles() {
    let x = wholes(64 * 64, 9);
    let given = [LaunchArg::Input(Type::F16, &x), LaunchArg::Output(Type::F32, 32 * 32)];
    // Four warps, each a quarter of the product of two windows that its number chooses.
    let (outputs, report) = run_body(80, (1, 128), &given, |k| {
        let (x, c) = (k.ptr::<F16>("x").matrix(64, 64), k.ptr_mut::<f32>("c").matrix(32, 32));
        let tile = k.shared_tile::<F16>(64, 64);
        tile.load(x, 0, 0);
        k.sync();
        let (row, column) = (k.warp() / 2 * 16, k.warp() % 2 * 16);
        let a = tile.rows(row + 32, 16).columns(16, 32).load_a();
        let b = tile.rows(8, 32).columns(column + 24, 16).load_b();
        a.mma(b, k.accumulators(16, 16)).store(c, row, column);
    });
    let part = |top: usize, left: usize| {
        let rows = x.chunks_exact(64).skip(top).take(32);
        rows.flat_map(|row| row[left..left + 32].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(outputs[0], product(&part(32, 16), &part(8, 24), [32, 32, 32]).0);
    assert_no_conflicts(&report, "windows");
}

fn pipelines_hand_every_tile_over_once() {
    for sm in TARGETS {
        for stages in 1..=4 {
            for tiles in [0, 1, 2, 3, 7] {
                let x = numbers(tiles * 8 * 32, 5);
                let x = rounded(Type::F32, &x);
                let given = [
                    LaunchArg::Input(Type::F32, if tiles == 0 { &[0.0] } else { &x }),
                    LaunchArg::Output(Type::F32, 256),
                    LaunchArg::Scalar(tiles as u32),
                ];
                let (outputs, _) = run_body(sm, (1, 64), &given, |k| {
                    let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
                    let tiles = k.scalar::<u32>("tiles");
                    let pipeline = k.pipeline(stages);
                    let tile = pipeline.tile::<f32>(8, 32);
                    let (row, column) = (k.tid() >> 3, (k.tid() & 7) * 4);
                    let load = |stage, i| tile.at(stage).load(x.matrix(tiles * 8, 32), i * 8, 0);
                    // Twice, for the stages are free again.
                    let sums = (0..2).fold([k.f32(0.0); 4], |sums, _| {
                        pipeline.run(tiles, sums, load, |stage, i, sums| {
                            let values = tile.at(stage).ld_vec::<4>(row, column);
                            std::array::from_fn(|q| values[q].mul_add((i + 1).f32(), sums[q]))
                        })
                    });
                    y.st_vec(k.tid() * 4, sums);
                });
                for (i, found) in outputs[0].iter().enumerate() {
                    let tile = |t: usize| x[t * 256 + i] * (t + 1) as f64;
                    let exact = 2.0 * (0..tiles).map(tile).sum::<f64>();
                    assert!(
                        (found - exact).abs() < 1e-4,
                        "sm_{sm}, {stages} stages, {tiles} tiles: {found}, {exact}"
                    );
                }
            }
        }
    }
}

/// Tiles of bytes that are decoded on their way into the stages, beside tiles that are copied; two halves are
/// stored as a word.
fn pipelines_are_fed_with_every_tile_once() {
    for sm in TARGETS {
        for stages in 1..=4 {
            for tiles in [0, 1, 2, 3, 7] {
                let count = (tiles * 16 * 16).max(1);
                let (x, w) = (wholes(count, 5), wholes(count, 6));
                let given = [
                    LaunchArg::Input(Type::F16, &x),
                    LaunchArg::Input(Type::F32, &w),
                    LaunchArg::Output(Type::F32, 256),
                    LaunchArg::Scalar(tiles as u32),
                ];
                let (outputs, _) = run_body(sm, (1, 64), &given, |k| {
                    let (x, w) = (k.ptr::<F16>("x"), k.ptr::<f32>("w"));
                    let y = k.ptr_mut::<f32>("y").matrix(16, 16);
                    let tiles = k.scalar::<u32>("tiles");
                    let pipeline = k.pipeline(stages);
                    let (x_tile, w_tile) = (pipeline.tile::<F16>(16, 16), pipeline.tile::<F16>(16, 16));
                    let (row, column) = (k.tid() >> 2, (k.tid() & 3) * 4);
                    let sums = pipeline.run_fed(
                        tiles,
                        k.accumulators(16, 16),
                        |stage, tile| x_tile.at(stage).load(x.matrix(tiles * 16, 16), tile * 16, 0),
                        |tile| {
                            let [a, b, c, d] = w.at(tile * 256).ld_vec(k.tid() * 4);
                            move |stage| {
                                let pairs = [a.pack_f16(b).bits(), c.pack_f16(d).bits()];
                                w_tile.at(stage).st_words(row, column, pairs);
                            }
                        },
                        |stage, _, sums| x_tile.at(stage).load_a().mma(w_tile.at(stage).load_bt(), sums),
                    );
                    k.when(k.warp().eq(0), || sums.store(y, 0, 0));
                });
                let mut exact = vec![0.0; 256];
                for (x, w) in x.chunks_exact(256).zip(w.chunks_exact(256)) {
                    let (part, _) = product(x, &transposed(w, 16), [16, 16, 16]);
                    exact.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                }
                assert_eq!(outputs[0], exact, "sm_{sm}, {stages} stages, {tiles} tiles");
            }
        }
    }
}

/// One head, one warp: 16 queries over `len` keys.
fn attention<T: Half>(k: K<'_>, head_dim: u32, keys: u32) {
    let [q, key, v] = ["q", "k", "v"].map(|name| k.ptr::<T>(name));
    let o = k.ptr_mut::<f32>("o");
    let len = k.scalar::<u32>("len");
    let q_tile = k.shared_tile::<T>(16, head_dim);
    q_tile.load(q.matrix(16, head_dim), 0, 0);
    k.sync();
    let q = q_tile.load_a();
    let scale = LOG2_E as f32 / (head_dim as f32).sqrt();
    let pipeline = k.pipeline(2);
    let (k_tiles, v_tiles) = (pipeline.tile::<T>(keys, head_dim), pipeline.tile::<T>(keys, head_dim));
    let init = (k.accumulators(16, head_dim), k.rows(16, -1e30), k.rows(16, 0.0));
    let (out, _, sum) = pipeline.run(
        (len + (keys - 1)) / keys,
        init,
        |stage, tile| {
            k_tiles.at(stage).load(key.matrix(len, head_dim), tile * keys, 0);
            v_tiles.at(stage).load(v.matrix(len, head_dim), tile * keys, 0);
        },
        |stage, tile, (out, max, sum)| {
            let s = q.mma(k_tiles.at(stage).load_bt(), k.accumulators(16, keys)) * scale;
            let s = s.map_at(|_, column, x| (tile * keys + column).lt(len).select(x, -1e30));
            let new_max = max.max(s.row_max());
            let p = (s - new_max).exp2();
            let fix = (max - new_max).exp2();
            let out = p.as_a().mma(v_tiles.at(stage).load_b(), out * fix);
            (out, new_max, sum * fix + p.row_sum())
        },
    );
    (out / sum).store(o.matrix(16, head_dim), 0, 0);
}

fn attention_is_softmax_of_the_scores_times_the_values() {
    for (sm, head_dim, len) in [(75, 64, 37), (80, 32, 1), (80, 64, 100), (90, 80, 64), (90, 128, 45)] {
        let (dim, n) = (head_dim as usize, len as usize);
        let round = |x: Vec<f64>| rounded(Type::F16, &x);
        let (q, k, v) = (round(numbers(16 * dim, 1)), round(numbers(n * dim, 2)), round(numbers(n * dim, 3)));
        let given = [
            LaunchArg::Input(Type::F16, &q),
            LaunchArg::Input(Type::F16, &k),
            LaunchArg::Input(Type::F16, &v),
            LaunchArg::Output(Type::F32, 16 * dim),
            LaunchArg::Scalar(len),
        ];
        let (outputs, _) = run_body(sm, (1, 32), &given, |k| attention::<F16>(k, head_dim, 32));
        let (scores, _) = product(&q, &transposed(&k, dim), [16, n, dim]);
        for row in 0..16 {
            let scores = &scores[row * n..][..n];
            let weights: Vec<_> = scores.iter().map(|s| (s / (dim as f64).sqrt()).exp()).collect();
            let total: f64 = weights.iter().sum();
            for column in 0..dim {
                let exact = (0..n).map(|j| weights[j] * v[j * dim + column]).sum::<f64>() / total;
                let found = outputs[0][row * dim + column];
                // Weights are rounded to half precision, and what they weigh is below 1.
                assert!((found - exact).abs() < 2f64.powi(-10), "sm_{sm} {head_dim} {len}: {found}, {exact}");
            }
        }
    }
}

crate::case_list! {
    products_are_exact_and_free_of_bank_conflicts,
    elements_know_their_row_and_column,
    rows_are_reduced_and_stand_beside_tiles,
    rows_and_columns_have_values_by_their_numbers,
    stores_stop_at_the_edges_of_the_matrix,
    accumulators_become_factors_where_they_stand,
    copies_fill_with_zeros_beyond_the_edges,
    windows_are_parts_of_their_tiles,
    pipelines_hand_every_tile_over_once,
    pipelines_are_fed_with_every_tile_once,
    attention_is_softmax_of_the_scores_times_the_values,
}
