//! Layer norm, its moments in one pass.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, numbers};

/// Number, mean and sum of squared deviations (Welford, 1962).
#[derive(Clone, Copy, Carry)]
struct Moments<'k> {
    count: Reg<'k, f32>,
    mean: Reg<'k, f32>,
    squares: Reg<'k, f32>,
}

impl<'k> Moments<'k> {
    fn none(k: K<'k>) -> Self {
        Moments { count: k.f32(0.0), mean: k.f32(0.0), squares: k.f32(0.0) }
    }

    fn with(self, x: Reg<'k, f32>) -> Self {
        let (count, delta) = (self.count + 1.0, x - self.mean);
        let mean = self.mean + delta / count;
        Moments { count, mean, squares: delta.mul_add(x - mean, self.squares) }
    }

    /// Those of two sets (Chan, Golub and LeVeque, 1983).
    fn and(self, other: Self) -> Self {
        let (count, delta) = (self.count + other.count, other.mean - self.mean);
        let share = other.count / count.max(1.0);
        let squares = self.squares + other.squares + delta * delta * self.count * share;
        Moments { count, mean: delta.mul_add(share, self.mean), squares }
    }
}

/// `y = (x − mean) · rsqrt(variance + 1e-5) · w + b` over rows of length `d`; one block per row.
fn layer_norm(k: K<'_>) {
    let [x, w, b] = ["x", "w", "b"].map(|name| k.ptr::<f32>(name));
    let (y, d) = (k.ptr_mut::<f32>("y"), k.scalar::<u32>("d"));
    let (x, y) = (x.at(k.ctaid() * d), y.at(k.ctaid() * d));
    let own = k.fold(k.strided(d), Moments::none(k), |i, moments| moments.with(x.ld(i)));
    let Moments { count, mean, squares } = k.block_reduce_by(own, Moments::and);
    let scale = (squares / count + 1e-5).rsqrt();
    k.each(k.strided(d), |i| y.st(i, ((x.ld(i) - mean) * scale).mul_add(w.ld(i), b.ld(i))));
}

pub(crate) fn day(rows: usize, d: usize) -> Day<'static> {
    let single = |seed| numbers(d, seed).iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    // Far from zero: where a sum of squares less the square of the sum would have no digits left.
    let x: Vec<f64> = numbers(rows * d, 1).iter().map(|x| f64::from((x + 300.0) as f32)).collect();
    let (w, b) = (single(2), single(3));
    let exact = x.chunks(d).flat_map(|row| {
        let mean = row.iter().sum::<f64>() / d as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
        let scale = (variance + 1e-5).sqrt().recip();
        row.iter().zip(&w).zip(&b).map(move |((x, w), b)| (x - mean) * scale * w + b).collect::<Vec<_>>()
    });
    Day {
        body: layer_norm,
        shape: (rows as u32, 96),
        // The mean has an error of a few units of 300, 2⁻¹⁵ each, and rows vary by 0.58.
        exact: vec![(exact.collect(), 4.0 * 2f64.powi(-15) / 0.5)],
        given: vec![
            LaunchArg::Input(Type::F32, x.leak()),
            LaunchArg::Input(Type::F32, w.leak()),
            LaunchArg::Input(Type::F32, b.leak()),
            LaunchArg::Output(Type::F32, rows * d),
            LaunchArg::Scalar(d as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn rows_are_normalised() {
    for (rows, d) in [(3, 33), (2, 96), (1, 1000)] {
        day(rows, d).assert_right();
    }
}
