//! Products of quantised matrices with a few columns, on the virtual GPU with every check on, against `f64`.

mod case;
#[cfg(test)]
mod on_the_vm;

use crate::common::ops::full;
use case::{INPUTS, Subject, check};
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{Activation, Activations, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::ir::Arch;
use warpwright_testing::orders;

fn gemv(format: WeightFormat, n: u32, k: u32) -> QuantGemv {
    QuantGemv::new(format, n, k)
}

/// Lengths of rows: a block, less than a slice, slices and a part of one, more slices than warps.
fn lengths(format: WeightFormat) -> Vec<u32> {
    match format.block() {
        1 => vec![1, 7, 64, 100, 513, 1030],
        32 => vec![32, 96, 256, 512, 1056, 2784],
        64 => vec![64, 192, 512, 1088, 2752],
        _ => vec![256, 512, 1280, 4864],
    }
}

fn every_format_and_length() {
    for format in WeightFormat::ALL {
        for k in lengths(format) {
            for n in [1, 5, 16, 35] {
                check(&Subject::plain(&gemv(format, n, k)), "normal", 1);
            }
        }
    }
}

fn every_format_and_length_in_bytes() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        for k in lengths(format) {
            for n in [1, 5, 16, 35] {
                for activations in [Activations::Int8, Activations::Rounded] {
                    let kernel = QuantGemv { activations, ..gemv(format, n, k) };
                    check(&Subject::plain(&kernel), "normal", 1);
                }
            }
        }
    }
}

fn every_kind_of_input() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
                continue;
            }
            for kind in INPUTS {
                for &seed in orders(&[1, 2]) {
                    let kernel = QuantGemv { activations, ..gemv(format, 20, 768) };
                    check(&Subject::plain(&kernel), kind, seed);
                }
            }
        }
    }
}

fn every_batch() {
    for format in
        [WeightFormat::Q4K, WeightFormat::Q6K, WeightFormat::Q8_0, WeightFormat::F16, WeightFormat::Q4_0]
    {
        for batch in 1..=8 {
            for activations in Activations::ALL {
                if !format.is_float() || activations == Activations::Exact {
                    let kernel = QuantGemv { batch, activations, ..gemv(format, 19, 1280) };
                    check(&Subject::plain(&kernel), "normal", 1);
                }
            }
        }
    }
    // Rows whose columns do not begin at multiples of 16 bytes.
    check(&Subject::plain(&QuantGemv { batch: 3, ..gemv(WeightFormat::Bf16, 18, 203) }), "normal", 1);
}

fn every_number_of_warps() {
    for warps in [1, 2, 3, 5, 16] {
        for format in [WeightFormat::Q4K, WeightFormat::Q4_0] {
            let kernel = QuantGemv { warps: Some(warps), ..gemv(format, 17, 2816) };
            check(&Subject::plain(&kernel), "normal", 3);
        }
    }
}

fn every_number_of_rows() {
    for (activations, batch, rows) in [
        (Activations::Exact, 1, 2),
        (Activations::Exact, 1, 8),
        (Activations::Exact, 3, 4),
        (Activations::Exact, 8, 2),
        (Activations::Int8, 1, 8),
        (Activations::Rounded, 1, 8),
        (Activations::Int8, 4, 2),
    ] {
        let kernel = QuantGemv { activations, batch, rows: Some(rows), ..gemv(WeightFormat::Q4K, 37, 768) };
        check(&Subject::plain(&kernel), "normal", 5);
        if batch == 1 {
            let matrices = vec![Matrix::new(WeightFormat::Q6K, 21); 2];
            check(
                &Subject::plain(&QuantGemv { matrices, gate: Some(Activation::Silu), ..kernel }),
                "normal",
                5,
            );
        }
    }
    // Numbers have no parts.
    for format in [WeightFormat::F32, WeightFormat::Bf16] {
        check(&Subject::plain(&QuantGemv { rows: Some(8), ..gemv(format, 37, 768) }), "normal", 5);
    }
}

fn additions_and_several_matrices() {
    let (bias, residual) = (true, true);
    let of = |format, n| Matrix::new(format, n);
    for activations in Activations::ALL {
        let kernel = QuantGemv {
            matrices: vec![
                Matrix { bias, ..of(WeightFormat::Q4K, 40) },
                Matrix { residual, ..of(WeightFormat::Q6K, 7) },
                Matrix { bias, residual, ..of(WeightFormat::Q8_0, 16) },
                of(WeightFormat::Q5K, 33),
            ],
            batch: 2,
            activations,
            ..gemv(WeightFormat::Q4K, 1, 768)
        };
        for &seed in orders(&[1, 2, 3]) {
            check(&Subject::plain(&kernel), "normal", seed);
        }
    }
}

fn gated_products() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
                continue;
            }
            for (batch, n, bias) in [(1, 8, false), (1, 21, true), (6, 5, false)] {
                for activation in Activation::ALL {
                    let matrix = Matrix { bias, ..Matrix::new(format, n) };
                    let first = Matrix { residual: bias, ..matrix };
                    let kernel = QuantGemv {
                        matrices: vec![first, matrix],
                        gate: Some(activation),
                        batch,
                        activations,
                        ..gemv(format, 1, 768)
                    };
                    check(&Subject::plain(&kernel), "normal", 1);
                }
            }
        }
    }
}

/// Matrices of many rows, of which a group of lanes has eight in bytes; with a gate, two of each.
fn tall_matrices_in_bytes() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        for (activations, n) in [(Activations::Int8, 2048), (Activations::Rounded, 2051)] {
            let kernel = QuantGemv { activations, ..gemv(format, n, 256) };
            check(&Subject::plain(&kernel), "normal", 1);
        }
    }
    let matrices = vec![Matrix::new(WeightFormat::Q6K, 2050); 2];
    let gated = QuantGemv { matrices, gate: Some(Activation::Silu), ..gemv(WeightFormat::Q6K, 1, 512) };
    check(&Subject::plain(&QuantGemv { activations: Activations::Rounded, ..gated }), "normal", 1);
}

/// Gates that are shut, open and on the way.
fn gates_of_every_kind_of_input() {
    for format in [WeightFormat::Q4K, WeightFormat::F32] {
        for activation in Activation::ALL {
            for kind in INPUTS {
                let matrices = vec![Matrix::new(format, 11); 2];
                let kernel = QuantGemv { matrices, gate: Some(activation), ..gemv(format, 1, 768) };
                check(&Subject::plain(&kernel), kind, 1);
            }
        }
    }
}

fn normalised_products() {
    for format in WeightFormat::ALL {
        for (n, k, batch) in [(18, 768, 1), (5, 1280, 3)] {
            let mut kernel = QuantGemv { epsilon: Some(1e-5), ..gemv(format, n, k) };
            kernel.batch = batch;
            for activations in [Activations::Exact, Activations::Rounded] {
                if format.is_float() && activations != Activations::Exact {
                    continue;
                }
                kernel.activations = activations;
                for kind in INPUTS {
                    check(&Subject::plain(&kernel), kind, 1);
                }
            }
        }
    }
    let mut kernel = QuantGemv { epsilon: Some(1e-6), ..gemv(WeightFormat::Q4K, 8, 1024) };
    kernel.matrices.push(Matrix::new(WeightFormat::Q4K, 8));
    for activation in Activation::ALL {
        kernel.gate = Some(activation);
        check(&Subject::plain(&kernel), "normal", 1);
    }
}

/// The matrices of a layer: `(format, n, k)`.
const LAYERS: [(WeightFormat, u32, u32); 12] = [
    // Llama-3.2-1B.
    (WeightFormat::Q4K, 2048, 2048),
    (WeightFormat::Q6K, 512, 2048),
    (WeightFormat::Q4K, 8192, 2048),
    (WeightFormat::Q6K, 2048, 8192),
    // Qwen2.5-1.5B.
    (WeightFormat::Q5K, 1536, 1536),
    (WeightFormat::Q8_0, 256, 1536),
    (WeightFormat::Q4_0, 8960, 1536),
    (WeightFormat::Q4K, 1536, 8960),
    // Llama-3-8B.
    (WeightFormat::Q4K, 4096, 4096),
    (WeightFormat::F16, 1024, 4096),
    (WeightFormat::Q4K, 14336, 4096),
    (WeightFormat::Q6K, 4096, 14336),
];

fn rows_of_models() {
    for (format, n, k) in LAYERS {
        // Without the time for all rows, those of a few tiles.
        let n = if full() { n } else { 21 };
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
                continue;
            }
            let kernel = QuantGemv { activations, ..gemv(format, n, k) };
            check(&Subject::plain(&kernel).unchecked(), "outliers", 1);
        }
        let normed = QuantGemv { epsilon: Some(1e-5), ..gemv(format, n, k) };
        check(&Subject::plain(&normed).unchecked(), "normal", 1);
    }
}

fn every_target() {
    for sm in [75, 86, 89, 90, 100, 120] {
        for format in WeightFormat::ALL {
            for activations in Activations::ALL {
                if !format.is_float() || activations == Activations::Exact {
                    let kernel = QuantGemv { activations, batch: 2, ..gemv(format, 18, 768) };
                    check(&Subject::plain(&kernel).on(sm), "normal", 1);
                }
            }
        }
        let normed = QuantGemv { epsilon: Some(1e-5), ..gemv(WeightFormat::Q4K, 18, 768) };
        check(&Subject::plain(&normed).on(sm), "normal", 1);
    }
}

/// The field that a configuration is refused for; its description is asked for all the same.
fn refused(kernel: &dyn AnyKernel) -> &'static str {
    let _ = (kernel.entry(), kernel.args(), kernel.launch());
    match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{}: {:?}", kernel.entry(), other.map(|built| built.launch)),
    }
}

fn what_is_not_a_product_is_refused_by_its_field() {
    let base = || gemv(WeightFormat::Q4K, 64, 1024);
    let matrix = |format, n| Matrix::new(format, n);
    let several = |matrices| QuantGemv { matrices, ..base() };
    let gate = Some(Activation::Gelu);
    let cases: [(QuantGemv, &str); 17] = [
        (several(vec![]), "n"),
        (several(vec![matrix(WeightFormat::Q4K, 8); 5]), "n"),
        (QuantGemv { batch: 0, ..gemv(WeightFormat::F16, 8, 8) }, "batch"),
        (QuantGemv { batch: u32::MAX, ..base() }, "batch"),
        (gemv(WeightFormat::F32, u32::MAX, u32::MAX), "k"),
        (gemv(WeightFormat::Q4K, 64, 0), "k"),
        (gemv(WeightFormat::Q4K, 64, 1056), "k"),
        (gemv(WeightFormat::Q8_0, 64, 1040), "k"),
        (gemv(WeightFormat::Q4K, 0, 1024), "n"),
        (gemv(WeightFormat::Q4K, u32::MAX, 1024), "n"),
        (QuantGemv { activations: Activations::Int8, ..gemv(WeightFormat::F16, 8, 64) }, "activations"),
        (QuantGemv { gate, ..base() }, "gate"),
        (
            QuantGemv { gate, ..several(vec![matrix(WeightFormat::Q4K, 8), matrix(WeightFormat::Q6K, 8)]) },
            "gate",
        ),
        (QuantGemv { warps: Some(16), batch: 8, ..base() }, "warps"),
        (QuantGemv { rows: Some(8), batch: 2, ..base() }, "rows"),
        (QuantGemv { rows: Some(4), batch: 5, ..base() }, "rows"),
        (QuantGemv { rows: Some(3), ..base() }, "rows"),
    ];
    for (kernel, field) in cases {
        assert_eq!(refused(&kernel), field, "{kernel:?}");
    }
    let residual = Matrix { residual: true, ..matrix(WeightFormat::Q4K, 8) };
    assert_eq!(refused(&QuantGemv { gate, ..several(vec![residual; 2]) }), "residual");
    let normed = QuantGemv { epsilon: Some(f32::NAN), ..gemv(WeightFormat::Q4K, 8, 256) };
    assert_eq!(refused(&normed), "epsilon");
    let mut normed = QuantGemv { epsilon: Some(1e-5), ..gemv(WeightFormat::Q4K, 8, 256) };
    normed.activations = Activations::Int8;
    assert_eq!(refused(&normed), "activations");
}

crate::case_list! {
    every_format_and_length,
    every_format_and_length_in_bytes,
    every_kind_of_input,
    every_batch,
    every_number_of_warps,
    every_number_of_rows,
    additions_and_several_matrices,
    gated_products,
    tall_matrices_in_bytes,
    gates_of_every_kind_of_input,
    normalised_products,
    rows_of_models,
    every_target,
    what_is_not_a_product_is_refused_by_its_field,
}
