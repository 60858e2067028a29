//! Multiply-adds per second of one core under each accumulation model, for `m16n8k16` and its like.

use std::hint::black_box;
use std::time::Instant;
use warpwright_vm::tensor::{Accumulator, FloatElement, FloatProduct, Left, Size, TensorCore};

fn main() {
    let elements = [
        (FloatElement::F16, 16),
        (FloatElement::BF16, 16),
        (FloatElement::TF32, 8),
        (FloatElement::E4M3, 32),
    ];
    for &core in TensorCore::ALL {
        for (element, k) in elements {
            let rule = FloatProduct { core, a: element, b: element, sums: Accumulator::F32 };
            let size = Size { m: 16, n: 8, k };
            let a: Vec<f32> = (0..16 * k).map(|i| (i % 17) as f32 / 4.0 - 2.0).collect();
            let b: Vec<f32> = (0..8 * k).map(|i| (i % 13) as f32 / 8.0 - 0.5).collect();
            let (c, mut d) = ([0.25; 128], [0.0; 128]);
            let products = if core == TensorCore::Exact { 2_000 } else { 200_000 };
            let start = Instant::now();
            for _ in 0..products {
                rule.product(size, Left::dense(black_box(&a)), black_box(&b), &c, &mut d);
                black_box(&d);
            }
            let each = start.elapsed().as_secs_f64() / f64::from(products);
            let rate = (16 * 8 * k) as f64 / each;
            println!("{core:>6} m16n8k{k:<2} {element:?}: {:7.0} ns, {rate:.2e} multiply-adds/s", each * 1e9);
        }
    }
}
