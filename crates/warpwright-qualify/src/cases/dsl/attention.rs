//! Words of the DSL that attention on the tensor cores is made of, by their numbers, on the virtual GPU with
//! every check on.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, numbers, product, rounded, wholes};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Type};

/// The codes of what a body does wrong.
fn mistakes(body: impl for<'k> Fn(K<'k>)) -> Vec<Code> {
    match build("body", &LaunchRule::new(32), Arch::sm(80), body) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.code).collect(),
    }
}

/// Tiles of numbers, each times its number, added up to the split and subtracted after it.
fn split_sums<'k>(k: K<'k>, stages: u32) {
    let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
    let (split, tiles) = (k.scalar::<u32>("split"), k.scalar::<u32>("tiles"));
    let pipeline = k.pipeline(stages);
    let tile = pipeline.tile::<f32>(8, 32);
    let (row, column) = (k.tid() >> 3, (k.tid() & 7) * 4);
    let x = x.matrix(tiles * 8, 32);
    let load = |fit| move |stage, i| tile.at(stage).load(x.rows_fit(fit), i * 8, 0);
    let add = |sign: f32| {
        move |stage, i: Reg<'k, u32>, sums: [Reg<'k, f32>; 4]| {
            let values = tile.at(stage).ld_vec::<4>(row, column);
            std::array::from_fn(|q| values[q].mul_add((i + 1).f32() * sign, sums[q]))
        }
    };
    let zero = [k.f32(0.0); 4];
    let sums = pipeline.run_split(split, tiles, zero, (load(false), add(1.0)), (load(true), add(-1.0)));
    y.st_vec(k.tid() * 4, sums);
}

fn the_loops_of_a_split_pipeline_share_its_stages() {
    for sm in TARGETS {
        for stages in 1..=3 {
            for (split, tiles) in [(0, 0), (0, 1), (1, 1), (0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (2, 7)] {
                let x = rounded(Type::F32, &numbers((tiles.max(1) * 256) as usize, 5));
                let given = [
                    LaunchArg::Input(Type::F32, &x),
                    LaunchArg::Output(Type::F32, 256),
                    LaunchArg::Scalar(split),
                    LaunchArg::Scalar(tiles),
                ];
                let found = outputs(sm, (1, 64), &given, |k| split_sums(k, stages));
                for (i, found) in found[0].iter().enumerate() {
                    let sign = |t: u32| if t < split { 1.0 } else { -1.0 };
                    let tile = |t: u32| sign(t) * x[t as usize * 256 + i] * f64::from(t + 1);
                    let exact = (0..tiles).map(tile).sum::<f64>();
                    assert!(
                        (found - exact).abs() < 1e-4,
                        "sm_{sm}, {stages} stages, {split} of {tiles} tiles: {found}, {exact}"
                    );
                }
            }
        }
    }
}

fn state_goes_through_a_turn_or_stays() {
    let found = outputs(80, (1, 64), &[LaunchArg::Output(Type::U32, 64 * 3)], |k| {
        let (tid, y) = (k.tid(), k.ptr_mut::<u32>("y"));
        // A swap: neither may be lost, and what the branch does not change stays.
        let (a, b, c) = (tid, tid + 100, k.u32(7));
        let (a, b, c) = k.fold_if((tid & 1).eq(0), (a, b, c), |(a, b, c)| (b, a + 1000, c));
        y.st_vec::<1>(tid * 3, [a]);
        y.st(tid * 3 + 1, b);
        y.st(tid * 3 + 2, c);
    });
    for (tid, found) in found[0].chunks_exact(3).enumerate() {
        let tid = tid as f64;
        let expected =
            if tid % 2.0 == 0.0 { [tid + 100.0, tid + 1000.0, 7.0] } else { [tid, tid + 100.0, 7.0] };
        assert_eq!(found, expected, "thread {tid}");
    }
}

fn a_state_keeps_its_shape_in_a_turn() {
    let codes = mistakes(|k| {
        let condition = k.tid().lt(3);
        k.fold_if(condition, k.accumulators(16, 8), |_| k.accumulators(16, 16));
    });
    assert_eq!(codes, [Code::VectorShape]);
}

/// `load_rounded` of a window, read back element by element.
fn check_rounded<T: Half + ToF32>(sm: u16, [columns, pitch]: [u32; 2], shape: [u32; 2]) {
    let (rows, [height, width]) = (13, shape);
    let mut values = numbers((rows * pitch) as usize, 3);
    values[5] = 1e6;
    values[columns as usize - 1] = -3e5;
    let values = rounded(Type::F32, &values);
    let given =
        [LaunchArg::Input(Type::F32, &values), LaunchArg::Output(Type::F32, (height * width) as usize)];
    for staged in [false, true] {
        let found = outputs(sm, (1, 96), &given, |k| {
            let x = k.ptr::<f32>("x").matrix(rows, columns).pitch(pitch);
            let y = k.ptr_mut::<f32>("y");
            if staged {
                let pipeline = k.pipeline(2);
                let tile = pipeline.tile::<T>(height, width);
                pipeline.run(
                    1,
                    (),
                    |stage, _| tile.at(stage).load_rounded(x, 2, 0),
                    |stage, _, ()| {
                        k.each(k.strided(height * width), |i| {
                            y.st(i, tile.at(stage).ld(i / width, i % width).f32());
                        });
                    },
                );
            } else {
                let tile = k.shared_tile::<T>(height, width);
                tile.load_rounded(x, 2, 0);
                k.sync();
                k.each(k.strided(height * width), |i| y.st(i, tile.ld(i / width, i % width).f32()));
            }
        });
        let most = if T::TYPE == Type::F16 { 65504.0 } else { f64::INFINITY };
        let expected: Vec<_> = (0..height * width)
            .map(|i| {
                let (row, column) = (2 + i / width, i % width);
                let inside = row < rows && column < columns;
                if inside { values[(row * pitch + column) as usize].clamp(-most, most) } else { 0.0 }
            })
            .collect();
        let expected = rounded(T::TYPE, &expected);
        assert_eq!(found[0], expected, "{} on sm_{sm}: {shape:?} of {columns}, {pitch} apart", T::TYPE);
    }
}

fn loads_round_on_the_way_and_fill_with_zeros() {
    for sm in TARGETS {
        for columns in [6, 7, 8, 20, 32] {
            for pitch in [columns, columns + 1, columns + 4] {
                check_rounded::<F16>(sm, [columns, pitch], [8, 32]);
                check_rounded::<Bf16>(sm, [columns, pitch], [16, 24]);
            }
        }
    }
}

fn products_are_added_up_step_by_step() {
    for sm in TARGETS {
        let (a, b) = (wholes(32 * 48, 1), wholes(48 * 16, 2));
        let given = [
            LaunchArg::Input(Type::F16, &a),
            LaunchArg::Input(Type::F16, &b),
            LaunchArg::Output(Type::F32, 32 * 16),
        ];
        let found = outputs(sm, (1, 32), &given, |k| {
            let (a, b) = (k.ptr::<F16>("a").matrix(32, 48), k.ptr::<F16>("b").matrix(48, 16));
            let (a_tile, b_tile) = (k.shared_tile::<F16>(32, 48), k.shared_tile::<F16>(48, 16));
            a_tile.load(a, 0, 0);
            b_tile.load(b, 0, 0);
            k.sync();
            let a = a_tile.load_a();
            let sums = (0..48)
                .step_by(16)
                .fold(k.accumulators(32, 16), |sums, i| a.k_step(i).mma(b_tile.rows(i, 16).load_b(), sums));
            sums.store(k.ptr_mut::<f32>("c").matrix(32, 16), 0, 0);
        });
        assert_eq!(found[0], product(&a, &b, [32, 16, 48]).0, "sm_{sm}");
    }
    let codes = mistakes(|k| {
        let tile = k.shared_tile::<F16>(16, 32);
        tile.st(0, 0, 1.0);
        k.sync();
        let a = tile.load_a();
        a.k_step(8);
        a.k_step(32);
    });
    assert_eq!(codes, [Code::VectorShape; 2]);
}

fn products_with_ones_are_sums_of_rows() {
    for sm in TARGETS {
        let given = [LaunchArg::Output(Type::F32, 32 * 24)];
        let found = outputs(sm, (1, 32), &given, |k| {
            let a = k.accumulators(32, 16).map_at(|row, column, _| (row * 16 + column).f32());
            let sums = a.as_a::<F16>().mma(k.factor_b(16, 8, 2.0), k.accumulators(32, 8));
            // As values for rows, and these as accumulators.
            let wide = sums.row_values().accumulators(24) + sums.row_values();
            wide.store(k.ptr_mut::<f32>("y").matrix(32, 24), 0, 0);
        });
        for (i, found) in found[0].iter().enumerate() {
            let row = i / 24;
            let sum: usize = (0..16).map(|column| row * 16 + column).sum();
            assert_eq!(*found, 4.0 * sum as f64, "row {row} on sm_{sm}");
        }
    }
    assert_eq!(
        mistakes(|k| {
            k.rows(16, 0.0).accumulators(12);
        }),
        [Code::VectorShape]
    );
}

fn rows_are_asked_and_gone_through() {
    for limit in [30.5f32, 31.5] {
        let given = [LaunchArg::Output(Type::F32, 32), LaunchArg::Output(Type::F32, 32)];
        let found = outputs(80, (1, 32), &given, |k| {
            let (y, z) = (k.ptr_mut::<f32>("y"), k.ptr_mut::<f32>("z"));
            let rows = k.accumulators(32, 8).map_at(|row, _, _| row.f32()).row_max();
            let any = rows.any(|row| row.gt(limit));
            z.st(k.tid(), any.select(1.0, 0.0));
            rows.zip(2.0, |row, two| row * two).each(|row, value| y.st(row, value));
        });
        assert!(found[0].iter().enumerate().all(|(row, &y)| y == 2.0 * row as f64), "{:?}", found[0]);
        assert_eq!(found[1], [f64::from(limit < 31.0); 32]);
    }
}

fn exponentials_flush_what_is_too_small() {
    let x = [0.0, -1.0, 10.0, -125.5, -126.5, -140.0, -1e30, 0.5, f64::NEG_INFINITY];
    let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, x.len())];
    let found = outputs(80, (1, 32), &given, |k| {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
        k.when(k.tid().lt(9), || y.st(k.tid(), x.ld(k.tid()).exp2_ftz()));
    });
    for (x, found) in x.iter().zip(&found[0]) {
        let exact = if *x < -126.0 { 0.0 } else { x.exp2() };
        assert!((found - exact).abs() <= exact * 2f64.powi(-22), "2^{x}: {found}");
    }
}

fn logarithms_flush_what_is_too_small() {
    let x = rounded(Type::F32, &[1.0, 2.0, 0.75, 1e-30, 2f64.powi(-24), 3e38, 1e-40, 0.0]);
    let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, x.len())];
    let found = outputs(80, (1, 32), &given, |k| {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
        k.when(k.tid().lt(8), || y.st(k.tid(), x.ld(k.tid()).log2_ftz()));
    });
    for (x, &found) in x.iter().zip(&found[0]) {
        let exact = if *x < 2f64.powi(-126) { f64::NEG_INFINITY } else { x.log2() };
        let bound = 2f64.powi(-22) * exact.abs().max(1.0);
        assert!(found == exact || (found - exact).abs() <= bound, "log2 {x}: {found}");
    }
}

fn stores_of_half_precision_stay_finite() {
    for sm in TARGETS {
        for pitch in [16, 17] {
            let given = [LaunchArg::Output(Type::F16, 16 * 17)];
            let found = outputs(sm, (1, 32), &given, |k| {
                let tile = k.accumulators(16, 16).map_at(|row, column, _| {
                    row.f32().mul_add(1e4, -8e4) * column.eq(3).select(f32::INFINITY, 1.0)
                });
                tile.store_finite(k.ptr_mut::<F16>("y").matrix(16, 16).pitch(pitch), 0, 0);
            });
            for (i, found) in found[0].iter().enumerate() {
                let (row, column) = (i as u32 / pitch, i as u32 % pitch);
                if row >= 16 || column >= 16 {
                    assert!(found.is_nan());
                    continue;
                }
                let exact = f64::from(row) * 1e4 - 8e4;
                let exact = if column == 3 { exact * f64::INFINITY } else { exact };
                match exact.is_nan() {
                    true => assert!(found.is_nan()),
                    false => {
                        let expected = rounded(Type::F16, &[exact.clamp(-65504.0, 65504.0)])[0];
                        assert_eq!(*found, expected, "row {row}, column {column} on sm_{sm}");
                    }
                }
            }
        }
    }
}

crate::case_list! {
    the_loops_of_a_split_pipeline_share_its_stages,
    state_goes_through_a_turn_or_stays,
    a_state_keeps_its_shape_in_a_turn,
    loads_round_on_the_way_and_fill_with_zeros,
    products_are_added_up_step_by_step,
    products_with_ones_are_sums_of_rows,
    rows_are_asked_and_gone_through,
    exponentials_flush_what_is_too_small,
    logarithms_flush_what_is_too_small,
    stores_of_half_precision_stay_finite,
}
