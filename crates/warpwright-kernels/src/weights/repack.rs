//! Conversion from the bytes of a GGUF file to planes, and back, bit for bit: see `docs/weights.md`.
//!
//! A thread moves at least a block and at least a unit, or 16 bytes of a row of floats. Codes move in words of four
//! neighbours, whose bytes go through the same shifts and masks; all other bytes are copied.

use super::codes::{Cut, Piece, four, gathered, spread};
use super::format::{Quants, Values};
use super::planes::UNIT;
use super::words::{aligned, load_word, store_word};
use super::{Planes, WeightFormat};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use warpwright_dsl::*;

/// Converts a matrix from its bytes in a GGUF file to planes.
///
/// `gguf` holds `n` rows of `k` weights as in the file, followed by the scale of the matrix if the format has one:
/// [`WeightFormat::matrix_bytes`]. `planes` is the buffer that [`Planes`] describes. Every byte of every plane is
/// written; the gaps between planes are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the planes of a weight matrix from its bytes in a GGUF file",
    examples(
        "format=f32 n=3 k=5",
        "format=f16",
        "format=bf16 n=1 k=1",
        "format=q8_0",
        "format=q4_0",
        "format=q4_1 k=896",
        "format=q5_0 k=896",
        "format=q5_1 n=3 k=32",
        "format=q5_k k=14336",
        "format=q6_k n=128256",
        "format=mxfp4 n=3 k=96"
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
    #[arg(len = Extent::new(of.gguf_bytes()), constant)]
    pub gguf: M::In<u8>,
    #[arg(len = Extent::new(of.planes().bytes()))]
    pub planes: M::Out<u8>,
}

/// Converts planes to the bytes of a GGUF file: the inverse of [`Repack`].
///
/// `planes` is the buffer that [`Planes`] describes. `gguf`, the input of [`Repack`], is written completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the bytes of a GGUF file from the planes of a weight matrix",
    examples(
        "format=f32 n=3 k=5",
        "format=f16",
        "format=bf16 n=1 k=1",
        "format=q8_0",
        "format=q4_0",
        "format=q4_1 k=896",
        "format=q5_0 k=896",
        "format=q5_1 n=3 k=32",
        "format=q5_k k=14336",
        "format=q6_k n=128256",
        "format=mxfp4 n=3 k=96"
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
    #[arg(len = Extent::new(of.repack().planes().bytes()), constant)]
    pub planes: M::In<u8>,
    #[arg(len = Extent::new(of.repack().gguf_bytes()))]
    pub gguf: M::Out<u8>,
}

/// Threads of a block.
const THREADS: u32 = 128;

impl Repack {
    /// The kernel for `n` rows of `k` weights.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        Repack { format, n, k }
    }
}

impl Unpack {
    /// The kernel for `n` rows of `k` weights.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        Unpack { format, n, k }
    }

    /// What it undoes, which knows how the matrix lies.
    fn repack(&self) -> Repack {
        Repack::new(self.format, self.n, self.k)
    }
}

impl Kernel for Repack {
    type Args<M: Mode> = RepackArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(THREADS).grid(self.items().div_ceil(THREADS))
    }

    fn check(&self) -> Result<(), BuildError> {
        self.format.check_row("k", self.k)?;
        if self.n.checked_mul(self.items_of_a_row()).is_some() {
            return Ok(());
        }
        Err(BuildError::field("n", self.n, "such that a thread for each block has a number"))
    }

    fn body<'k>(&self, k: K<'k>, RepackArgs { gguf, planes }: RepackArgs<Body<'k>>) {
        self.pass(k, gguf, planes, Way::In);
    }
}

impl Kernel for Unpack {
    type Args<M: Mode> = UnpackArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        self.repack().launch()
    }

    fn check(&self) -> Result<(), BuildError> {
        self.repack().check()
    }

    fn body<'k>(&self, k: K<'k>, UnpackArgs { planes, gguf }: UnpackArgs<Body<'k>>) {
        self.repack().pass(k, gguf, planes, Way::Out);
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

/// How the matrix lies and moves, whichever way.
impl Repack {
    fn planes(self) -> Planes {
        Planes::new(self.format, self.n, self.k)
    }

    fn gguf_bytes(self) -> u64 {
        self.format.matrix_bytes(self.n.into(), self.k)
    }

    /// Blocks that a thread moves: whole units of them.
    fn item_blocks(self) -> u32 {
        (UNIT / self.format.block()).max(1)
    }

    /// What threads move of a row: 16 bytes of numbers.
    fn items_of_a_row(self) -> u32 {
        if self.format.is_float() {
            (self.format.row_bytes(self.k).div_ceil(16) as u32).max(1)
        } else {
            self.format.blocks(self.k).div_ceil(self.item_blocks()).max(1)
        }
    }

    fn items(self) -> u32 {
        self.n.saturating_mul(self.items_of_a_row())
    }

    fn pass<'k>(self, k: K<'k>, gguf: Ptr<'k, Global, u8>, planes: Ptr<'k, Global, u8>, way: Way) {
        k.when(k.global_tid().lt(self.items()), || {
            let items = self.items_of_a_row();
            let (row, item) = (k.global_tid() / items, k.global_tid() % items);
            match self.format.quants() {
                Some(quants) => {
                    let sides =
                        Sides { matrix: self, quants, row, item, gguf, planes, loaded: RefCell::default() };
                    sides.codes(way);
                    sides.records(way);
                    sides.tensor_scale(way);
                }
                None if self.format == WeightFormat::F32 => {
                    self.numbers::<u32>(row, item, (gguf, planes), way)
                }
                None => self.numbers::<u16>(row, item, (gguf, planes), way),
            }
        });
    }

    /// 16 bytes of a row of numbers; in the planes, what the row has not is zero.
    fn numbers<'k, T: Number<Literal: Default>>(
        self,
        row: Reg<'k, u32>,
        item: Reg<'k, u32>,
        (gguf, planes): (Ptr<'k, Global, u8>, Ptr<'k, Global, u8>),
        way: Way,
    ) {
        let k = row.kernel();
        let width = 16 / T::TYPE.bytes();
        let first = item * width;
        let in_file = gguf.cast::<T>().at(row * self.k).at(first);
        let plane = planes.at(row * (self.items_of_a_row() * 16)).at(item * 16);
        if self.k.is_multiple_of(width) {
            let (in_file, plane) = (in_file.cast::<u32>(), plane.cast::<u32>());
            return match way {
                Way::In => plane.st_vec(0, in_file.ld_vec::<4>(0)),
                Way::Out => in_file.st_vec(0, plane.ld_vec::<4>(0)),
            };
        }
        let plane = plane.cast::<T>();
        let inside = |i: u32| (first + i).lt(self.k);
        for i in 0..width {
            match way {
                Way::In => plane.st(i, in_file.ld_if(inside(i), i, k.value::<T>(T::Literal::default()))),
                Way::Out => in_file.st_if(inside(i), i, plane.ld(i)),
            }
        }
    }
}

/// A thread's blocks in the file and in the planes.
struct Sides<'k> {
    matrix: Repack,
    quants: &'static Quants,
    row: Reg<'k, u32>,
    /// The number of the item in the row.
    item: Reg<'k, u32>,
    gguf: Ptr<'k, Global, u8>,
    planes: Ptr<'k, Global, u8>,
    /// Words of the file, by block of the item and byte.
    loaded: RefCell<HashMap<(u32, u32), Reg<'k, u32>>>,
}

impl<'k> Sides<'k> {
    fn format(&self) -> WeightFormat {
        self.matrix.format
    }

    /// Units of the item.
    fn units(&self) -> u32 {
        (self.format().block() / UNIT).max(1)
    }

    /// Block `block` of the item in the file, and whether the row has it.
    fn block(&self, block: u32) -> (Ptr<'k, Global, u8>, Option<Reg<'k, Pred>>) {
        let (count, of_row) = (self.matrix.item_blocks(), self.format().blocks(self.matrix.k));
        let number = self.item * count + block;
        let row = self.gguf.at(self.row * self.format().row_bytes(self.matrix.k) as u32);
        let present = (!of_row.is_multiple_of(count)).then(|| number.lt(of_row));
        (row.at(number * self.format().block_bytes()), present)
    }

    /// The word from byte `at` of a block on.
    fn word(&self, block: u32, at: u32) -> Reg<'k, u32> {
        if let Some(&word) = self.loaded.borrow().get(&(block, at)) {
            return word;
        }
        let (from, present) = self.block(block);
        let alignment = aligned(self.format().alignment(), at);
        let word = load_word(self.item.kernel(), from.at(at), alignment, present);
        self.loaded.borrow_mut().insert((block, at), word);
        word
    }

    /// A row of plane `number`.
    fn plane(&self, number: usize) -> (Ptr<'k, Global, u8>, u32) {
        let planes = self.matrix.planes();
        let Some(plane) = planes.iter().nth(number) else { return (self.planes, 0) };
        let begin = self.planes.at(self.row.kernel().u64(plane.offset));
        (begin.at(self.row * plane.row_bytes as u32), plane.row_bytes as u32)
    }

    /// Piece `piece` of a unit: its words of `codes`, and those of `rest`.
    fn piece(&self, unit: u32, piece: u32) -> [(Ptr<'k, Global, u32>, u32); 2] {
        let (cut, unit) = (Cut::of(self.quants), self.item * self.units() + unit);
        let (codes, row_bytes) = self.plane(0);
        let codes = codes.at(piece * (row_bytes / cut.pieces())).at(unit * 16);
        let rest = self.plane(1).0.at(unit * (UNIT / 8 * cut.rest)).at(piece * 4 * cut.rest_words());
        [(codes.cast(), 4), (rest.cast(), cut.rest_words())]
    }

    /// The codes of four neighbours from weight `first` of the item on, as the file has them.
    fn of_file(&self, first: u32) -> Reg<'k, u32> {
        let (block, i) = (first / self.format().block(), first % self.format().block());
        let (mut code, mut bits) = (None, 0);
        for field in self.quants.codes {
            let (byte, bit) = field.place(i);
            let of_field = if field.run == 1 {
                // Four bits of a byte, spread over four.
                let at = field.at + (byte - field.at) / 4 * 4;
                spread(self.word(block, at) >> ((byte - at) * 8 + bit))
            } else {
                (self.word(block, byte) >> bit) & four((1 << field.width) - 1)
            };
            let moved = of_field << bits;
            code = Some(code.map_or(moved, |code: Reg<'k, u32>| code | moved));
            bits += field.width;
        }
        let code = code.unwrap_or_else(|| self.item.kernel().u32(0));
        if matches!(self.quants.values, Values::Signed) { code ^ four(0x80) } else { code }
    }

    /// Moves the codes.
    fn codes(&self, way: Way) {
        let (k, cut) = (self.item.kernel(), Cut::of(self.quants));
        // Sets of four neighbours, from the item's first on.
        let mut codes = vec![k.u32(0); (self.units() * UNIT / 4) as usize];
        for (unit, piece) in
            (0..self.units()).flat_map(|unit| (0..cut.pieces()).map(move |piece| (unit, piece)))
        {
            let of = |level: u32, word: u32| unit * 16 + (level * cut.pieces() + piece) * 4 + word;
            let places = self.piece(unit, piece);
            match way {
                Way::In => {
                    let (main, rest) = cut.join(k, |level, word| self.of_file(4 * of(level, word)));
                    for ((place, _), words) in places.into_iter().zip([main, rest]) {
                        place.st_many(None, 0, &words);
                    }
                }
                Way::Out => {
                    let [main, rest] = places.map(|(place, count)| place.ld_many(None, 0, count, 0));
                    let loaded = Piece::new(self.quants, &main, &rest);
                    for (level, word) in
                        (0..cut.levels()).flat_map(|level| [0, 1, 2, 3].map(|word| (level, word)))
                    {
                        codes[of(level, word) as usize] = loaded.stored(level, word);
                    }
                }
            }
        }
        if way == Way::Out {
            self.to_file(&codes);
        }
    }

    /// Puts codes of the item, four to a word, where the file has them.
    fn to_file(&self, codes: &[Reg<'k, u32>]) {
        let k = self.item.kernel();
        let sign = if matches!(self.quants.values, Values::Signed) { four(0x80) } else { 0 };
        let block_weights = self.format().block();
        for block in 0..self.matrix.item_blocks() {
            let (to, present) = self.block(block);
            let mut lower = 0;
            for field in self.quants.codes {
                let mask = (1 << field.width) - 1;
                let mut words = BTreeMap::new();
                for i in (0..block_weights).step_by(4) {
                    let code = codes[((block * block_weights + i) / 4) as usize] ^ sign;
                    let of_field = (code >> lower) & four(mask);
                    let (byte, bit) = field.place(i);
                    let (at, moved) = if field.run == 1 {
                        // Four bytes of a bit each, as bits of a byte.
                        let bits = gathered(of_field);
                        let at = field.at + (byte - field.at) / 4 * 4;
                        (at, bits << ((byte - at) * 8 + bit))
                    } else {
                        (byte, of_field << bit)
                    };
                    let word = words.entry(at).or_insert_with(|| k.u32(0));
                    *word = *word | moved;
                }
                for (at, word) in words {
                    store_word(to.at(at), aligned(self.format().alignment(), at), present, word);
                }
                lower += field.width;
            }
        }
    }

    /// Copies everything except the codes.
    fn records(&self, way: Way) {
        let (k, first) = (self.item.kernel(), self.quants.first_record());
        for (i, record) in self.quants.records.iter().enumerate() {
            for block in 0..self.matrix.item_blocks() {
                let number = self.item * self.matrix.item_blocks() + block;
                let plane = self.plane(first + i).0.at(number * record.bytes);
                let (file, present) = self.block(block);
                let (file, align) = (file.at(record.at), aligned(self.format().alignment(), record.at));
                match record.bytes {
                    1 => copy::<u8>(k, way, (file, plane), present),
                    2 => copy::<u16>(k, way, (file, plane), present),
                    bytes => {
                        for at in (0..bytes).step_by(4) {
                            let (file, plane) = (file.at(at), plane.at(at).cast::<u32>());
                            match way {
                                Way::In => plane.st(0, self.word(block, record.at + at)),
                                Way::Out => {
                                    store_word(file, align.min(4), present, plane.ld_if(present, 0, 0))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Moves the scale of the matrix, once.
    fn tensor_scale(&self, way: Way) {
        let Some(plane) = self.matrix.planes().get("tensor_scale") else { return };
        let k = self.item.kernel();
        let rows = u64::from(self.matrix.n) * self.format().row_bytes(self.matrix.k);
        let (file, plane) = (self.gguf.at(k.u64(rows)), self.planes.at(k.u64(plane.offset)));
        k.when(k.global_tid().eq(0), || copy::<u32>(k, way, (file, plane), None));
    }
}

/// Moves a number of a block that the row has; in the planes others are zero.
fn copy<'k, T: Data + ConvertFrom<u32>>(
    k: K<'k>,
    way: Way,
    (file, plane): (Ptr<'k, Global, u8>, Ptr<'k, Global, u8>),
    present: Option<Reg<'k, Pred>>,
) {
    let (file, plane) = (file.cast::<T>(), plane.cast::<T>());
    match way {
        Way::In => plane.st(0, file.ld_if(present, 0, k.u32(0).to::<T>())),
        Way::Out => file.st_if(present, 0, plane.ld(0)),
    }
}
