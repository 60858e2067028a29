//! The embedding on the virtual GPU with every check on, bit for bit what the `gguf` package makes of the same
//! blocks: weights are rounded once, to `f32`, and then to the type of the output.

use crate::common::gguf::{dequantized, fixture};
use crate::common::{numbers, rounded};
use warpwright_dsl::{BuildError, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_kernels::{Dtype, Embedding, WeightFormat};
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;
use warpwright_testing::RunHere;

/// A table: its bytes, and its weights as `f32`.
fn table(format: WeightFormat, rows: u32, d: u32) -> (Vec<u8>, Vec<f32>) {
    if format.is_float() {
        let count = rows as usize * d as usize;
        let numbers: Vec<f32> = numbers(count, 9).into_iter().map(|x| (x * 1e6) as f32).collect();
        let bytes: Vec<u8> = match format {
            WeightFormat::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            // Halves end at 65504.
            WeightFormat::F16 => numbers.iter().flat_map(|x| f16_bits(x / 32.0).to_le_bytes()).collect(),
            _ => numbers.iter().flat_map(|&x| bf16_bits(x).to_le_bytes()).collect(),
        };
        let weights = dequantized(format, &bytes).into_iter().map(|x| x as f32).collect();
        return (bytes, weights);
    }
    let (blocks, weights) = fixture(format);
    let weights: Vec<_> = weights.into_iter().map(f32::from_bits).collect();
    // The blocks in turn.
    let (block, count) = (format.block() as usize, (rows * d / format.block()) as usize);
    let order = (0..count).map(|i| i * 5 % (weights.len() / block));
    let bytes = format.block_bytes() as usize;
    let mut all_bytes: Vec<u8> = order.clone().flat_map(|i| blocks[i * bytes..][..bytes].to_vec()).collect();
    let mut weights: Vec<f32> = order.flat_map(|i| weights[i * block..][..block].to_vec()).collect();
    if format.has_tensor_scale() {
        const SCALE: f32 = 0.7;
        all_bytes.extend(SCALE.to_le_bytes());
        weights.iter_mut().for_each(|weight| *weight *= SCALE);
    }
    (all_bytes, weights)
}

fn check(kernel: Embedding, ids: &[u32], seed: u64) {
    let Embedding { format, rows, d, out } = kernel;
    let (bytes, weights) = table(format, rows, d);
    let expected: Vec<f64> = (ids.iter())
        .flat_map(|&id| match weights.chunks_exact(d as usize).nth(id as usize) {
            Some(row) if id < rows => row.iter().map(|&x| f64::from(x)).collect(),
            _ => vec![0.0; d as usize],
        })
        .collect();
    let name = format!("{kernel:?}");
    let poison = vec![f32::NAN; expected.len()];
    let halves = vec![0x7fffu16; expected.len()];
    let test = KernelTest::new(&kernel).seed(seed).dim("tokens", ids.len() as u64);
    let test = test.input("table", &bytes).input("ids", ids);
    let test = if out == Dtype::F32 { test.input("y", &poison) } else { test.input("y", &halves) };
    let run = test.run_here().unwrap_or_else(|error| panic!("{name}: {error}"));
    let found: Vec<f64> = match out {
        Dtype::F32 => run.output::<f32>("y").into_iter().map(f64::from).collect(),
        Dtype::F16 => run.output::<u16>("y").into_iter().map(crate::common::f16).collect(),
        Dtype::Bf16 => {
            run.output::<u16>("y").into_iter().map(|x| f32::from_bits(u32::from(x) << 16).into()).collect()
        }
    };
    let most = if out == Dtype::F16 { 65_504.0 } else { f64::INFINITY };
    let expected: Vec<_> = expected.into_iter().map(|x| x.clamp(-most, most)).collect();
    let expected = rounded(out.ty(), &expected);
    let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(wrong.map(|i| (i, found[i], expected[i])), None, "{name}: the first that differs");
}

fn rows_are_those_of_the_table() {
    for format in WeightFormat::ALL {
        let lengths: &[u32] = match format.block() {
            1 => &[1, 2, 4, 5, 8, 24, 1030],
            32 => &[32, 96, 2080],
            64 => &[64, 320],
            _ => &[256, 1280],
        };
        for (&d, seed) in lengths.iter().zip(1..) {
            for out in Dtype::ALL {
                check(Embedding { out, ..Embedding::new(format, 7, d) }, &[3, 0, 6, 6, 1], seed);
            }
        }
    }
}

/// Ids at the end of the table, just beyond and far beyond: the checks would see a read outside.
fn ids_that_the_table_has_not_give_zeros() {
    for format in WeightFormat::ALL {
        for rows in [1, 3] {
            check(Embedding::new(format, rows, 256), &[rows - 1, rows, u32::MAX, 0, 1 << 31], 1);
        }
    }
}

/// Rows of activations by number, from a table of which there is one for each token: in any order, several times,
/// all numbers of `f32` as they are.
fn rows_of_activations_are_selected() {
    for (tokens, d, ids) in [
        (1, 64, vec![0]),
        (5, 33, vec![4]),
        (7, 96, vec![6, 2, 2, 0]),
        (7, 2048, vec![0, 1, 2, 3, 4, 5, 6]),
        (130, 8, (0..130u32).rev().collect()),
    ] {
        let mut x: Vec<f32> = numbers(tokens * d, 3).into_iter().map(|x| x as f32).collect();
        let odd = [0.0, -0.0, f32::MAX, f32::MIN, 1e-40, -1e-45, f32::INFINITY, f32::NEG_INFINITY];
        x[tokens * d - 8..].copy_from_slice(&odd);
        let table: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        let kernel = Embedding::new(WeightFormat::F32, tokens as u32, d as u32);
        let test = KernelTest::new(&kernel).dim("tokens", ids.len() as u64);
        let test = test.input("table", &table).input("ids", &ids).input("y", &vec![f32::NAN; ids.len() * d]);
        let found = test.run_here().unwrap_or_else(|error| panic!("{kernel:?}: {error}")).output::<f32>("y");
        let expected = ids.iter().flat_map(|&id| &x[id as usize * d..][..d]);
        assert!(found.iter().map(|x| x.to_bits()).eq(expected.map(|x| x.to_bits())), "{kernel:?}");
    }
}

fn rows_of_broken_blocks_are_refused() {
    for (format, d) in [(WeightFormat::Q4K, 128), (WeightFormat::Q8_0, 33), (WeightFormat::F32, 0)] {
        let refused = Embedding::new(format, 4, d).build(Arch::sm(80)).map(|_| ());
        assert!(matches!(refused, Err(BuildError::Field { field: "d", .. })), "{refused:?}");
    }
}

crate::case_list! {
    rows_are_those_of_the_table,
    ids_that_the_table_has_not_give_zeros,
    rows_of_activations_are_selected,
    rows_of_broken_blocks_are_refused,
}
