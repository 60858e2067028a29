//! What a plan's results may differ by.
//!
//! Worst cases of every kernel, multiplied through a model, say nothing: after a few products they are larger than
//! the logits. So the reference runs several times with noise: what each node makes is moved by random numbers as
//! large as its kernel's stated errors, those of one result being independent. What that changes in a step's logits
//! is, but for luck, more than what the device's own rounding changes; [`FACTOR`] times the most of it is the
//! bound. Rounding on the way into a cache needs no noise of its own: what was moved before may round the other
//! way, as it may on the device.

use crate::common::Random;
use crate::reference::{Executed, Value};
use warpwright_graph::{Arithmetic, AttentionMode, ComputeGraph, Element, TensorOp};
use warpwright_kernels::{CacheDtype, WeightFormat};

/// Runs with noise.
pub(crate) const RUNS: u64 = 3;
/// How much luck there may be: numbers that are the largest of hundreds, each a sum of hundreds of errors, differ by
/// less from run to run.
pub(crate) const FACTOR: f64 = 4.0;

/// `2⁻²⁴`.
const U: f64 = 1.0 / (1 << 24) as f64;

/// Moves what a node of the graph has made.
pub(crate) fn disturb(
    graph: &ComputeGraph,
    arithmetic: Arithmetic,
    executed: Executed<'_>,
    random: &mut Random,
) {
    let [Value::Floats(out), ..] = executed.outputs else { return };
    let ty = |i: usize| graph.ty(executed.node.inputs[i]).expect("a tensor of the graph");
    let row = graph.ty(executed.node.outputs[0]).expect("a tensor of the graph").shape.columns() as usize;
    let deviations: Vec<f64> = match executed.node.op {
        // Caches hold what they are given; embeddings are exact.
        TensorOp::KvAppend { .. } | TensorOp::Embedding | TensorOp::SelectRows | TensorOp::Assign => return,
        TensorOp::MatMul { .. } => {
            let Element::Weights(format) = ty(1).element else { return };
            let [x, w] = [0, 1].map(|i| executed.inputs[i].floats());
            of_products(arithmetic, format, x, w, ty(0).shape.columns() as usize)
        }
        TensorOp::Attention(params) => {
            let relative = match (params.mode, ty(1).element) {
                // Sums of a head's products, and exponentials of them.
                (AttentionMode::Decode, _) => 1024.0 * U,
                // Queries and weights are rounded to the halves that are multiplied.
                (_, Element::Cache(CacheDtype::Bf16)) => 2f64.powi(-7),
                _ => 2f64.powi(-10),
            };
            of_rows(out, row, 0.0, relative)
        }
        // Sums of rows, approximate functions, a handful of roundings.
        _ => of_rows(out, row, 16.0 * U, 4.0 * U),
    };
    for (value, deviation) in out.iter_mut().zip(deviations) {
        // Uniform, with a deviation of 1.
        *value += deviation * random.signed() * 3f64.sqrt();
    }
}

/// A part of each number, and a part of the largest of its row.
fn of_rows(out: &[f64], row: usize, own: f64, largest: f64) -> Vec<f64> {
    let of_row = |row: &[f64]| {
        let most = row.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        row.iter().map(move |x| own * x.abs() + largest * most).collect::<Vec<_>>()
    };
    out.chunks(row).flat_map(of_row).collect()
}

/// The root of the sum of the squares of what each product of a sum is off by.
fn of_products(arithmetic: Arithmetic, format: WeightFormat, x: &[f64], w: &[f64], k: usize) -> Vec<f64> {
    let tokens = x.len() / k;
    let int8 = arithmetic == Arithmetic::Int8;
    // As a part of each product, however activations are taken.
    let relative = match (tokens > 8, format) {
        (false, _) | (true, WeightFormat::F32) => 1024.0 * U,
        // Halves with their sixteen bits once or twice.
        (true, WeightFormat::F16) => {
            if int8 {
                2f64.powi(-11)
            } else {
                1024.0 * U
            }
        }
        (true, WeightFormat::Bf16) => {
            if int8 {
                2f64.powi(-8)
            } else {
                2f64.powi(-15)
            }
        }
        // Weights become halves, with a rounding of scale · quant and of the minimum, which are larger than they.
        (true, _) => 2f64.powi(-9),
    };
    let quantised = int8 && tokens <= 8 && !format.is_float();
    let mut all = Vec::new();
    for x in x.chunks(k) {
        let errors: Vec<f64> = (x.chunks(32))
            .flat_map(|block| {
                // Bytes with a scale for each 32: rounding is uniform within half of the scale.
                let scale = block.iter().fold(0.0, |most: f64, x| most.max(x.abs())) / 127.0;
                let rounded = if quantised { scale * scale / 12.0 } else { 0.0 };
                block.iter().map(move |x| rounded + (relative * x).powi(2))
            })
            .collect();
        let variance = |row: &[f64]| row.iter().zip(&errors).map(|(w, error)| w * w * error).sum::<f64>();
        all.extend(w.chunks(k).map(|row| variance(row).sqrt()));
    }
    all
}
