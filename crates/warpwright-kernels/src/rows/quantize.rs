//! Quantising activations for the integer path of matrix products.

use crate::data::eight_bits::{BLOCK, quantize};
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;

/// Numbers of a thread: four neighbouring lanes have a block.
const PART: u32 = 8;

/// Rows of `d` floats as signed bytes, 32 neighbours at a time: `q = round(x / scale)` with `scale = max |x| / 127`.
///
/// `x` and `quants` are `rows × d`, row-major; `scales` is `rows × d / 32` of `f32`, because halves overflow for
/// activations with outliers. `|x - scale · q| ≤ 0.501 · scale` for numbers up to 10³⁷; blocks whose scale would be
/// below 2⁻¹²⁶ are zeros. The format is ggml's `q8_0`, with wider scales in a separate buffer.
///
/// Each thread reads and writes eight numbers at once.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "rows of floats as signed bytes, with a scale for each 32",
    examples("d=14336 dtype=f16", "d=1536 dtype=bf16 threads=256", "d=32 threads=32")
)]
pub struct QuantizeInt8 {
    /// Length of a row: a multiple of 32.
    #[field(range = 32..=1 << 20, multiple_of = 32, default = 4096)]
    pub d: u32,
    /// Element type of `x`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`QuantizeInt8`].
#[derive(Args)]
#[args(of = QuantizeInt8)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct QuantizeInt8Args<M: Mode> {
    #[arg(len = rows.times(of.d.into()), dtype = of.input.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows.times(of.d.into()))]
    pub quants: M::Out<i8>,
    #[arg(len = rows.times((of.d / BLOCK).into()))]
    pub scales: M::Out<f32>,
    pub rows: M::Scalar<u32>,
}

impl QuantizeInt8 {
    /// Rows of `d` numbers of `f32`, with blocks of 128 threads.
    pub fn new(d: u32) -> Self {
        QuantizeInt8 { d, input: Dtype::F32, threads: 128 }
    }
}

impl Kernel for QuantizeInt8 {
    type Args<M: Mode> = QuantizeInt8Args<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let parts = Extent::dim("rows").times((self.d / PART).into());
        LaunchRule::new(self.threads).grid(parts.per(self.threads.max(1).into()))
    }

    fn body<'k>(&self, k: K<'k>, args: QuantizeInt8Args<Body<'k>>) {
        let QuantizeInt8Args { x, quants, scales, rows } = args;
        let part = k.global_tid();
        let inside = part.lt(rows * ((k.dim(self.d) / PART).reg()));
        let quantized = quantize(k, &Floats::from(x).ld_vec_if(inside, part * PART, PART), |scale| scale);
        quantized.store(Some(inside), quants, part * PART);
        let stores = inside & quantized.is_first(k);
        let block = part / (BLOCK / PART);
        scales.st_if(stores, block, quantized.scale);
    }
}
