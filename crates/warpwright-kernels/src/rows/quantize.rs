//! Quantising activations for the integer path of matrix products.

use crate::data::eight_bits::{BLOCK, quantize};
use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{DTYPES, Domain, Entry, Field, THREADS, boxed, check_threads};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Numbers of a thread: four neighbouring lanes have a block.
const PART: u32 = 8;

/// Rows of `d` floats as `q8_1`, 32 neighbours at a time: `q = round(x / scale)` with
/// `scale = max |x| / 127`, and `sum = scale · Σ q`.
///
/// `x` and `quants` (signed bytes) are `rows × d`, row-major; `scales` and `sums` are `rows × d / 32` and
/// of `f32`, since halves overflow where activations have outliers. `|x - scale · q| ≤ 0.501 · scale` for
/// numbers up to 10³⁷; blocks whose scale would be below 2⁻¹²⁶ are zeros. The format is ggml's, with its
/// scales and sums apart from its quants.
///
/// Each thread takes eight numbers, which it reads and writes at once.
#[derive(Clone, Copy, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct QuantizeQ8_1 {
    /// Length of a row: a multiple of 32.
    pub d: u32,
    /// Element type of `x`.
    pub input: Dtype,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
}

impl QuantizeQ8_1 {
    /// Rows of `d` numbers of `f32`, with blocks of 128 threads.
    pub fn new(d: u32) -> Self {
        QuantizeQ8_1 { d, input: Dtype::F32, threads: 128 }
    }
}

impl AnyKernel for QuantizeQ8_1 {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("quantize_q8_1_d{}_x{}_t{}", self.d, self.input, self.threads)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let all = Extent::dim("rows").times(self.d.into());
        let blocks = Extent::dim("rows").times((self.d / BLOCK).into());
        vec![
            ArgDesc::buffer("x", self.input.ty(), Role::In, all),
            ArgDesc::output::<i8>("quants", all),
            ArgDesc::output::<f32>("scales", blocks),
            ArgDesc::output::<f32>("sums", blocks),
            ArgDesc::scalar::<u32>("rows"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        let parts = Extent::dim("rows").times((self.d / PART).into());
        LaunchRule::new(self.threads).grid(parts.per(self.threads.max(1).into()))
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        vec![("d", SizeValue::U32(self.d))]
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=1 << 20).contains(&self.d) || !self.d.is_multiple_of(BLOCK) {
            return Err(BuildError::field("d", self.d, "a multiple of 32 from 32 to 1048576"));
        }
        check_threads(self.threads)
    }

    fn body<'k>(&self, k: K<'k>) {
        let x = k.floats("x", self.input);
        let quants = k.ptr_mut::<i8>("quants");
        let (scales, sums) = (k.ptr_mut::<f32>("scales"), k.ptr_mut::<f32>("sums"));
        let rows = k.scalar::<u32>("rows");
        let part = k.global_tid();
        let inside = part.lt(rows * (k.size("d", self.d).reg() / PART));
        let quantized = quantize(k, &x.ld_vec_if(inside, part * PART, PART), |scale| scale);
        quantized.store(Some(inside), quants, part * PART);
        let stores = inside & quantized.is_first(k);
        let block = part / (BLOCK / PART);
        scales.st_if(stores, block, quantized.scale);
        sums.st_if(stores, block, quantized.scale * quantized.total(k).f32());
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "quantize_q8_1",
    doc: "rows of floats as signed bytes, with a scale and a sum for each 32",
    fields: &[
        Field {
            name: "d",
            domain: Domain::Int { from: 32, to: 1 << 20, multiple_of: 32 },
            default: Some("4096"),
            doc: "length of a row",
        },
        Field { name: "dtype", domain: DTYPES, default: Some("f32"), doc: "element type of x" },
        THREADS,
    ],
    examples: &["d=14336 dtype=f16", "d=1536 dtype=bf16 threads=256", "d=32 threads=32"],
    make: |config| {
        boxed(QuantizeQ8_1 {
            d: config.u32("d"),
            input: config.dtype("dtype"),
            threads: config.u32("threads"),
        })
    },
};
