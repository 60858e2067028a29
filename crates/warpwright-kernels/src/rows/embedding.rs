//! Lookup of rows in a table of weights: the first step of a model.

use crate::data::floats::{Dtype, Floats};
use crate::weights::WeightFormat;
use crate::weights::gguf::GgufRow;
use warpwright_dsl::*;

/// `y[t] = table[ids[t]]`, one row of `d` weights for each token.
///
/// `table` is `rows × d` as in a GGUF file (an output matrix that is tied to the embedding is repacked in addition).
/// `ids` holds a `u32` for each of `tokens` tokens; it is read from device memory so that a captured graph can be
/// replayed. `y` is `tokens × d`, row-major, of type `out`. An id outside the table gives a row of zeros, and nothing
/// outside the table is read.
///
/// Weights are exact in `f32`; they are rounded once if the format subtracts a minimum, and once if the matrix has a
/// scale of its own. Then they are rounded to `out`; values beyond the range of `f16` become ±65504. A thread decodes
/// eight weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y[t] = table[ids[t]]: rows of a table in a GGUF file's layout, zeros for ids that it has not",
    examples(
        "format=f32 d=5",
        "format=f16 out=f16 d=2048",
        "format=bf16 out=bf16 d=1 rows=1",
        "format=q8_0 d=1536 rows=151936",
        "format=q4_0 out=f16",
        "format=q4_k d=256 out=bf16",
        "format=q5_0 d=896 rows=151936",
        "format=q5_k",
        "format=q6_k d=2048",
        "format=q6_k d=1536 rows=151936 out=f16"
    )
)]
pub struct Embedding {
    /// How the weights are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of the table: the size of the vocabulary.
    #[field(range = 1..=1 << 24, default = 128256)]
    pub rows: u32,
    /// Weights of a row, a multiple of the format's block.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub d: u32,
    /// Element type of `y`.
    #[field(default = "f32")]
    pub out: Dtype,
}

/// The arguments of [`Embedding`].
#[derive(Args)]
#[args(of = Embedding)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct EmbeddingArgs<M: Mode> {
    #[arg(len = Extent::new(of.format.matrix_bytes(of.rows.into(), of.d)), constant)]
    pub table: M::In<u8>,
    #[arg(len = tokens)]
    pub ids: M::In<u32>,
    #[arg(len = tokens.times(of.d.into()), dtype = of.out.ty())]
    pub y: M::AnyOut,
    pub tokens: M::Dim,
}

/// Threads of a block.
const THREADS: u32 = 128;

impl Embedding {
    /// Rows of `d` weights out of `rows`, as `f32`.
    pub fn new(format: WeightFormat, rows: u32, d: u32) -> Self {
        Embedding { format, rows, d, out: Dtype::F32 }
    }

    /// Weights of a group: what a thread decodes.
    fn group(&self) -> u32 {
        GgufRow::group(self.format, self.d)
    }

    /// Groups of weights in a row.
    fn groups(&self) -> u32 {
        self.d / self.group()
    }

    /// Bytes of a row of the table.
    fn row_bytes(&self) -> u32 {
        self.format.row_bytes(self.d) as u32
    }
}

impl Kernel for Embedding {
    type Args<M: Mode> = EmbeddingArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let across = self.groups().div_ceil(THREADS).max(1);
        LaunchRule::new(THREADS).grid_3d([Extent::dim("tokens"), across.into(), Extent::new(1)])
    }

    fn check(&self) -> Result<(), BuildError> {
        self.format.check_row("d", self.d)
    }

    fn body<'k>(&self, k: K<'k>, args: EmbeddingArgs<Body<'k>>) {
        let EmbeddingArgs { table, ids, y, .. } = args;
        let y = Floats::from(y);
        let (d, row_bytes) = (k.dim(self.d), k.dim(self.row_bytes()));
        let (rows, count) = (k.dim(self.rows), self.group());
        let group = k.ctaid_y() * THREADS + k.tid();
        // Behind the rows.
        let scale =
            self.format.has_tensor_scale().then(|| table.row(rows.reg(), row_bytes).cast::<f32>().ld(0));

        let store = || {
            let id = ids.ld(k.ctaid());
            let row = GgufRow { format: self.format, k: self.d, bytes: table.row(id, row_bytes) };
            let y = y.row(k.ctaid(), d).at(group * count);
            let known = id.lt(rows);
            k.when(known, || {
                let mut weights = row.decode(group);
                if let Some(scale) = scale {
                    weights.iter_mut().for_each(|weight| *weight = *weight * scale);
                }
                y.st_vec(0, &weights);
            });
            k.when(!known, || y.st_vec(0, &vec![k.f32(0.0); count as usize]));
        };
        match d.is_multiple_of(THREADS * count) {
            true => store(),
            false => k.when(group.lt(d / count), store),
        }
    }
}
