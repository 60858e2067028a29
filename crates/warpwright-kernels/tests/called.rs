//! Bodies that another kernel calls, by teams of its warps: they do what they do where they are launched.

#[path = "common/mod.rs"]
mod common;

use common::called::Calls;
use warpwright_kernels::{QuantGemv, RmsNorm, WeightFormat};

#[test]
fn a_norm_by_teams() {
    let (d, rows) = (96, 7);
    for threads in [32, 64, 256] {
        let norm = RmsNorm { threads, ..RmsNorm::new(d, 1e-5) };
        let x: Vec<f32> = (0..rows * d).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<f32> = (0..d).map(|i| i as f32 / 64.0 + 0.5).collect();
        Calls::new(&norm).dim("rows", rows.into()).input("x", &x).input("w", &w).check();
    }
}

#[test]
fn a_product_by_teams() {
    let (n, k) = (70, 256);
    for warps in [1, 2, 4, 8] {
        let gemv = QuantGemv { warps: Some(warps), ..QuantGemv::new(WeightFormat::F16, n, k) };
        let x: Vec<f32> = (0..k).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<u8> = (0..n * k).flat_map(|i| [(i % 251) as u8, 0x30 + (i % 7) as u8]).collect();
        Calls::new(&gemv).input("x", &x).input("w0", &w).check();
    }
}
