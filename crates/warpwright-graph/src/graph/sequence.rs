//! The state that a model keeps of a sequence's tokens, and its layout. Only this module knows the meaning of each
//! dimension.

use super::{Element, Shape, TensorType};
use warpwright_kernels::CacheDtype;

/// A cache of keys, or of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheShape {
    /// The element type.
    pub dtype: CacheDtype,
    /// Sequences.
    pub batch: u32,
    /// Heads of a sequence.
    pub kv_heads: u32,
    /// The capacity of a head, in tokens.
    pub max_seq_len: u32,
    /// Elements of a head.
    pub head_dim: u32,
}

impl CacheShape {
    /// The cache shape of a tensor; `None` if the tensor is not a cache.
    pub fn of(ty: TensorType) -> Option<Self> {
        match (ty.element, ty.shape.dims()) {
            (Element::Cache(dtype), &[batch, kv_heads, max_seq_len, head_dim]) => {
                Some(CacheShape { dtype, batch, kv_heads, max_seq_len, head_dim })
            }
            _ => None,
        }
    }

    /// The type of the tensor: `batch × kv_heads × max_seq_len × head_dim`.
    pub fn ty(self) -> TensorType {
        let CacheShape { dtype, batch, kv_heads, max_seq_len, head_dim } = self;
        TensorType::new(Element::Cache(dtype), [batch, kv_heads, max_seq_len, head_dim])
    }

    /// The row of a position, one of [`Shape::rows`].
    pub fn row(self, sequence: u32, head: u32, position: u32) -> u64 {
        let of_head = u64::from(sequence) * u64::from(self.kv_heads) + u64::from(head);
        of_head * u64::from(self.max_seq_len) + u64::from(position)
    }

    /// The sequence, head and position of a row.
    pub fn place(self, row: u64) -> [u32; 3] {
        let (of_head, position) =
            (row / u64::from(self.max_seq_len.max(1)), row % u64::from(self.max_seq_len.max(1)));
        let heads = u64::from(self.kv_heads.max(1));
        [of_head / heads, of_head % heads, position].map(|number| number as u32)
    }
}

/// The type of a state that has room for what there is and for what is needed: sequences, and of a cache tokens. What
/// cannot be both is left as it is needed.
pub(crate) fn grown(there: TensorType, needed: TensorType) -> TensorType {
    if let (Some(have), Some(want)) = (CacheShape::of(there), CacheShape::of(needed)) {
        let (batch, max_seq_len) = (want.batch.max(have.batch), want.max_seq_len.max(have.max_seq_len));
        return CacheShape { batch, max_seq_len, ..want }.ty();
    }
    let (have, want) = (there.shape.dims(), needed.shape.dims());
    let mut dims = want.to_vec();
    if let (true, Some(dim), Some(&have)) = (have.len() == want.len(), dims.first_mut(), have.first()) {
        *dim = have.max(*dim);
    }
    Shape::new(&dims).map_or(needed, |shape| TensorType { shape, ..needed })
}

/// Whether a state may get another size: sequences, and of a cache tokens.
pub(crate) fn may_become(given: TensorType, needed: TensorType) -> bool {
    match (CacheShape::of(given), CacheShape::of(needed)) {
        (Some(given), Some(needed)) => {
            let CacheShape { batch, max_seq_len, .. } = needed;
            CacheShape { batch, max_seq_len, ..given } == needed
        }
        _ => has_sequences_of(given, needed),
    }
}

/// Whether two types are one but for the number of sequences, the first dimension.
pub(crate) fn has_sequences_of(given: TensorType, needed: TensorType) -> bool {
    let (dims, others) = (given.shape.dims(), needed.shape.dims());
    given.element == needed.element && dims.len() == others.len() && dims.get(1..) == others.get(1..)
}

/// How many runs of numbers a part of a state consists of, and how long each is, where it may get another size. A part has
/// a number for each `scale` elements.
pub(crate) fn runs(ty: TensorType, scale: u64) -> (u64, u64) {
    let outer = match CacheShape::of(ty) {
        Some(cache) => u64::from(cache.batch) * u64::from(cache.kv_heads),
        None => ty.shape.dims().first().copied().unwrap_or(1).into(),
    };
    (outer, ty.shape.elements() / outer.max(1) / scale)
}

/// The state that a layer keeps of the tokens of each sequence, for later tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SequenceState {
    /// Keys and values of each token.
    KeysValues {
        /// Their elements.
        dtype: CacheDtype,
        /// Their heads.
        kv_heads: u32,
        /// Elements of a head.
        head_dim: u32,
        /// How many tokens are seen, where that is not all: older ones are overwritten.
        window: Option<u32>,
        /// Tokens of a page, where sequences share a pool of pages.
        page: Option<u32>,
    },
    /// For each token, a vector from which products make the keys and values of all heads, and the part of the keys
    /// that turns.
    Latent {
        /// Its elements.
        dtype: CacheDtype,
        /// How many are of the vector.
        rank: u32,
        /// How many turn.
        rotary_dim: u32,
    },
    /// A matrix for each head, accumulated over all previous tokens. It is `f32`, because errors add up over a
    /// sequence.
    Recurrence {
        /// Heads.
        heads: u32,
        /// Rows of each matrix: elements of a head's values.
        rows: u32,
        /// Columns: elements by which it is read and written.
        columns: u32,
    },
    /// The last inputs of a convolution, as `f32`.
    Convolution {
        /// Elements of an input.
        channels: u32,
        /// Inputs before the newest that it sees.
        tokens: u32,
    },
}

impl SequenceState {
    /// The tensors, by the suffixes of their names, for this many sequences with this capacity in tokens.
    pub fn tensors(&self, batch: u32, max_seq_len: u32) -> Vec<(&'static str, TensorType)> {
        let kept = self.kept(max_seq_len);
        match *self {
            SequenceState::KeysValues { dtype, kv_heads, head_dim, page: None, .. } => {
                let ty = CacheShape { dtype, batch, kv_heads, max_seq_len: kept, head_dim }.ty();
                vec![("cache.k", ty), ("cache.v", ty)]
            }
            SequenceState::KeysValues { dtype, kv_heads, head_dim, page: Some(page), .. } => {
                let pages = kept.div_ceil(page.max(1));
                let pool = batch.saturating_mul(pages);
                let ty = CacheShape { dtype, batch: pool, kv_heads, max_seq_len: page, head_dim }.ty();
                let table = TensorType::new(Element::U32, [batch, pages]);
                vec![("cache.k", ty), ("cache.v", ty), ("cache.pages", table)]
            }
            SequenceState::Latent { dtype, rank, rotary_dim } => {
                let head_dim = rank.saturating_add(rotary_dim);
                vec![(
                    "cache.latent",
                    CacheShape { dtype, batch, kv_heads: 1, max_seq_len: kept, head_dim }.ty(),
                )]
            }
            SequenceState::Recurrence { heads, rows, columns } => {
                vec![("state", TensorType::f32([batch, heads, rows, columns]))]
            }
            SequenceState::Convolution { channels, tokens } => {
                vec![("convolution", TensorType::f32([batch, tokens, channels]))]
            }
        }
    }

    /// How many tokens of a sequence with this capacity keep a slot of their own: at most a window, and none if the
    /// state does not grow with the sequence.
    pub fn kept(&self, max_seq_len: u32) -> u32 {
        match *self {
            SequenceState::KeysValues { window, .. } => max_seq_len.min(window.unwrap_or(u32::MAX)),
            SequenceState::Latent { .. } => max_seq_len,
            SequenceState::Recurrence { .. } | SequenceState::Convolution { .. } => 0,
        }
    }

    /// The slot of a position among the kept tokens; with a window, it replaces a token that is no longer visible.
    /// `None` for states that do not keep tokens separately.
    pub fn slot(&self, position: u32, max_seq_len: u32) -> Option<u32> {
        position.checked_rem(self.kept(max_seq_len))
    }

    /// Whether a sequence of `length` tokens can go back to its first `prefix` tokens: nothing that these need was
    /// overwritten.
    pub fn can_return(&self, length: u32, prefix: u32) -> bool {
        match *self {
            _ if prefix >= length || prefix == 0 => true,
            SequenceState::KeysValues { window: Some(window), .. } => length <= window,
            SequenceState::KeysValues { window: None, .. } | SequenceState::Latent { .. } => true,
            SequenceState::Recurrence { .. } | SequenceState::Convolution { .. } => false,
        }
    }

    /// Bytes of all tensors.
    pub fn bytes(&self, batch: u32, max_seq_len: u32) -> u64 {
        let tensors = self.tensors(batch, max_seq_len).into_iter();
        let planes = tensors.flat_map(|(_, ty)| crate::launch::planes(ty));
        planes.fold(0, |sum: u64, plane| sum.saturating_add(plane.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F16: CacheDtype = CacheDtype::F16;

    fn keys(window: Option<u32>, page: Option<u32>) -> SequenceState {
        SequenceState::KeysValues { dtype: F16, kv_heads: 2, head_dim: 64, window, page }
    }

    /// Rows and places are one another's inverse, and no two places have one row.
    #[test]
    fn every_position_has_a_row_of_its_own() {
        let cache = CacheShape { dtype: F16, batch: 3, kv_heads: 2, max_seq_len: 5, head_dim: 64 };
        let places = (0..3).flat_map(|s| (0..2).flat_map(move |h| (0..5).map(move |p| [s, h, p])));
        for (row, place) in (0..).zip(places) {
            assert_eq!(cache.row(place[0], place[1], place[2]), row);
            assert_eq!(cache.place(row), place);
        }
        assert_eq!(CacheShape::of(cache.ty()), Some(cache));
        assert_eq!(cache.ty().shape.rows(), 30);
        assert_eq!(CacheShape::of(TensorType::f32([1, 2, 3, 4])), None);
    }

    #[test]
    fn states_grow_in_sequences_and_caches_in_tokens_too() {
        let cache = |batch, max_seq_len| {
            CacheShape { dtype: F16, batch, kv_heads: 2, max_seq_len, head_dim: 64 }.ty()
        };
        assert_eq!(grown(cache(4, 8), cache(1, 32)), cache(4, 32));
        assert_eq!(grown(TensorType::f32([4, 8]), TensorType::f32([1, 8])), TensorType::f32([4, 8]));
        // What cannot be both is as it is needed.
        assert_eq!(grown(TensorType::f32([4, 8]), TensorType::f32([1, 9])), TensorType::f32([4, 9]));
        assert!(may_become(cache(4, 8), cache(1, 32)) && !has_sequences_of(cache(4, 8), cache(1, 32)));
        let wider = CacheShape { dtype: F16, batch: 1, kv_heads: 2, max_seq_len: 8, head_dim: 128 }.ty();
        assert!(!may_become(cache(1, 8), wider));
        let floats = |dims: [u32; 4]| TensorType::f32(dims);
        assert!(may_become(floats([1, 2, 3, 4]), floats([7, 2, 3, 4])));
        assert!(!may_become(floats([1, 2, 3, 4]), floats([1, 2, 9, 4])));
        // A cache is moved head by head, anything else sequence by sequence.
        assert_eq!(runs(cache(3, 8), 1), (6, 8 * 64));
        assert_eq!(runs(floats([3, 2, 3, 4]), 1), (3, 24));
    }

    #[test]
    fn tensors_are_what_is_kept() {
        let latent = SequenceState::Latent { dtype: F16, rank: 512, rotary_dim: 64 };
        let recurrence = SequenceState::Recurrence { heads: 16, rows: 64, columns: 128 };
        let convolution = SequenceState::Convolution { channels: 1280, tokens: 3 };
        // Bytes of 2 sequences with room for 1000 tokens, and for 4000.
        let cases = [
            (keys(None, None), [2 * 2 * 2 * 1000 * 64 * 2, 2 * 2 * 2 * 4000 * 64 * 2]),
            (keys(Some(256), None), [2 * 2 * 2 * 256 * 64 * 2; 2]),
            // 63 and 250 pages, each with a number of its own.
            (keys(None, Some(16)), [63u64, 250].map(|pages| 2 * (pages * 16 * 2 * 2 * 64 * 2 + pages * 4))),
            (latent, [2 * 1000 * 576 * 2, 2 * 4000 * 576 * 2]),
            (recurrence, [2 * 16 * 64 * 128 * 4; 2]),
            (convolution, [2 * 1280 * 3 * 4; 2]),
        ];
        for (state, bytes) in cases {
            assert_eq!([1000, 4000].map(|room| state.bytes(2, room)), bytes, "{state:?}");
        }
        let bytes = SequenceState::KeysValues {
            dtype: CacheDtype::Q8_0,
            kv_heads: 2,
            head_dim: 64,
            window: None,
            page: None,
        };
        // A byte for each element, and a half for each 32.
        assert_eq!(bytes.bytes(1, 10), 2 * 2 * 10 * (64 + 4));
    }

    /// A window overwrites what is no longer seen, so a long sequence cannot go back; what keeps no tokens apart never can.
    #[test]
    fn positions_that_are_seen_have_different_slots() {
        let window = keys(Some(4), None);
        for newest in 0..20u32 {
            let seen: Vec<_> = (newest.saturating_sub(3)..=newest).map(|p| window.slot(p, 100)).collect();
            let mut slots = seen.clone();
            slots.sort_unstable();
            slots.dedup();
            assert!(slots.len() == seen.len() && slots.iter().all(|slot| slot.is_some_and(|slot| slot < 4)));
        }
        let recurrence = SequenceState::Recurrence { heads: 1, rows: 1, columns: 1 };
        assert_eq!((keys(None, None).slot(7, 100), recurrence.slot(7, 100)), (Some(7), None));
        let returns =
            |state: SequenceState| [(9, 9), (9, 0), (9, 5), (4, 2)].map(|(l, p)| state.can_return(l, p));
        assert_eq!(returns(keys(None, None)), [true; 4]);
        assert_eq!(returns(window), [true, true, false, true]);
        assert_eq!(returns(recurrence), [true, true, false, false]);
    }
}
