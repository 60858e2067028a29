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

    /// By a descriptor of `tcgen05`; none where it names no swizzling, or has other bits than such a descriptor.
    pub(crate) fn of_tensor_memory(descriptor: u64, rank: u64) -> Option<Layout> {
        let (row_chunks, atom) = match descriptor >> 61 {
            0 => (1, CHUNK),
            1 => (8, 2 * CHUNK),
            2 => (8, CHUNK),
            4 => (4, CHUNK),
            6 => (2, CHUNK),
            _ => return None,
        };
        let is_fixed = descriptor >> 46 & 7 == 1 && descriptor >> 52 & 0x1ff == 0;
        is_fixed.then(|| Layout::new(descriptor, row_chunks, atom, rank))
    }

    fn new(descriptor: u64, row_chunks: usize, atom: u64, rank: u64) -> Layout {
        let field = |low: u32| (descriptor >> low & 0x3fff) * CHUNK;
        let base = descriptor >> 49 & 7;
        Layout { start: field(0), leading: field(16), stride: field(32), row_chunks, atom, base, rank }
    }

    /// Whether pairs of chunks are swizzled.
    pub(crate) fn swizzles_pairs(&self) -> bool {
        self.atom != CHUNK
    }

    /// The address of a chunk along k of a row of `a` or a column of `b`.
    #[inline(always)]
    pub(crate) fn plain(&self, row: usize, chunk: usize) -> u64 {
        let along = if self.row_chunks == 1 { self.leading } else { CHUNK };
        let (row, chunk, width) = (row as u64, chunk as u64, self.row_chunks as u64 * CHUNK);
        self.address(row % 8 * width + row / 8 * self.stride + chunk * along)
    }

    /// The address of a chunk of rows or columns, at k.
    #[inline(always)]
    pub(crate) fn transposed(&self, chunk: usize, k: usize) -> u64 {
        let (k, chunk, chunks) = (k as u64, chunk as u64, self.row_chunks as u64);
        let (across, along) =
            if chunks == 1 { (self.stride, self.leading) } else { (self.leading, self.stride) };
        let lines = 8 * CHUNK / self.atom;
        self.address(
            chunk % chunks * CHUNK + chunk / chunks * across + k % lines * chunks * CHUNK + k / lines * along,
        )
    }

    /// Swizzled: the chunk's number in its 128 bytes is changed by the number of those bytes in the pattern.
    #[inline(always)]
    fn address(&self, offset: u64) -> u64 {
        let linear = self.start + offset;
        let line = (linear >> 7).wrapping_sub(self.base) & (self.row_chunks as u64 * CHUNK / self.atom - 1);
        self.rank | ((linear ^ (line * self.atom)) & ADDRESS)
    }
}
