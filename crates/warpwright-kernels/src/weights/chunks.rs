//! Planes, read chunk by chunk into halves: what a step of a product on the tensor cores needs.
//!
//! A *step* is 64 weights of a row, in *runs* of 16 that lie side by side in a tile. A *chunk* is 16 bytes of
//! the plane `quants`, and what it takes to decode them; the chunks of a step are neighbours in memory:
//!
//! ```text
//!               chunks of a step   runs of a chunk
//!   Q8_0               4           1: weights 16c .. 16c + 16
//!   others             2           2: the low halves of its bytes, the high halves
//! ```
//!
//! In the planes of superblocks, halves of units are interleaved, so that a step is the same half of two units
//! and its runs lie 32 weights apart: [`ChunkReader::column`] says where.
//!
//! Every `f16` is a multiple of 2⁻²⁴, and so is a weight that is made of `f16` and whole numbers. What is
//! small is therefore exact in half precision, and what is not is rounded to 11 bits: once where
//! the weight is `d · q`, and where sub-blocks have scales of their own, twice (the scale, the weight).
//!
//! With a minimum, weights are differences of numbers that are larger than they: what rounding leaves of these would be
//! much of the weight. So the weight of the middle quant is made first, of scale and minimum with what their rounding
//! left, and others are counted from there: `d · sc · (q - middle) + (d · sc · middle - dmin · m)`.

use super::WeightFormat;
use super::planes::{Part, Planes};
use super::words::load_words;
use warpwright_dsl::*;

/// Weights of a step.
pub(crate) const STEP: u32 = 64;
/// Weights of a run.
pub(crate) const RUN: u32 = 16;

/// The same four bits of every byte.
const NIBBLES: u32 = 0x0f0f_0f0f;

/// The planes of a quantised matrix: a handle, free to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkReader<'k> {
    format: WeightFormat,
    k: u32,
    planes: Ptr<'k, Global, u8>,
    /// Where `quants` and the planes beside it begin, in the order of the format.
    offsets: [u64; 4],
}

/// A chunk as it was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<'k> {
    format: WeightFormat,
    quants: Vec<Reg<'k, u32>>,
    /// The fifth bits or the upper bits.
    upper: Vec<Reg<'k, u32>>,
    scales: Scales<'k>,
}

/// What quants are multiplied with.
#[derive(Clone, Debug)]
enum Scales<'k> {
    /// `d`.
    Block(Reg<'k, F16>),
    /// The words of the superblock's header, and that of the unit.
    Header { all: [Reg<'k, u32>; 4], unit: Reg<'k, u32> },
    /// The word that has the scales of the two runs as bytes 0 and 2, and `d`.
    Bytes { scales: Reg<'k, u32>, d: Reg<'k, F16> },
}

impl<'k> ChunkReader<'k> {
    /// The planes of `n` rows of `k` weights of a quantised format.
    pub(crate) fn new(format: WeightFormat, n: u32, k: u32, planes: Ptr<'k, Global, u8>) -> Self {
        let mut offsets = [0; 4];
        let layout = Planes::new(format, n, k);
        offsets.iter_mut().zip(layout.iter()).for_each(|(offset, plane)| *offset = plane.offset);
        debug_assert!(layout.get(Part::Values).is_none(), "numbers have no chunks");
        ChunkReader { format, k, planes, offsets }
    }

    /// Chunks of a step.
    pub(crate) const fn chunks(format: WeightFormat) -> u32 {
        match format {
            WeightFormat::Q8_0 => 4,
            _ => 2,
        }
    }

    /// Runs of a chunk.
    pub(crate) const fn runs(format: WeightFormat) -> u32 {
        STEP / RUN / Self::chunks(format)
    }

    /// Whether a step is 64 weights that follow one another.
    pub(crate) const fn in_order(format: WeightFormat) -> bool {
        format.block() < 256
    }

    /// Which weight of the row a run of a step begins with.
    pub(crate) fn column(format: WeightFormat, step: Reg<'k, u32>, run: Reg<'k, u32>) -> Reg<'k, u32> {
        if Self::in_order(format) {
            return step * STEP + run * RUN;
        }
        // In runs of 16: superblocks of 16, pairs of units of 8, units of 4.
        let first = (step >> 2) << 4 | (step & 1) << 3 | (step >> 1) & 1;
        first * RUN + run * (2 * RUN)
    }

    /// `bytes` bytes for each of so many weights, of the row, in plane `plane`.
    fn row(self, plane: usize, row: Reg<'k, u32>, weights: u32, bytes: u32) -> Ptr<'k, Global, u8> {
        let row_bytes = self.k / weights * bytes;
        self.planes.at(row.kernel().u64(self.offsets[plane])).at(row * row_bytes)
    }

    /// The block of 32 that a chunk is of; the last one for those beyond it.
    fn block(self, number: Reg<'k, u32>) -> Reg<'k, u32> {
        if self.k.is_multiple_of(STEP) { number } else { number.min(self.k / 32 - 1) }
    }

    /// Loads chunk `chunk` of a step of a row, which the matrix has. Where the row ends within the step, what
    /// is beyond is its last block again.
    #[track_caller]
    pub(crate) fn load(self, row: Reg<'k, u32>, step: Reg<'k, u32>, chunk: Reg<'k, u32>) -> Chunk<'k> {
        let format = self.format;
        let (quants, upper, scales) = match format {
            WeightFormat::Q8_0 => {
                let block = self.block(step * 2 + chunk / 2);
                let quants = self.row(0, row, 1, 1).at(block * 32).at((chunk % 2) * 16);
                let d = self.row(1, row, 32, 2).cast::<F16>().ld(block);
                (quants, Vec::new(), Scales::Block(d))
            }
            WeightFormat::Q4_0 => {
                let block = self.block(step * 2 + chunk);
                let d = self.row(1, row, 32, 2).cast::<F16>().ld(block);
                (self.row(0, row, 2, 1).at(block * 16), Vec::new(), Scales::Block(d))
            }
            _ => {
                // The unit in the row, and which half of it.
                let (unit, half) = ((step >> 2) << 2 | (step & 1) << 1 | chunk, (step >> 1) & 1);
                let superblock = step >> 2;
                let quants = self.row(0, row, 2, 1).at(step * 32).at(chunk * 16);
                let upper = match format {
                    WeightFormat::Q5K => {
                        load_words(self.row(1, row, 8, 1).at((unit << 1 | half) * 4), 0, 1, 4)
                    }
                    WeightFormat::Q6K => {
                        load_words(self.row(1, row, 4, 1).at((unit << 1 | half) * 8), 0, 2, 8)
                    }
                    _ => Vec::new(),
                };
                let scales = if format == WeightFormat::Q6K {
                    let scales = self.row(2, row, 16, 1).cast::<u32>().ld(unit);
                    let d = self.row(3, row, 256, 2).cast::<F16>().ld(superblock);
                    Scales::Bytes { scales: scales >> (half * 8), d }
                } else {
                    let plane = if format == WeightFormat::Q5K { 2 } else { 1 };
                    let headers = self.row(plane, row, 16, 1).cast::<u32>();
                    let all: [_; 4] = headers.ld_vec(superblock * 4);
                    // That of the unit, out of the two of a pair.
                    let (second, odd) = ((step & 1).ne(0), chunk.ne(0));
                    let of = |pair: usize| odd.select(all[2 * pair + 1], all[2 * pair]);
                    Scales::Header { all, unit: second.select(of(1), of(0)) }
                };
                (quants, upper, scales)
            }
        };
        // The line that the next steps need comes along.
        Chunk { format, quants: load_words(quants.prefetch_128(), 0, 4, 16), upper, scales }
    }
}

impl<'k> Chunk<'k> {
    /// The runs of the chunk, each as 16 halves in their order.
    #[track_caller]
    pub(crate) fn decode(&self) -> Vec<[Reg<'k, u32>; 8]> {
        match (self.format, &self.scales) {
            (WeightFormat::Q8_0, &Scales::Block(d)) => {
                // Signed bytes, moved up by 128.
                let bytes = |i: usize| self.quants[i] ^ 0x8080_8080;
                let d = both(d);
                vec![run(Place::Low, bytes, 128.0, |q| q * d)]
            }
            (_, &Scales::Block(d)) => {
                let d = both(d);
                Place::BOTH
                    .map(|place| run(place, |i| self.quants[i] & place.mask(), 8.0, |q| q * d))
                    .to_vec()
            }
            (_, &Scales::Header { all, unit }) => {
                let middle = if self.format == WeightFormat::Q5K { 16.0 } else { 8.0 };
                let runs = scales_and_minima(all, unit).map(|(part, [rounded, rest])| {
                    let of_middle = |pair| twice(pair, 0).mul_add(middle, -twice(pair, 1));
                    let (scale, weight) = (twice(rounded, 0), of_middle(rounded) + of_middle(rest));
                    let (place, quant) = self.quants_of(part);
                    run(place, quant, middle, |q| q.mul_add(scale, weight))
                });
                runs.to_vec()
            }
            (_, &Scales::Bytes { scales, d }) => {
                let magic = scales.kernel().u32(MAGIC);
                let scales = (scales ^ 0x8080_8080).prmt(magic, 0x4240).bits::<F16x2>() - (1024.0 + 128.0);
                let scales = scales * both(d);
                let runs = [0, 1].map(|part| {
                    let scale = twice(scales, part);
                    let (place, quant) = self.quants_of(part);
                    run(place, quant, 32.0, |q| q * scale)
                });
                runs.to_vec()
            }
        }
    }

    /// The words of a run of a superblock: the low or high halves of bytes, with their upper bits.
    fn quants_of(&self, part: u32) -> (Place, impl Fn(usize) -> Reg<'k, u32> + '_) {
        // With bits above them, high halves have to move down.
        let place = if self.upper.is_empty() { Place::BOTH[part as usize] } else { Place::Low };
        let quant = move |i: usize| {
            let halves = || (self.quants[i] >> (4 * part)) & NIBBLES;
            let at = i as u32;
            match self.format {
                // Bit `2i + part` of each byte becomes bit 4.
                WeightFormat::Q5K => halves() | moved(self.upper[0], 2 * at + part, 4) & 0x1010_1010,
                // Bits `4(i % 2) + 2 part` and the next become bits 4 and 5.
                WeightFormat::Q6K => {
                    halves() | moved(self.upper[i / 2], 4 * (at % 2) + 2 * part, 4) & 0x3030_3030
                }
                _ => self.quants[i] & place.mask(),
            }
        };
        (place, quant)
    }
}

/// Where numbers stand in their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// From the lowest bit on.
    Low,
    /// In the upper four bits.
    High,
}

impl Place {
    const BOTH: [Place; 2] = [Place::Low, Place::High];

    /// The four bits, in every byte.
    fn mask(self) -> u32 {
        if self == Place::Low { NIBBLES } else { NIBBLES << 4 }
    }
}

/// Half precision 1024, whose last bit is 1: with a byte in the place of its low bits it is 1024 more than the
/// byte.
const MAGIC: u32 = 0x6464_6464;

/// The numbers in the bytes of four words, less `zero`, each pair through the function.
fn run<'k>(
    place: Place,
    word: impl Fn(usize) -> Reg<'k, u32>,
    zero: f32,
    decode: impl Fn(Reg<'k, F16x2>) -> Reg<'k, F16x2>,
) -> [Reg<'k, u32>; 8] {
    let words: [_; 4] = std::array::from_fn(word);
    let pairs = words.map(|word| numbers(place, word, zero));
    std::array::from_fn(|i| decode(pairs[i / 2][i % 2]).bits())
}

/// The numbers in four bytes, less `zero`, exactly.
fn numbers<'k>(place: Place, bytes: Reg<'k, u32>, zero: f32) -> [Reg<'k, F16x2>; 2] {
    let k = bytes.kernel();
    [0x4140, 0x4342].map(|pair| {
        let raised = bytes.prmt(k.u32(MAGIC), pair).bits::<F16x2>();
        match place {
            Place::Low => raised - (1024.0 + zero),
            // Sixteen times the number.
            Place::High => raised.mul_add(1.0 / 16.0, -(1024.0 / 16.0 + zero)),
        }
    })
}

/// `(d · sc, dmin · m)` of the unit's two sub-blocks, by number: rounded, and what rounding has left, which is exact.
fn scales_and_minima<'k>(all: [Reg<'k, u32>; 4], unit: Reg<'k, u32>) -> [(u32, [Reg<'k, F16x2>; 2]); 2] {
    // Each unit has two bits of every byte of `d` and `dmin`.
    let bits = |i: u32| moved(all[i as usize], 6, 2 * i) & (0x0303_0303 << (2 * i));
    let d = (1..4).fold(bits(0), |d, i| d | bits(i)).bits::<F16x2>();
    let [first, second] = numbers(Place::Low, unit & 0x3f3f_3f3f, 0.0).map(|six_bits| {
        let rounded = six_bits * d;
        [rounded, six_bits.mul_add(d, -rounded)]
    });
    [(0, first), (1, second)]
}

/// Bit `from` moved to bit `to`.
fn moved(word: Reg<'_, u32>, from: u32, to: u32) -> Reg<'_, u32> {
    if from >= to { word >> (from - to) } else { word << (to - from) }
}

/// The number twice.
fn both(d: Reg<'_, F16>) -> Reg<'_, F16x2> {
    d.kernel().pair(d, d)
}

/// The low or the high half of a pair, twice.
fn twice(pair: Reg<'_, F16x2>, high: u32) -> Reg<'_, F16x2> {
    let word = pair.bits::<u32>();
    word.prmt(word, 0x1010 + 0x2222 * high).bits()
}
