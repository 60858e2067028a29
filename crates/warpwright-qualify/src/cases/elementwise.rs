//! Elementwise operations, casts and rows of other lengths against float64, on the virtual GPU with every check on, within the bounds
//! that they state.

use crate::common::activation::Exact;
use crate::common::ops::{Buffers, NO_QUANT, U, assert_within, full, held, hold, kinds, run};
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{
    Activation, CacheDtype, Cast, CopyBytes, Dtype, Elementwise, ElementwiseOp, Operands, ResizeRows,
};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::KernelTest;
use warpwright_testing::RunHere;

fn check_op(sm: u16, kernel: &Elementwise, kind: &str, a: &[f64], b: &[f64]) {
    let what = format!("{kind} of {} on sm_{sm}", kernel.entry());
    let columns = kernel.columns as usize;
    let (a, b) = (held(kernel.a.ty(), a), held(kernel.b.ty(), b));
    let factor = -1.75;
    let given = match (kernel.op, kernel.operands) {
        (ElementwiseOp::Scale, _) => Buffers::from([("a", a.clone()), ("factor", vec![factor])]),
        (ElementwiseOp::Activate, _) => Buffers::from([("a", a.clone())]),
        (_, Operands::Separate) => Buffers::from([("a", a.clone()), ("b", b.clone())]),
        (_, Operands::Halves) => {
            let rows = a.chunks(columns).zip(b.chunks(columns));
            Buffers::from([("ab", rows.flat_map(|(a, b)| [a, b].concat()).collect())])
        }
    };
    let found = run(sm, kernel, &[("rows", (a.len() / columns) as u64)], &given);
    let exact: Vec<_> = (a.iter().zip(&b))
        .map(|(&a, &b)| {
            let (y, slack) = match kernel.op {
                ElementwiseOp::Add => (a + b, U * (a + b).abs()),
                ElementwiseOp::Mul => (a * b, U * (a * b).abs()),
                ElementwiseOp::Scale => (a * factor, U * (a * factor).abs()),
                ElementwiseOp::Activate => (kernel.activation.value(a), kernel.activation.error(a, 0.0)),
                ElementwiseOp::Glu => {
                    let y = kernel.activation.value(a) * b;
                    (y, kernel.activation.error(a, 0.0) * b.abs() + U * y.abs())
                }
            };
            (y, slack + 2f64.powi(-148))
        })
        .collect();
    assert_within(&what, kernel.output.ty(), &found["y"], &exact);
    assert!(found["y"].iter().all(|y| y.is_finite()), "{what}: finite");
}

/// Each operation, with each activation where it has one.
fn operations() -> impl Iterator<Item = (ElementwiseOp, Activation)> {
    ElementwiseOp::ALL.into_iter().flat_map(|op| {
        let activated = matches!(op, ElementwiseOp::Activate | ElementwiseOp::Glu);
        let activations = &Activation::ALL[..if activated { Activation::ALL.len() } else { 1 }];
        activations.iter().map(move |&activation| (op, activation))
    })
}

fn numbers_of_every_kind_are_combined() {
    let (rows, columns) = (3, 40);
    for (i, (kind, a)) in kinds(rows * columns, 1).into_iter().enumerate() {
        for (j, (other, b)) in kinds(rows * columns, 2).into_iter().enumerate() {
            for (op, activation) in operations() {
                let halves = j % 2 == 1 && !op.is_unary();
                let dtype = Dtype::ALL[(i + j) % 3];
                let kernel = Elementwise {
                    activation,
                    operands: if halves { Operands::Halves } else { Operands::Separate },
                    a: dtype,
                    b: if halves { dtype } else { Dtype::ALL[j % 3] },
                    output: Dtype::ALL[i % 3],
                    threads: 32,
                    ..Elementwise::new(op, columns as u32)
                };
                check_op([75, 80, 90][(i + j) % 3], &kernel, &format!("{kind} and {other}"), &a, &b);
            }
        }
    }
}

fn gates_from_shut_to_open() {
    let a: Vec<_> = (-2048..2048).map(|i| f64::from(i) / 16.0).collect();
    for sm in [75, 80, 90] {
        for op in [ElementwiseOp::Activate, ElementwiseOp::Glu] {
            for activation in Activation::ALL {
                let kernel = Elementwise { activation, ..Elementwise::new(op, 4096) };
                check_op(sm, &kernel, "a ramp", &a, &crate::common::numbers(4096, 3));
            }
        }
    }
}

fn rows_of_any_length_are_combined() {
    let mut shapes = vec![(1, 1), (5, 33), (3, 1022), (70, 2), (1, 1028), (2, 257)];
    if full() {
        shapes.extend([(9, 2048), (3, 8960), (5, 14336)]);
    }
    for (rows, columns) in shapes {
        let [a, b] = [4, 5].map(|seed| crate::common::numbers(rows * columns, seed));
        for dtype in Dtype::ALL {
            let unary = Elementwise::new(ElementwiseOp::Activate, columns as u32);
            check_op(80, &Elementwise { a: dtype, output: dtype, ..unary }, "normal", &a, &b);
        }
        for operands in [Operands::Separate, Operands::Halves] {
            for dtype in [Dtype::F32, Dtype::Bf16] {
                let op = Elementwise::new(ElementwiseOp::Glu, columns as u32);
                check_op(80, &Elementwise { operands, a: dtype, b: dtype, ..op }, "normal", &a, &b);
            }
        }
    }
}

fn check_cast(sm: u16, cast: &Cast, kind: &str, x: &[f64]) {
    let what = format!("{kind} of {} on sm_{sm}", cast.entry());
    let [columns, from_gap, to_gap] = [cast.columns, cast.from_gap, cast.to_gap].map(|n| n as usize);
    let (from, to) = (columns + from_gap, columns + to_gap);
    let rows = x.len() / columns;
    let padded = |values: &[f64], columns: usize, pitch: usize| {
        let gap = vec![f64::NAN; pitch - columns];
        values.chunks(columns).flat_map(|row| [row, &gap].concat()).collect::<Vec<_>>()
    };
    let mut given = Buffers::new();
    let mut x = held(cast.from.ty(), x);
    if cast.from == CacheDtype::Q8_0 {
        let quants: Vec<_> = x.iter().map(|x| (x * 1e3).round().rem_euclid(255.0) - 127.0).collect();
        let scales: Vec<_> =
            (0..x.len() / 32).map(|i| hold(Type::F16, 0.01 * 3f64.powi(i as i32 % 12))).collect();
        x = quants.iter().enumerate().map(|(i, quant)| quant * scales[i / 32]).collect();
        given.insert("x", padded(&quants, columns, from));
        given.insert("x_scales", padded(&scales, columns / 32, from / 32));
    } else {
        given.insert("x", padded(&x, columns, from));
    }
    let found = run(sm, cast, &[("rows", rows as u64)], &given);
    for (row, (exact, found_row)) in x.chunks(columns).zip(found["y"].chunks(to)).enumerate() {
        let (written, gap) = found_row.split_at(columns);
        let untouched = |x: &f64| x.is_nan() || cast.to == CacheDtype::Q8_0 && *x == NO_QUANT;
        assert!(gap.iter().all(untouched), "{what}: what is between the rows");
        if cast.to != CacheDtype::Q8_0 {
            let exact: Vec<_> = exact.iter().map(|&x| (x, 0.0)).collect();
            assert_within(&what, cast.to.ty(), written, &exact);
            continue;
        }
        let scales = &found["y_scales"][row * to / 32..][..to / 32];
        assert!(scales[columns / 32..].iter().all(|scale| scale.is_nan()), "{what}: scales between the rows");
        for (i, (&quant, &x)) in written.iter().zip(exact).enumerate() {
            let scale = scales[i / 32];
            let slack = if scale == 0.0 { 127.0 * 2f64.powi(-25) } else { 0.57 * scale };
            assert!(
                quant.abs() <= 127.0 && (quant * scale - x).abs() <= slack,
                "{what}: {scale} · {quant}, not {x}"
            );
        }
    }
    assert_eq!(found["y"].len(), rows * to);
}

fn numbers_of_every_kind_are_cast() {
    for (i, (kind, x)) in kinds(3 * 96, 6).into_iter().enumerate() {
        for from in CacheDtype::ALL {
            for to in CacheDtype::ALL {
                if (from, to) != (CacheDtype::Q8_0, CacheDtype::Q8_0) {
                    check_cast(
                        [75, 80, 90][i % 3],
                        &Cast { threads: 64, ..Cast::new(96, from, to) },
                        kind,
                        &x,
                    );
                }
            }
        }
    }
}

fn rows_of_any_pitch_are_cast() {
    for (columns, from_gap, to_gap) in [(1, 0, 0), (33, 7, 0), (100, 0, 28), (64, 32, 96), (8, 4, 1)] {
        for (i, from) in CacheDtype::ALL.into_iter().enumerate() {
            for to in CacheDtype::ALL {
                let cast = Cast { from_gap, to_gap, threads: 32 << (i % 2), ..Cast::new(columns, from, to) };
                if cast.check().is_ok() {
                    check_cast(80, &cast, "normal", &crate::common::numbers(7 * columns as usize, 7));
                }
            }
        }
    }
}

fn what_is_beyond_a_half_saturates_and_nan_stays() {
    let x = [1e6, -1e6, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 65519.0, -65520.0, 1.0];
    let saturated = [65504.0, -65504.0, 65504.0, -65504.0, f64::NAN, 65504.0, -65504.0, 1.0];
    for sm in [75, 80, 90] {
        let cast = Cast::new(8, CacheDtype::F32, CacheDtype::F16);
        let found = run(sm, &cast, &[("rows", 1)], &Buffers::from([("x", x.to_vec())]));
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        assert!(found["y"].iter().zip(&saturated).all(same), "{:?} on sm_{sm}", found["y"]);
    }
}

fn rows_of_other_lengths_have_the_same_numbers_and_then_zeros() {
    for (from, to) in [(1, 1), (100, 112), (112, 100), (40, 48), (8, 32), (33, 7), (5, 64), (96, 96)] {
        for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
            let kernel = ResizeRows { dtype, threads: 32 << i, ..ResizeRows::new(from, to) };
            let x = held(dtype.ty(), &crate::common::numbers(7 * from as usize, 3));
            let found = run([75, 80, 90][i], &kernel, &[("rows", 7)], &Buffers::from([("x", x.clone())]));
            let row = |row: &[f64]| (0..to as usize).map(|i| row.get(i).copied().unwrap_or(0.0)).collect();
            let exact: Vec<f64> = x.chunks(from as usize).flat_map::<Vec<f64>, _>(row).collect();
            assert_eq!(found["y"], exact, "{}", kernel.entry());
        }
    }
}

fn copies_are_byte_for_byte() {
    for (i, bytes) in [1, 2, 15, 16, 17, 511, 512, 513, 1023, 4 * 16 * 32, 5000].into_iter().enumerate() {
        let kernel = CopyBytes { threads: 32 << (i % 3), ..CopyBytes::new(bytes as u64) };
        let x: Vec<u8> = (0..bytes).map(|i| (i * 37 % 251 + i / 251) as u8).collect();
        let test = KernelTest::new(&kernel).arch(Arch::sm([75, 80, 90][i % 3])).input("x", &x);
        assert_eq!(test.run_here().expect("no findings").output::<u8>("y"), x, "{bytes} bytes");
    }
}

fn what_these_kernels_cannot_be_is_said() {
    let refused = |kernel: &dyn AnyKernel| match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let add = Elementwise::new(ElementwiseOp::Add, 8);
    assert_eq!(refused(&Elementwise { columns: 0, ..add }), "columns");
    assert_eq!(refused(&Elementwise { threads: 33, ..add }), "threads");
    assert_eq!(refused(&Elementwise { operands: Operands::Halves, b: Dtype::F16, ..add }), "b");
    for op in [ElementwiseOp::Scale, ElementwiseOp::Activate] {
        let unary = Elementwise::new(op, 8);
        assert_eq!(refused(&Elementwise { operands: Operands::Halves, ..unary }), "operands");
    }
    assert_eq!(refused(&Cast::new(64, CacheDtype::Q8_0, CacheDtype::Q8_0)), "to");
    assert_eq!(refused(&Cast::new(48, CacheDtype::Q8_0, CacheDtype::F32)), "columns");
    let cast = Cast::new(64, CacheDtype::Q8_0, CacheDtype::F32);
    assert_eq!(refused(&Cast { from_gap: 8, ..cast }), "from_gap");
    assert_eq!(refused(&Cast { to_gap: 33, ..cast }), "to_gap");
    assert_eq!(refused(&CopyBytes::new(0)), "bytes");
    assert_eq!(refused(&CopyBytes::new((1 << 36) + 1)), "bytes");
}

/// Numbers of other programs: Python's `math` module.
fn values_are_those_of_other_programs() {
    let known = [
        (-6.0, [-0.014_835_738_939_808_647, -5.919_525_870_226_207e-9, -8.439_646_700_762_31e-11]),
        (-3.0, [-0.142_277_619_532_700_35, -0.004_049_694_094_890_287, -0.003_637_392_081_773_019]),
        (-1.0, [-0.268_941_421_369_995_1, -0.158_655_253_931_457_07, -0.158_808_009_391_723_3]),
        (0.0, [0.0; 3]),
        (0.5, [0.311_229_665_600_927_3, 0.345_731_230_637_006_56, 0.345_714_009_825_143_94]),
        (2.0, [1.761_594_155_955_764_6, 1.954_499_736_103_641_6, 1.954_597_694_087_775_2]),
        (4.0, [3.928_055_160_151_634, 3.999_873_315_032_667_5, 3.999_929_754_051_807_5]),
    ];
    for (x, values) in known {
        let [silu, gelu, gelu_tanh] = values;
        for (activation, value) in [
            (Activation::Silu, silu),
            (Activation::Gelu, gelu),
            (Activation::GeluTanh, gelu_tanh),
            (Activation::Relu, if x < 0.0 { 0.0 } else { x }),
        ] {
            let off = (activation.value(x) - value).abs();
            assert!(off <= 1e-12 * value.abs(), "{activation} of {x}: {}", activation.value(x));
        }
    }
}

fn edges_are_no_accidents() {
    for activation in Activation::ALL {
        assert_eq!(activation.value(f64::NEG_INFINITY), 0.0, "{activation}");
        assert_eq!(activation.value(-1e300), 0.0, "{activation}");
        assert_eq!(activation.value(f64::INFINITY), f64::INFINITY, "{activation}");
        assert!(activation.value(f64::NAN).is_nan(), "{activation}");
        assert!(activation.error(-1e300, 1.0).is_finite(), "{activation}");
    }
}

/// What an error of `x` costs is in the bound at any distance, with the own error at both ends.
fn slopes_bound_differences() {
    let numbers: Vec<f64> = (-400..=400).map(|i| f64::from(i) / 32.0).collect();
    for activation in Activation::ALL {
        for (&x, &other) in numbers.iter().flat_map(|x| numbers.iter().map(move |other| (x, other))) {
            let apart = (activation.value(other) - activation.value(x)).abs();
            let bound = activation.error(x, (other - x).abs());
            assert!(
                apart + activation.error(other, 0.0) <= bound * (1.0 + 1e-12),
                "{activation}: {x} and {other}"
            );
        }
    }
}

crate::case_list! {
    numbers_of_every_kind_are_combined,
    gates_from_shut_to_open,
    rows_of_any_length_are_combined,
    numbers_of_every_kind_are_cast,
    rows_of_any_pitch_are_cast,
    what_is_beyond_a_half_saturates_and_nan_stays,
    rows_of_other_lengths_have_the_same_numbers_and_then_zeros,
    copies_are_byte_for_byte,
    what_these_kernels_cannot_be_is_said,
    values_are_those_of_other_programs,
    edges_are_no_accidents,
    slopes_bound_differences,
}
