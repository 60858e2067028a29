//! Products with vectors and with matrices: formats, and the shapes of models.

use super::Item;
use crate::event::Finding;
use crate::measure::Size;
use warpwright_graph::device_model;
use warpwright_kernels::tune::{GemmShape, GemvShape, Shape, Tuning};
use warpwright_kernels::{Activation, Activations, Matrix, QuantGemv, WeightFormat};

/// A product with a vector: formats, rows of the matrices, whether they are a gate, columns, the form of activations.
type Product = (WeightFormat, &'static [u32], u32, Activations);

/// Products of Llama-3-8B and Llama-3.2-1B in Q4_K_M.
const MODELS: [Product; 12] = {
    use Activations::{Exact, Rounded};
    use WeightFormat::{Q4K, Q6K};
    [
        (Q4K, &[4096, 1024], 4096, Exact),
        (Q4K, &[4096], 4096, Exact),
        (Q4K, &[14_336, 14_336], 4096, Exact),
        (Q4K, &[14_336, 14_336], 4096, Rounded),
        (Q4K, &[4096], 14_336, Exact),
        (Q4K, &[4096], 14_336, Rounded),
        (Q6K, &[4096], 14_336, Exact),
        (Q6K, &[128_256], 4096, Exact),
        (Q4K, &[2048], 2048, Exact),
        (Q4K, &[8192, 8192], 2048, Exact),
        (Q4K, &[2048], 8192, Exact),
        (Q6K, &[128_256], 2048, Exact),
    ]
};

pub(super) fn gemv(size: Size) -> Vec<Item> {
    let formats = WeightFormat::ALL.into_iter().flat_map(move |format| {
        let activations = [Activations::Exact, Activations::Int8];
        let fits = move |activations: &Activations| *activations == Activations::Exact || !format.is_float();
        activations
            .into_iter()
            .filter(fits)
            .map(move |activations| (format, &[4096][..], 14_336, activations))
    });
    let all: Vec<Product> = match size {
        Size::Full => MODELS.into_iter().chain(formats).collect(),
        Size::Quick => MODELS.to_vec(),
        Size::Tiny => vec![
            (WeightFormat::Q4K, &[64], 512, Activations::Exact),
            (WeightFormat::Q6K, &[32], 256, Activations::Int8),
            (WeightFormat::Q4K, &[64, 64], 256, Activations::Rounded),
            (WeightFormat::Nvfp4, &[32], 256, Activations::Exact),
            (WeightFormat::F16, &[32], 256, Activations::Exact),
        ],
    };
    all.into_iter().map(move |product| gemv_item(product, size)).collect()
}

fn gemv_item((format, rows, k, activations): Product, size: Size) -> Item {
    let gate = rows.len() == 2 && rows[0] == rows[1];
    let listed: Vec<_> = rows.iter().map(u32::to_string).collect();
    let gated = if gate { ", gated" } else { "" };
    let name = format!("gemv {format} {}x{k}{gated}, activations {activations}", listed.join("+"));
    let title = name.clone();
    Item::measure(name, size, move |bench, found| {
        let matrices: Vec<_> = rows.iter().map(|&n| Matrix::new(format, n)).collect();
        let gate = gate.then_some(Activation::Silu);
        let kernel = QuantGemv { k, matrices, gate, activations, ..QuantGemv::default() };
        let choice = Tuning::new(device_model(bench.device)).choose(&GemvShape::of(&kernel, Some(1)));
        let kernel = choice.apply(kernel);
        let operations = rows.iter().map(|&n| 2 * u64::from(n) * u64::from(k)).sum();
        let (samples, bytes) = bench.launches(&kernel.measured(), bench.size.pick(2, 20, 40))?;
        found(Finding::Figure(samples.figure(&title, Some(bytes), Some(operations))));
        Ok(())
    })
}

/// Rows and columns of the weights, and tokens.
const SHAPES: [(u32, u32, u32); 4] =
    [(4096, 4096, 512), (14_336, 4096, 512), (4096, 14_336, 512), (4096, 4096, 4096)];

pub(super) fn gemm(size: Size) -> Vec<Item> {
    let formats = [WeightFormat::F16, WeightFormat::Q4K, WeightFormat::Q6K];
    let shapes: Vec<_> = size.pick(vec![(32, 64, 16)], SHAPES[..1].to_vec(), SHAPES.to_vec());
    let all =
        formats.into_iter().flat_map(|format| shapes.clone().into_iter().map(move |shape| (format, shape)));
    all.map(|(format, shape)| gemm_item(format, shape, size)).collect()
}

fn gemm_item(format: WeightFormat, (n, k, tokens): (u32, u32, u32), size: Size) -> Item {
    // The block of a format sets the least.
    let k = k.next_multiple_of(format.block());
    let name = format!("gemm {format} {n}x{k}, {tokens} tokens");
    let title = name.clone();
    Item::measure(name, size, move |bench, found| {
        let shape = GemmShape { format, n, k, terms: 1, tokens };
        let choice = Tuning::new(device_model(bench.device)).choose(&shape);
        let launch = shape.launch(&choice).ok_or("no launch measures it")?;
        let operations = 2 * u64::from(n) * u64::from(k) * u64::from(tokens);
        let (samples, bytes) = bench.launches(&launch, bench.size.pick(2, 20, 40))?;
        found(Finding::Figure(samples.figure(&title, Some(bytes), Some(operations))));
        Ok(())
    })
}
