//! Rows of the KV cache in the registers of a warp.
//!
//! A row, the `head_dim` elements of one key or value, is read in *pieces* of 16 bytes, one a lane, by a *run*
//! of neighbouring lanes; a warp reads as many rows at once as it has runs. Runs are powers of two, so that
//! sums over a row are butterflies; where a row has fewer pieces, the last lanes of a run read nothing and hold
//! zeros, and where it has more than 32, every lane holds several.
//!
//! ```text
//! head_dim 128 in f16, 256 bytes:   lanes 0..16  row 0    lanes 16..32  row 1
//! head_dim 80 in f16, 160 bytes:    lanes 0..10  row 0    lanes 16..26  row 1      6 lanes of each run idle
//! head_dim 64 in q8_0, 64 bytes:    lanes 0..4   row 0    lanes 4..8    row 1 …    8 rows
//! ```

use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::floats::Floats;
use warpwright_dsl::*;

/// Bytes of a piece.
const PIECE: u32 = 16;
const WARP: u32 = 32;

/// How rows lie over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLayout {
    cache: CacheDtype,
    head_dim: u32,
    /// Lanes of a run.
    pub(super) lanes: u32,
    /// Pieces of a row that a lane holds.
    pub(super) pieces: u32,
}

impl RowLayout {
    /// For a head dimension that is a multiple of 16 bytes.
    pub(super) fn new(cache: CacheDtype, head_dim: u32) -> Self {
        let total = (head_dim * cache.bytes()).div_ceil(PIECE).max(1);
        let lanes = total.min(WARP).next_power_of_two();
        RowLayout { cache, head_dim, lanes, pieces: total.div_ceil(lanes) }
    }

    /// Rows that a warp reads at once.
    pub(super) fn rows(self) -> u32 {
        WARP / self.lanes
    }

    /// Elements of a piece.
    pub(super) fn elements(self) -> u32 {
        PIECE / self.cache.bytes()
    }

    /// Elements of a row that a lane holds.
    pub(super) fn width(self) -> u32 {
        self.elements() * self.pieces
    }

    /// Elements that a run of lanes has room for.
    pub(super) fn room(self) -> u32 {
        self.lanes * self.width()
    }
}

/// Where a lane is in its row.
#[derive(Clone, Copy)]
pub(super) struct Lane<'k> {
    k: K<'k>,
    pub(super) layout: RowLayout,
    /// Its number in its run.
    pub(super) place: Reg<'k, u32>,
    /// The number of its run: which of the rows that the warp reads at once.
    pub(super) row: Reg<'k, u32>,
}

impl<'k> Lane<'k> {
    pub(super) fn new(k: K<'k>, layout: RowLayout) -> Self {
        let lane = k.lane();
        Lane { k, layout, place: lane & (layout.lanes - 1), row: lane >> layout.lanes.trailing_zeros() }
    }

    pub(super) fn kernel(self) -> K<'k> {
        self.k
    }

    /// The first element of the lane's piece `piece`.
    pub(super) fn element(self, piece: u32) -> Reg<'k, u32> {
        (self.place + piece * self.layout.lanes) * self.layout.elements()
    }

    /// Whether the lane has that piece; `None` where all lanes have.
    pub(super) fn has(self, piece: u32) -> Option<Reg<'k, Pred>> {
        let RowLayout { lanes, head_dim, .. } = self.layout;
        let total = head_dim / self.layout.elements();
        let there = total.saturating_sub(piece * lanes);
        (there < lanes).then(|| self.place.lt(there))
    }

    /// The lane's elements of a row of floats, zeros where it has none.
    pub(super) fn read(self, row: Floats<'k>) -> Vec<Reg<'k, f32>> {
        let elements = self.layout.elements();
        (0..self.layout.pieces)
            .flat_map(|piece| match self.has(piece) {
                Some(has) => row.ld_vec_if(has, self.element(piece), elements),
                None => row.ld_vec(self.element(piece), elements),
            })
            .collect()
    }

    /// Stores the lane's elements of a row of floats where the predicate holds.
    pub(super) fn write(self, row: Floats<'k>, values: &[Reg<'k, f32>], here: Reg<'k, Pred>) {
        for (piece, values) in (0..).zip(values.chunks_exact(self.layout.elements() as usize)) {
            let here = self.has(piece).map_or(here, |has| has & here);
            row.st_vec_if(here, self.element(piece), values);
        }
    }

    /// Where a run's elements lie in shared memory, for vectors of four that meet in no bank: the first vector
    /// of each lane, then the second of each.
    pub(super) fn shared_places(self) -> impl Iterator<Item = Reg<'k, u32>> {
        (0..self.layout.width() / 4).map(move |vector| (self.place + vector * self.layout.lanes) * 4)
    }
}

/// Rows as they were loaded, piece by piece: four words each, and a scale where the type has scales.
pub(super) type Raw<'k> = (List<'k, u32>, List<'k, F16>);

/// Which rows are read, and what is in the place of the others.
#[derive(Clone, Copy)]
pub(super) enum Which<'k, R> {
    /// Those before a row; zeros.
    Before(Reg<'k, u32>),
    /// All of them if that holds; what was there.
    AllIf(Reg<'k, Pred>, R),
}

/// The rows of one buffer of the cache, for one sequence and head.
#[derive(Clone, Copy)]
pub(super) struct CacheRows<'k> {
    lane: Lane<'k>,
    words: Ptr<'k, Global, u32>,
    scales: Option<Ptr<'k, Global, F16>>,
}

impl<'k> CacheRows<'k> {
    /// The rows of head `head` of a buffer and its scales, where the type has scales, of which there are `rows` for
    /// each head. Those that are read nothing may write while the body runs; each is read once: nothing is kept in L1.
    pub(super) fn new(
        lane: Lane<'k>,
        (elements, scales): (AnyPtr<'k>, Option<Ptr<'k, Global, F16>>),
        head: Reg<'k, u32>,
        rows: Dim<'k>,
    ) -> Self {
        let RowLayout { cache, head_dim, .. } = lane.layout;
        let words = elements.bytes().cast::<u32>();
        CacheRows {
            lane,
            words: words.nc().no_allocate().row(head, rows * (head_dim * cache.bytes() / 4)),
            scales: scales.map(|scales| scales.nc().no_allocate().row(head, rows * (head_dim / BLOCK))),
        }
    }

    /// `count` times as many rows as the warp reads at once, from row `row` on, each as far as `which` says.
    pub(super) fn load(self, row: Reg<'k, u32>, count: u32, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        let (k, lane, layout) = (self.lane.k, self.lane, self.lane.layout);
        let row_words = layout.head_dim * layout.cache.bytes() / 4;
        let other = match which {
            Which::AllIf(_, other) => Some((other.0.to_vec(), other.1.to_vec())),
            Which::Before(_) => None,
        };
        let (mut words, mut scales) = (Vec::new(), Vec::new());
        for step in 0..count {
            let row = row + lane.row + step * layout.rows();
            let wanted = match which {
                Which::Before(end) => row.lt(end),
                Which::AllIf(wanted, _) => wanted,
            };
            for piece in 0..layout.pieces {
                let wanted = lane.has(piece).map_or(wanted, |has| wanted & has);
                let from = self.words.at(row * row_words);
                let place = (lane.place + piece * layout.lanes) * (PIECE / 4);
                let others = match &other {
                    Some((others, _)) => std::array::from_fn(|i| others[words.len() + i]),
                    None => [k.u32(0); 4],
                };
                words.extend(from.ld_vec_or(wanted, place, others));
                let Some(scales_from) = self.scales else { continue };
                let from = scales_from.at(row * (layout.head_dim / BLOCK));
                // Two pieces share a scale.
                let place = (lane.place >> 1) + piece * (layout.lanes / 2);
                let other = other.as_ref().map_or(k.value::<F16>(0.0), |(_, others)| others[scales.len()]);
                scales.push(from.ld_if(wanted, place, other));
            }
        }
        (k.list(words), k.list(scales))
    }

    /// The pieces of the lane's row `step` of `raw`.
    pub(super) fn pieces(self, raw: Raw<'k>, step: u32) -> Vec<Piece<'k>> {
        let (words, scales) = (raw.0.to_vec(), raw.1.to_vec());
        let pieces = self.lane.layout.pieces as usize;
        (step as usize * pieces..)
            .take(pieces)
            .map(|i| Piece {
                values: self.values(&words[4 * i..4 * i + 4]),
                scale: scales.get(i).map(|scale| scale.f32()),
            })
            .collect()
    }

    /// The words' elements, exactly; the quants where they are quants.
    fn values(self, words: &[Reg<'k, u32>]) -> Vec<Reg<'k, f32>> {
        let words = words.iter();
        match self.lane.layout.cache {
            CacheDtype::F32 => words.map(|word| word.bits()).collect(),
            CacheDtype::F16 => words.flat_map(|word| word.bits::<F16x2>().f32x2()).collect(),
            CacheDtype::Bf16 => words.flat_map(|word| word.bits::<Bf16x2>().f32x2()).collect(),
            CacheDtype::Q8_0 => words.flat_map(|word| word.signed_bytes_f32()).collect(),
        }
    }
}

/// Elements of a row: `scale · values`.
pub(super) struct Piece<'k> {
    pub(super) values: Vec<Reg<'k, f32>>,
    pub(super) scale: Option<Reg<'k, f32>>,
}
