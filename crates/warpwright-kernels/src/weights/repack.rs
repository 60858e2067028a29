//! From the bytes of a GGUF file to planes, and back, bit for bit: see `docs/weights.md`.
//!
//! A thread moves a block, or 16 bytes of a row of numbers. Blocks follow one another without gaps on both
//! sides, so a block's number is all that a place depends on. What moves are words of four bytes, whose bytes
//! go through the same shifts and masks.

use super::words::{load_words, store_words};
use super::{Part, Planes, WeightFormat};
use warpwright_dsl::*;

/// Makes the planes of a matrix from its bytes in a GGUF file.
///
/// `gguf` holds `n` rows of `k` weights as they lie in the file, `planes` the buffer that [`Planes`]
/// describes. Every byte of every plane is written; what lies between planes is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the planes of a weight matrix from its bytes in a GGUF file",
    examples(
        "format=f32 n=3 k=5",
        "format=f16",
        "format=bf16 n=1 k=1",
        "format=q8_0",
        "format=q4_0",
        "format=q5_k k=14336",
        "format=q6_k n=128256"
    )
)]
pub struct Repack {
    /// How the weights are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of the matrix.
    #[field(range = 1..=1 << 24, default = 4096)]
    pub n: u32,
    /// Weights of a row, a multiple of the format's block.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub k: u32,
}

/// The arguments of [`Repack`].
#[derive(Args)]
#[args(of = Repack)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct RepackArgs<M: Mode> {
    #[arg(len = Extent::new(of.matrix().gguf_bytes()), constant)]
    pub gguf: M::In<u8>,
    #[arg(len = Extent::new(of.matrix().planes().bytes()))]
    pub planes: M::Out<u8>,
}

/// Makes the bytes of a GGUF file from the planes: the inverse of [`Repack`].
///
/// `planes` is the buffer that [`Planes`] describes, `gguf` holds `n` rows of `k` weights as they lie in the
/// file; all of it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the bytes of a GGUF file from the planes of a weight matrix",
    examples(
        "format=f32 n=3 k=5",
        "format=f16",
        "format=bf16 n=1 k=1",
        "format=q8_0",
        "format=q4_0",
        "format=q5_k k=14336",
        "format=q6_k n=128256"
    )
)]
pub struct Unpack {
    /// How the weights are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of the matrix.
    #[field(range = 1..=1 << 24, default = 4096)]
    pub n: u32,
    /// Weights of a row, a multiple of the format's block.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub k: u32,
}

/// The arguments of [`Unpack`].
#[derive(Args)]
#[args(of = Unpack)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct UnpackArgs<M: Mode> {
    #[arg(len = Extent::new(of.matrix().planes().bytes()), constant)]
    pub planes: M::In<u8>,
    #[arg(len = Extent::new(of.matrix().gguf_bytes()))]
    pub gguf: M::Out<u8>,
}

/// Threads of a block.
const THREADS: u32 = 128;

impl Repack {
    /// The kernel for `n` rows of `k` weights.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        Repack { format, n, k }
    }

    fn matrix(&self) -> Matrix {
        Matrix { format: self.format, n: self.n, k: self.k }
    }
}

impl Unpack {
    /// The kernel for `n` rows of `k` weights.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        Unpack { format, n, k }
    }

    fn matrix(&self) -> Matrix {
        Matrix { format: self.format, n: self.n, k: self.k }
    }
}

impl Kernel for Repack {
    type Args<M: Mode> = RepackArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        self.matrix().launch()
    }

    fn check(&self) -> Result<(), BuildError> {
        self.matrix().check()
    }

    fn body<'k>(&self, k: K<'k>, RepackArgs { gguf, planes }: RepackArgs<Body<'k>>) {
        let matrix = self.matrix();
        k.when(k.global_tid().lt(matrix.items()), || {
            let sides = matrix.sides(k, gguf, planes);
            match self.format {
                WeightFormat::F32 => sides.numbers::<u32>(Way::In),
                WeightFormat::F16 | WeightFormat::Bf16 => sides.numbers::<u16>(Way::In),
                WeightFormat::Q8_0 => sides.block_of_32(Way::In, 8),
                WeightFormat::Q4_0 => sides.block_of_32(Way::In, 4),
                WeightFormat::Q4K => {
                    sides.repack_header();
                    sides.quants_of_four_bits(Way::In, 16);
                }
                WeightFormat::Q5K => {
                    sides.repack_header();
                    sides.fifth(Way::In);
                    sides.quants_of_four_bits(Way::In, 48);
                }
                WeightFormat::Q6K => sides.repack_q6_k(),
            }
        });
    }
}

impl Kernel for Unpack {
    type Args<M: Mode> = UnpackArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        self.matrix().launch()
    }

    fn check(&self) -> Result<(), BuildError> {
        self.matrix().check()
    }

    fn body<'k>(&self, k: K<'k>, UnpackArgs { planes, gguf }: UnpackArgs<Body<'k>>) {
        let matrix = self.matrix();
        k.when(k.global_tid().lt(matrix.items()), || {
            let sides = matrix.sides(k, gguf, planes);
            match self.format {
                WeightFormat::F32 => sides.numbers::<u32>(Way::Out),
                WeightFormat::F16 | WeightFormat::Bf16 => sides.numbers::<u16>(Way::Out),
                WeightFormat::Q8_0 => sides.block_of_32(Way::Out, 8),
                WeightFormat::Q4_0 => sides.block_of_32(Way::Out, 4),
                WeightFormat::Q4K => {
                    sides.unpack_header();
                    sides.quants_of_four_bits(Way::Out, 16);
                }
                WeightFormat::Q5K => {
                    sides.unpack_header();
                    sides.fifth(Way::Out);
                    sides.quants_of_four_bits(Way::Out, 48);
                }
                WeightFormat::Q6K => sides.unpack_q6_k(),
            }
        });
    }
}

/// What both directions know of a matrix.
#[derive(Clone, Copy)]
struct Matrix {
    format: WeightFormat,
    n: u32,
    k: u32,
}

impl Matrix {
    fn check(self) -> Result<(), BuildError> {
        self.format.check_row("k", self.k)?;
        if self.n.checked_mul(self.items_of_a_row()).is_some() {
            return Ok(());
        }
        Err(BuildError::field("n", self.n, "such that a thread for each block has a number"))
    }

    fn planes(self) -> Planes {
        Planes::new(self.format, self.n, self.k)
    }

    fn gguf_bytes(self) -> u64 {
        u64::from(self.n).saturating_mul(self.format.row_bytes(self.k))
    }

    /// What a thread moves of a row.
    fn items_of_a_row(self) -> u32 {
        if self.format.is_float() {
            (self.format.row_bytes(self.k).div_ceil(16) as u32).max(1)
        } else {
            self.format.blocks(self.k)
        }
    }

    fn items(self) -> u32 {
        self.n.saturating_mul(self.items_of_a_row())
    }

    fn launch(self) -> LaunchRule {
        LaunchRule::new(THREADS).grid(self.items().div_ceil(THREADS))
    }

    /// The thread's item on both sides.
    fn sides<'k>(self, k: K<'k>, gguf: Ptr<'k, Global, u8>, planes: Ptr<'k, Global, u8>) -> Sides<'k> {
        let layout = self.planes().iter().map(|plane| (plane.part, plane.offset)).collect();
        Sides { matrix: self, item: k.global_tid(), gguf, planes, layout }
    }
}

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From the file into planes.
    In,
    /// Out of planes, to the file's bytes.
    Out,
}

/// A block in the file and in the planes.
struct Sides<'k> {
    matrix: Matrix,
    item: Reg<'k, u32>,
    gguf: Ptr<'k, Global, u8>,
    planes: Ptr<'k, Global, u8>,
    layout: Vec<(Part, u64)>,
}

/// A field of every byte, shifted down and masked.
fn field<'k>(word: Reg<'k, u32>, shift: u32, byte: u32) -> Reg<'k, u32> {
    (word >> shift) & (byte * 0x0101_0101)
}

impl<'k> Sides<'k> {
    /// The block in the file.
    fn block(&self) -> Ptr<'k, Global, u8> {
        self.gguf.at(self.item * self.matrix.format.block_bytes())
    }

    /// The block's `bytes` bytes of a plane.
    fn plane(&self, part: Part, bytes: u32) -> Ptr<'k, Global, u8> {
        let offset = self.layout.iter().find(|plane| plane.0 == part).map_or(0, |plane| plane.1);
        self.planes.at(self.item.kernel().u64(offset)).at(self.item * bytes)
    }

    /// Moves `count` words at byte `at` of the block to the same number at a place of a plane, or back.
    fn words(&self, way: Way, at: u32, plane: Ptr<'k, Global, u8>, count: u32) {
        let alignment = self.matrix.format.alignment();
        match way {
            Way::In => store_words(plane, 0, &load_words(self.block(), at, count, alignment), 16),
            Way::Out => store_words(self.block(), at, &load_words(plane, 0, count, 16), alignment),
        }
    }

    /// Moves the `f16` at byte `at` of the block to its plane, or back.
    fn half(&self, way: Way, at: u32, part: Part) {
        let (block, plane) = (self.block().at(at).cast::<u16>(), self.plane(part, 2).cast::<u16>());
        match way {
            Way::In => plane.st(0, block.ld(0)),
            Way::Out => block.st(0, plane.ld(0)),
        }
    }

    /// `f16 d`, then the quants of 32 weights.
    fn block_of_32(&self, way: Way, bits: u32) {
        self.half(way, 0, Part::Scales);
        self.words(way, 2, self.plane(Part::Quants, 4 * bits), bits);
    }

    /// The chunk of 16 quant bytes of a unit: halves of units are interleaved.
    fn quants(&self, unit: u32, half: u32) -> Ptr<'k, Global, u8> {
        self.plane(Part::Quants, 128).at(half * 64 + unit * 16)
    }

    /// The 128 quant bytes of a superblock, which begin at byte `at`.
    fn quants_of_four_bits(&self, way: Way, at: u32) {
        for (unit, half) in (0..4).flat_map(|unit| [(unit, 0), (unit, 1)]) {
            self.words(way, at + unit * 32 + half * 16, self.quants(unit, half), 4);
        }
    }

    /// `f16 d, dmin; u8 scales[12]` into a word for each unit.
    fn repack_header(&self) {
        let [d, a, b, c] = self.block().cast::<u32>().ld_vec(0);
        // The scales and the minima of the lower four sub-blocks, then of the upper four.
        let scales = [field(a, 0, 0x3f), field(c, 0, 0x0f) | field(a, 2, 0x30)];
        let minima = [field(b, 0, 0x3f), field(c, 4, 0x0f) | field(b, 2, 0x30)];
        let units = std::array::from_fn::<_, 4, _>(|unit| {
            let interleave = if unit % 2 == 0 { 0x5140 } else { 0x7362 };
            let six_bits = scales[unit / 2].prmt(minima[unit / 2], interleave);
            six_bits | field(d, 2 * unit as u32, 3) << 6
        });
        self.plane(Part::Headers, 16).cast::<u32>().st_vec(0, units);
    }

    /// The inverse of [`repack_header`](Self::repack_header).
    fn unpack_header(&self) {
        let units: [_; 4] = self.plane(Part::Headers, 16).cast::<u32>().ld_vec(0);
        let upper = |unit: usize| field(units[unit], 6, 3) << (2 * unit as u32);
        let d = (1..4).fold(upper(0), |d, unit| d | upper(unit));
        let gather = |half: usize, even: u32| field(units[2 * half].prmt(units[2 * half + 1], even), 0, 0x3f);
        let scales = [0, 1].map(|half| gather(half, 0x6420));
        let minima = [0, 1].map(|half| gather(half, 0x7531));
        let a = scales[0] | field(scales[1], 0, 0x30) << 2;
        let b = minima[0] | field(minima[1], 0, 0x30) << 2;
        let c = field(scales[1], 0, 0x0f) | field(minima[1], 0, 0x0f) << 4;
        self.block().cast::<u32>().st_vec(0, [d, a, b, c]);
    }

    /// The fifth bits: in the file, byte `l` has those of the weights at `l` of the eight sub-blocks; in the
    /// plane, a unit has its own. Both are words of pairs of bits, four by four for each half, transposed.
    fn fifth(&self, way: Way) {
        let plane = self.plane(Part::Fifth, 32);
        let (from, to) = match way {
            Way::In => (load_words(self.block(), 16, 8, 16), plane),
            Way::Out => (load_words(plane, 0, 8, 16), self.block().at(16)),
        };
        // In the file, word `4 * half + w` has the pair of unit `u` at `2 * u`; in the plane, word
        // `2 * u + half` has the pair of quant word `w` at `2 * w`.
        let in_file = |half: usize, w: usize| 4 * half + w;
        let in_plane = |half: usize, u: usize| 2 * u + half;
        let words: Vec<_> = (0..8)
            .map(|i| {
                let pair = |j: usize| match way {
                    Way::In => field(from[in_file(i % 2, j)], 2 * (i / 2) as u32, 3),
                    Way::Out => field(from[in_plane(i / 4, j)], 2 * (i % 4) as u32, 3),
                };
                (1..4).fold(pair(0), |word, j| word | pair(j) << (2 * j as u32))
            })
            .collect();
        store_words(to, 0, &words, 16);
    }

    /// `u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d`.
    fn repack_q6_k(&self) {
        self.words(Way::In, 192, self.plane(Part::Scales, 16), 4);
        self.half(Way::In, 208, Part::D);
        for half in 0..2 {
            let low = load_words(self.block(), 64 * half, 16, 2);
            let upper = load_words(self.block(), 128 + 32 * half, 8, 2);
            // A unit is the low, or the high, halves of `ql`, and half of the bits of `qh`.
            for part in 0..2 {
                let unit = 2 * half + part;
                let quants: Vec<_> = (0..8)
                    .map(|i| field(low[i], 4 * part, 0x0f) | field(low[i + 8], 4 * part, 0x0f) << 4)
                    .collect();
                store_words(self.quants(unit, 0), 0, &quants[..4], 16);
                store_words(self.quants(unit, 1), 0, &quants[4..], 16);
                let pairs = |i: usize| field(upper[i], 4 * part, 0x0f);
                let uppers: Vec<_> = (0..4).map(|j| pairs(2 * j) | pairs(2 * j + 1) << 4).collect();
                store_words(self.plane(Part::Upper, 64), 16 * unit, &uppers, 16);
            }
        }
    }

    /// The inverse of [`repack_q6_k`](Self::repack_q6_k).
    fn unpack_q6_k(&self) {
        self.words(Way::Out, 192, self.plane(Part::Scales, 16), 4);
        self.half(Way::Out, 208, Part::D);
        for half in 0..2 {
            let units = [2 * half, 2 * half + 1];
            let quants = units.map(|unit| {
                let mut words = load_words(self.quants(unit, 0), 0, 4, 16);
                words.extend(load_words(self.quants(unit, 1), 0, 4, 16));
                words
            });
            let uppers = units.map(|unit| load_words(self.plane(Part::Upper, 64), 16 * unit, 4, 16));
            let low: Vec<_> = (0..16)
                .map(|i| {
                    let of = |part: usize| field(quants[part][i % 8], 4 * (i as u32 / 8), 0x0f);
                    of(0) | of(1) << 4
                })
                .collect();
            let upper: Vec<_> = (0..8)
                .map(|i| {
                    let of = |part: usize| field(uppers[part][i / 2], 4 * (i as u32 % 2), 0x0f);
                    of(0) | of(1) << 4
                })
                .collect();
            store_words(self.block(), 64 * half, &low, 2);
            store_words(self.block(), 128 + 32 * half, &upper, 2);
        }
    }

    /// 16 bytes of a row of numbers; in the planes, what the row has not is zero.
    fn numbers<T: Number<Literal: Default>>(&self, way: Way) {
        let k = self.item.kernel();
        let (width, items) = (16 / T::TYPE.bytes(), self.matrix.items_of_a_row());
        let (row, first) = (self.item / items, (self.item % items) * width);
        let in_file = self.gguf.cast::<T>().at(row * self.matrix.k).at(first);
        let plane = self.plane(Part::Values, 16);
        if self.matrix.k.is_multiple_of(width) {
            let (in_file, plane) = (in_file.cast::<u32>(), plane.cast::<u32>());
            return match way {
                Way::In => plane.st_vec(0, in_file.ld_vec::<4>(0)),
                Way::Out => in_file.st_vec(0, plane.ld_vec::<4>(0)),
            };
        }
        let plane = plane.cast::<T>();
        let inside = |i: u32| (first + i).lt(self.matrix.k);
        for i in 0..width {
            match way {
                Way::In => plane.st(i, in_file.ld_if(inside(i), i, k.value::<T>(T::Literal::default()))),
                Way::Out => in_file.st_if(inside(i), i, plane.ld(i)),
            }
        }
    }
}
