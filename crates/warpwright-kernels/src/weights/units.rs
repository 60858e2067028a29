//! A unit of 64 weights of a row, as products read it from planes.
//!
//! The caller passes the address of the row in each plane, by number: `codes`, `rest` if the format has it, and the
//! format's records, in the order of [`Planes`].

use super::WeightFormat;
use super::codes::{Cut, Piece};
use super::format::{Quants, Record};
use super::planes::{Planes, UNIT};
use super::scales::{Records, Scales};
use warpwright_dsl::*;

/// Neighbours of a unit that lie in one level of one piece.
pub(crate) const RUN: u32 = 16;

/// A matrix in planes, on the device.
#[derive(Clone, Debug)]
pub(crate) struct MatrixAt<'k> {
    weights: Ptr<'k, Global, u8>,
    /// Of each plane where it begins, `None` for the first, and the bytes of a row.
    planes: Vec<(Option<Reg<'k, u64>>, Dim<'k>)>,
    tensor_scale: bool,
}

impl<'k> MatrixAt<'k> {
    pub(crate) fn new(k: K<'k>, planes: &Planes, weights: Ptr<'k, Global, u8>) -> Self {
        let at = |plane: super::Plane| {
            ((plane.offset > 0).then(|| k.wide_dim(plane.offset)), k.dim(plane.row_bytes as u32))
        };
        let tensor_scale = planes.format().has_tensor_scale();
        MatrixAt { weights, planes: planes.iter().map(at).collect(), tensor_scale }
    }

    /// Another matrix of that shape and format.
    pub(crate) fn with(&self, weights: Ptr<'k, Global, u8>) -> Self {
        MatrixAt { weights, ..self.clone() }
    }

    fn plane(&self, (offset, _): (Option<Reg<'k, u64>>, Dim<'k>)) -> Ptr<'k, Global, u8> {
        offset.map_or(self.weights, |offset| self.weights.at(offset))
    }

    /// Row `row`, in each plane.
    #[track_caller]
    pub(crate) fn row(&self, row: Reg<'k, u32>) -> Vec<Ptr<'k, Global, u8>> {
        self.planes.iter().map(|&plane| self.plane(plane).at(plane.1.rows(row))).collect()
    }

    /// Bytes of the rows of each plane.
    pub(crate) fn pitches(&self) -> Vec<Dim<'k>> {
        self.planes.iter().map(|&(_, pitch)| pitch).collect()
    }

    /// The scale of the matrix.
    pub(crate) fn tensor_scale(&self) -> Option<Reg<'k, f32>> {
        let last = self.planes.last().filter(|_| self.tensor_scale)?;
        Some(self.plane(*last).cast::<f32>().ld(0))
    }
}

/// Which unit of a row.
#[derive(Clone, Copy)]
pub(crate) struct UnitAt<'k> {
    /// Its number in the row.
    pub(crate) unit: Reg<'k, u32>,
    /// That of its superblock of 256 weights, and the unit's in it.
    pub(crate) superblock: Reg<'k, u32>,
    pub(crate) within: Reg<'k, u32>,
    /// Whether it is read; zeros where it is not.
    pub(crate) present: Option<Reg<'k, Pred>>,
}

impl<'k> UnitAt<'k> {
    /// Unit `unit`.
    pub(crate) fn new(unit: Reg<'k, u32>) -> Self {
        UnitAt { unit, superblock: unit >> 2, within: unit & 3, present: None }
    }

    /// So many bytes from byte `at` of a row on, which is a multiple of their number.
    fn words(self, row: Ptr<'k, Global, u8>, at: Reg<'k, u32>, bytes: u32) -> Vec<Reg<'k, u32>> {
        let (row, k) = (row.at(at), at.kernel());
        match bytes {
            2 => vec![row.cast::<u16>().ld_if(self.present, 0, k.value::<u16>(0)).to()],
            _ => row.cast::<u32>().ld_many(self.present, 0, bytes / 4, 0),
        }
    }
}

/// How units of a format are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    block: u32,
    pub(crate) quants: &'static Quants,
}

impl Units {
    /// Those of a quantised format.
    pub(crate) fn of(format: WeightFormat) -> Option<Self> {
        format.quants().map(|quants| Units { block: format.block(), quants })
    }

    /// Weights of a part, which has a scale of its own.
    pub(crate) fn part(self) -> u32 {
        self.quants.part
    }

    /// Parts of a unit.
    pub(crate) fn parts(self) -> u32 {
        UNIT / self.quants.part
    }

    /// By how many bits the codes of part `part` are raised, of those that [`Unit::bytes`] gives.
    fn raise(self, part: u32) -> u32 {
        self.quants.raise(part * self.part() / RUN / self.quants.pieces())
    }

    /// What the quant 0 is as such a code.
    pub(crate) fn zero(self, part: u32) -> u32 {
        self.quants.device_codes().zero << self.raise(part)
    }

    /// What a quant of 1 counts for when all parts are brought to the height of the one that is raised most.
    pub(crate) fn height(self) -> f32 {
        let max = (0..self.parts()).map(|part| self.raise(part)).max();
        2f32.powi(max.unwrap_or(0) as i32)
    }

    /// What brings part `part` to that height.
    pub(crate) fn to_height(self, part: u32) -> f32 {
        self.height() * 0.5f32.powi(self.raise(part) as i32)
    }

    /// Unit `at` of a row, whose pieces are `stride` bytes apart.
    pub(crate) fn unit<'k>(
        self,
        at: UnitAt<'k>,
        stride: Dim<'k>,
        row: impl Fn(usize) -> Ptr<'k, Global, u8> + Copy,
    ) -> Unit<'k> {
        Unit { pieces: self.load(at, stride, row), scales: self.scales(at, row) }
    }

    /// The pieces of a unit, which are `stride` bytes apart in a row of `codes`.
    pub(crate) fn load<'k>(
        self,
        at: UnitAt<'k>,
        stride: Dim<'k>,
        row: impl Fn(usize) -> Ptr<'k, Global, u8>,
    ) -> Vec<Piece<'k>> {
        let cut = Cut::of(self.quants);
        let main = |piece| {
            let codes = if piece == 0 { row(0) } else { row(0).at(stride.reg() * piece) };
            at.words(codes, at.unit * 16, 16)
        };
        let main: Vec<_> = (0..cut.pieces()).map(main).collect();
        let of_unit = UNIT / 8 * cut.rest;
        let rest = if of_unit > 0 { at.words(row(1), at.unit * of_unit, of_unit) } else { Vec::new() };
        let words = cut.rest_words() as usize;
        let piece = |(i, main): (usize, Vec<Reg<'k, u32>>)| {
            Piece::new(self.quants, &main, &rest[i * words..(i + 1) * words])
        };
        main.into_iter().enumerate().map(piece).collect()
    }

    /// The pieces of half `half` of a unit, 0 or 1, of a format that has two pieces or more.
    pub(crate) fn load_half<'k>(
        self,
        at: UnitAt<'k>,
        (half, stride): (Reg<'k, u32>, Dim<'k>),
        row: impl Fn(usize) -> Ptr<'k, Global, u8>,
    ) -> Vec<Piece<'k>> {
        let cut = Cut::of(self.quants);
        let (pieces, words) = (cut.pieces() / 2, cut.rest_words() as usize);
        let codes = row(0).at((stride * pieces).rows(half));
        let of_half = UNIT / 16 * cut.rest;
        let rest = match cut.rest {
            0 => Vec::new(),
            _ => at.words(row(1), (at.unit * 2 + half) * of_half, of_half),
        };
        let piece = |i: usize| {
            let main = at.words(codes.at((stride * i as u32).reg()), at.unit * 16, 16);
            Piece::new(self.quants, &main, &rest[i * words..(i + 1) * words])
        };
        (0..pieces as usize).map(piece).collect()
    }

    /// The scales of a unit.
    pub(crate) fn scales<'k>(self, at: UnitAt<'k>, row: impl Fn(usize) -> Ptr<'k, Global, u8>) -> Scales<'k> {
        let first = self.quants.first_record();
        let record = |(i, record): (usize, &Record)| {
            if record.shared_out {
                let bytes = record.unit_bytes(self.block);
                at.words(row(first + i), at.unit * bytes, bytes)
            } else {
                at.words(row(first + i), at.superblock * record.bytes, record.bytes)
            }
        };
        let words = self.quants.records.iter().enumerate().map(record).collect();
        (self.quants.scales)(&Records { words, unit: at.within })
    }
}

/// A unit, as it was loaded.
pub(crate) struct Unit<'k> {
    pieces: Vec<Piece<'k>>,
    pub(crate) scales: Scales<'k>,
}

impl<'k> Unit<'k> {
    /// The piece of the four neighbours with which weight `first` begins, their level in it and their word.
    fn place(&self, first: u32) -> (&Piece<'k>, u32, u32) {
        let (run, pieces) = (first / RUN, self.pieces.len() as u32);
        (&self.pieces[(run % pieces) as usize], run / pieces, first % RUN / 4)
    }

    /// The codes of weight `first` and the three behind it as floats: see [`Piece::floats`].
    pub(crate) fn floats(&self, first: u32) -> [Reg<'k, f32>; 4] {
        let (piece, level, word) = self.place(first);
        piece.floats(level, word)
    }

    /// The same codes as bytes: see [`Piece::bytes`].
    pub(crate) fn bytes(&self, first: u32) -> Reg<'k, u32> {
        let (piece, level, word) = self.place(first);
        piece.bytes(level, word)
    }
}
