//! Where a factor stands in shared memory, by its matrix descriptor.

/// Bytes of a chunk.
pub(crate) const CHUNK: u64 = 16;

/// Where a factor stands in shared memory, by its descriptor.
///
/// ```text
///                  along k                    along rows of a, or columns of b
///   plain          chunks: 16, or `leading`    rows: 16 or the swizzled width; eights of them: `stride`
///                  if not swizzled
///   transposed     16 or the swizzled width;   chunks: 16 within the swizzled width, behind that `leading`;
///                  eights: `stride`            if not swizzled, eights along k: `leading`, chunks: `stride`
/// ```
///
/// Where pairs of chunks are swizzled, of transposed factors alone, it is fours along k, not eights.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    start: u64,
    leading: u64,
    /// Chunks along k that do not fit into the swizzled width are at the address `leading`.
    is_split: bool,
    stride: u64,
    /// Chunks of the swizzled width; 1 if nothing is swizzled.
    pub(crate) row_chunks: usize,
    /// Bytes that stay together.
    atom: u64,
    /// Where the pattern of swizzling begins, in units of 128 bytes.
    base: u64,
    /// Of the block, in addresses of shared memory.
    rank: u64,
}

/// Bits of an address in a descriptor.
const ADDRESS: u64 = (1 << 18) - 1;

impl Layout {
    /// By a descriptor of `wgmma`.
    pub(crate) fn of_warpgroup(descriptor: u64, rank: u64) -> Layout {
        let row_chunks = match descriptor >> 62 {
            0 => 1,
            1 => 8,
            2 => 4,
            _ => 2,
        };
        Layout::new(descriptor, row_chunks, CHUNK, rank)
    }

    /// By a descriptor of `tcgen05`; none where it names no swizzling, or has other bits than such a descriptor. `may_split`:
    /// the last chunks along k may stand elsewhere (ISA 9.7.18.3.1.2).
    pub(crate) fn of_tensor_memory(descriptor: u64, rank: u64, may_split: bool) -> Option<Layout> {
        let (row_chunks, atom) = match descriptor >> 61 {
            0 => (1, CHUNK),
            1 => (8, 2 * CHUNK),
            2 => (8, CHUNK),
            4 => (4, CHUNK),
            6 => (2, CHUNK),
            _ => return None,
        };
        let is_split = descriptor >> 52 & 1 != 0;
        let layout = Layout { is_split, ..Layout::new(descriptor, row_chunks, atom, rank) };
        let may = !is_split || may_split && row_chunks == 8 && atom == CHUNK && layout.base == 0;
        (may && descriptor >> 46 & 7 == 1 && descriptor >> 53 & 0xff == 0).then_some(layout)
    }

    fn new(descriptor: u64, row_chunks: usize, atom: u64, rank: u64) -> Layout {
        let field = |low: u32| (descriptor >> low & 0x3fff) * CHUNK;
        let base = descriptor >> 49 & 7;
        let (start, leading, stride) = (field(0), field(16), field(32));
        Layout { start, leading, is_split: false, stride, row_chunks, atom, base, rank }
    }

    /// Whether pairs of chunks are swizzled.
    pub(crate) fn swizzles_pairs(&self) -> bool {
        self.atom != CHUNK
    }

    /// Chunks along k that fit into the swizzled width, from the first one on; all, if nothing is swizzled.
    fn fitting(&self) -> u64 {
        match self.row_chunks as u64 {
            1 => u64::MAX,
            chunks => chunks - self.start / CHUNK % chunks,
        }
    }

    /// Whether so many chunks along k have a place.
    pub(crate) fn has_chunks(&self, count: usize) -> bool {
        self.is_split || count as u64 <= self.fitting()
    }

    /// The address of a chunk along k of a row of `a` or a column of `b`.
    #[inline(always)]
    pub(crate) fn plain(&self, row: usize, chunk: usize) -> u64 {
        let (row, chunk, width) = (row as u64, chunk as u64, self.row_chunks as u64 * CHUNK);
        let of_row = row % 8 * width + row / 8 * self.stride;
        if self.is_split && chunk >= self.fitting() {
            return self.address(self.leading + of_row + (chunk - self.fitting()) * CHUNK);
        }
        let along = if self.row_chunks == 1 { self.leading } else { CHUNK };
        self.address(self.start + of_row + chunk * along)
    }

    /// The address of a chunk of rows or columns, at k.
    #[inline(always)]
    pub(crate) fn transposed(&self, chunk: usize, k: usize) -> u64 {
        let (k, chunk, chunks) = (k as u64, chunk as u64, self.row_chunks as u64);
        let (across, along) =
            if chunks == 1 { (self.stride, self.leading) } else { (self.leading, self.stride) };
        let lines = 8 * CHUNK / self.atom;
        let of_chunk = chunk % chunks * CHUNK + chunk / chunks * across;
        self.address(self.start + of_chunk + k % lines * chunks * CHUNK + k / lines * along)
    }

    /// Swizzled: the chunk's number in its 128 bytes is changed by the number of those bytes in the pattern.
    #[inline(always)]
    fn address(&self, linear: u64) -> u64 {
        let line = (linear >> 7).wrapping_sub(self.base) & (self.row_chunks as u64 * CHUNK / self.atom - 1);
        self.rank | ((linear ^ (line * self.atom)) & ADDRESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_along_k_go_on_elsewhere_only_with_128_byte_swizzling() {
        let (fixed, absolute, swizzled) = (1 << 46, 1 << 52, 2 << 61);
        let layout = |descriptor: u64, may_split| Layout::of_tensor_memory(descriptor, 0, may_split);
        let cases = [
            (fixed | swizzled, false, Some(false)),
            (fixed | absolute | swizzled, true, Some(true)),
            (fixed | absolute | swizzled, false, None),
            // Other ways of swizzling, a base offset, bits that must be 0, and one that must be 1.
            (fixed | absolute, true, None),
            (fixed | absolute | 1 << 61, true, None),
            (fixed | absolute | 4 << 61, true, None),
            (fixed | absolute | swizzled | 1 << 49, true, None),
            (fixed | absolute | swizzled | 1 << 53, true, None),
            (fixed | absolute | swizzled | 1 << 60, true, None),
            (absolute | swizzled, true, None),
        ];
        for (descriptor, may_split, expected) in cases {
            let found = layout(descriptor, may_split).map(|layout| layout.is_split);
            assert_eq!(found, expected, "{descriptor:#x} {may_split}");
        }
        // From the sixth chunk on, two fit.
        let start = 6;
        assert!(
            layout(fixed | swizzled | start, false)
                .is_some_and(|layout| { layout.has_chunks(2) && !layout.has_chunks(3) })
        );
        assert!(layout(fixed | absolute | swizzled | start, true).is_some_and(|layout| layout.has_chunks(3)));
    }
}
