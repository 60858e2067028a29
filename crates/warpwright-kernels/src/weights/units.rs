//! A unit of 64 weights of a row, as products read it out of planes.
//!
//! Who reads says where the row begins in each plane, by number; the planes are `codes`, `rest` where the format has it,
//! and its records, in the order of [`Planes`].

use super::WeightFormat;
use super::codes::{Cut, Piece};
use super::format::{Quants, Record};
use super::planes::{Planes, UNIT};
use super::scales::{Records, Scales};
use warpwright_dsl::*;

/// A plane of a matrix, on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneAt<'k> {
    /// Where it begins; `None` for the first.
    pub(crate) offset: Option<Reg<'k, u64>>,
    /// Bytes of a row.
    pub(crate) pitch: Dim<'k>,
}

/// Where the planes of `n` rows of `k` weights are.
pub(crate) fn planes_at<'k>(k: K<'k>, planes: &Planes) -> Vec<PlaneAt<'k>> {
    let at = |plane: super::Plane| PlaneAt {
        offset: (plane.offset > 0).then(|| k.wide_dim(plane.offset)),
        pitch: k.dim(plane.row_bytes as u32),
    };
    planes.iter().map(at).collect()
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
        let words = row.cast::<u32>();
        match bytes {
            2 => vec![row.cast::<u16>().ld_if(self.present, 0, k.value::<u16>(0)).to()],
            4 => vec![words.ld_if(self.present, 0, 0)],
            8 => words.ld_vec_if::<2>(self.present, 0, 0).to_vec(),
            _ => words.ld_vec_if::<4>(self.present, 0, 0).to_vec(),
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
