//! Copies of rows, from one element type to another.

use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::quantized::Rows;
use warpwright_dsl::*;

/// `y = x`, element by element, over `rows × columns`, row-major, each with its own pitch: a copy if the types are the
/// same, otherwise a conversion. Each thread takes 16 bytes if the types, the pitches and `columns` allow it. The gaps
/// between the rows of `y` are not written.
///
/// Conversion to a smaller type rounds to nearest. Values beyond the largest half, infinities included, become ±65504,
/// so that no finite number becomes infinite. NaN stays NaN. `q8_0` (rows of the KV cache) uses two buffers: signed
/// bytes, and after them in the argument list their `f16` scales, one for each 32. Conversion from `q8_0` is exact and
/// rounded once; conversion to it is within 0.57 of the scale, for numbers up to 127 · 65504.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = x over rows with pitches, from one element type to another; q8_0 is that of the KV cache",
    examples(
        "columns=2048 from=f32 to=bf16",
        "columns=1024 from=f16 to=f32 from_gap=2048",
        "columns=128 from=q8_0 to=f16",
        "columns=128 from=f32 to=q8_0 from_gap=5888",
        "columns=100 from=f16 to=f16 to_gap=28",
        "columns=33 from=bf16 to=f16"
    )
)]
pub struct Cast {
    /// Elements of a row; with `q8_0` a multiple of 32, as the gaps are.
    #[field(range = 1..=1 << 24, default = 4096)]
    pub columns: u32,
    /// Element type of `x`.
    #[field(default = "f32")]
    pub from: CacheDtype,
    /// Element type of `y`.
    #[field(default = "f16")]
    pub to: CacheDtype,
    /// Elements between rows of `x`.
    #[field(range = 0..=1 << 20, default = 0)]
    pub from_gap: u32,
    /// Elements between rows of `y`.
    #[field(range = 0..=1 << 20, default = 0)]
    pub to_gap: u32,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`Cast`].
#[derive(Args)]
#[args(of = Cast)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct CastArgs<M: Mode> {
    #[arg(len = rows.times(of.x_pitch().into()), dtype = of.from.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows.times(of.x_pitch().into()).per(BLOCK.into()), when = of.from == CacheDtype::Q8_0)]
    pub x_scales: Option<M::In<F16>>,
    #[arg(len = rows.times(of.y_pitch().into()), dtype = of.to.ty())]
    pub y: M::AnyOut,
    #[arg(len = rows.times(of.y_pitch().into()).per(BLOCK.into()), when = of.to == CacheDtype::Q8_0)]
    pub y_scales: Option<M::Out<F16>>,
    pub rows: M::Scalar<u32>,
}

impl Cast {
    /// Rows without gaps.
    pub fn new(columns: u32, from: CacheDtype, to: CacheDtype) -> Self {
        Cast { columns, from, to, from_gap: 0, to_gap: 0, threads: 256 }
    }

    /// Elements from one row of `x` to the next.
    fn x_pitch(&self) -> u32 {
        self.columns.saturating_add(self.from_gap)
    }

    /// Elements from one row of `y` to the next.
    fn y_pitch(&self) -> u32 {
        self.columns.saturating_add(self.to_gap)
    }

    /// Elements that a thread moves.
    fn vector(&self) -> u32 {
        let together = (self.columns | self.from_gap | self.to_gap).trailing_zeros().min(4);
        (1 << together).min(16 / self.from.bytes().max(self.to.bytes())).min(8)
    }
}

impl Kernel for Cast {
    type Args<M: Mode> = CastArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.columns / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn check(&self) -> Result<(), BuildError> {
        let Cast { columns, from, to, from_gap, to_gap, .. } = *self;
        if from == CacheDtype::Q8_0 && to == CacheDtype::Q8_0 {
            return Err(BuildError::field("to", to, "floats where the source is q8_0"));
        }
        let granule = if [from, to].contains(&CacheDtype::Q8_0) { BLOCK } else { 1 };
        for (field, elements) in [("columns", columns), ("from_gap", from_gap), ("to_gap", to_gap)] {
            if !elements.is_multiple_of(granule) {
                return Err(BuildError::field(field, elements, "a multiple of 32 with q8_0"));
            }
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: CastArgs<Body<'k>>) {
        let (x, y) = (Rows::of(args.x, args.x_scales), Rows::of(args.y, args.y_scales));
        let [from_pitch, to_pitch] = [self.x_pitch(), self.y_pitch()].map(|pitch| k.dim(pitch));
        let chunks = (k.dim(self.columns) / self.vector()).reg();
        let chunk = k.global_tid();
        let (row, at) = (chunk / chunks, chunk % chunks * self.vector());
        // All lanes go on, for a scale is made by several.
        let inside = Some(row.lt(args.rows));
        let numbers = x.row_of(row.to(), from_pitch).load(k, inside, at, self.vector());
        y.row_of(row.to(), to_pitch).store(k, inside, at, &numbers);
    }
}
