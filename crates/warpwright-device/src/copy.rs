//! Copies of rows, in one, two or three dimensions, between any two kinds of memory.

use crate::bytes::{Bytes, HostBytes};
use crate::failure::Result;
use std::sync::Arc;

/// A copy of rows.
pub struct Copy {
    /// The target.
    pub target: Side,
    /// The source.
    pub source: Side,
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

/// The source or the target of a copy, from its first byte on.
#[derive(Clone)]
pub struct Side {
    /// The bytes, from the first one to the last one.
    pub memory: Memory,
    /// The layout of the rows.
    pub layout: Layout,
}

/// The layout of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Distance between rows, in bytes.
    pub pitch: u64,
    /// Distance between slices, in bytes.
    pub slice: u64,
}

/// Memory of any kind.
#[derive(Clone)]
pub enum Memory {
    /// Memory of a device, or host memory that devices know.
    Known(Bytes),
    /// Host memory that devices do not know.
    Host(Arc<dyn HostBytes>),
    /// A staged copy of host memory; never a target.
    Staged(Arc<[u8]>),
}

impl Layout {
    /// Rows without gaps.
    pub const FLAT: Layout = Layout { pitch: 0, slice: 0 };

    /// The end of the last row; `None` if no address is that large.
    pub fn extent(self, width: u64, height: u64, depth: u64) -> Option<u64> {
        if width == 0 || height == 0 || depth == 0 {
            return Some(0);
        }
        let rows = self.pitch.checked_mul(height - 1)?;
        let slices = self.slice.checked_mul(depth - 1)?;
        rows.checked_add(slices)?.checked_add(width)
    }

    /// The offset of a row.
    fn at(self, (slice, row): (u64, u64)) -> u64 {
        slice * self.slice + row * self.pitch
    }
}

impl Memory {
    /// Whether it is host memory that devices do not know.
    pub fn is_host(&self) -> bool {
        matches!(self, Memory::Host(_))
    }

    /// Whether only the device can access it.
    pub fn is_device(&self) -> bool {
        matches!(self, Memory::Known(bytes) if !bytes.is_mapped())
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<()> {
        match self {
            Memory::Known(bytes) => return bytes.read(offset, data),
            Memory::Host(host) => host.read(offset, data),
            Memory::Staged(staged) => data.copy_from_slice(&staged[offset as usize..][..data.len()]),
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        match self {
            Memory::Known(bytes) => return bytes.write(offset, data),
            Memory::Host(host) => host.write(offset, data),
            Memory::Staged(_) => {}
        }
        Ok(())
    }

    /// Its address on the host, if it can overlap anything there.
    fn host_address(&self) -> u64 {
        match self {
            Memory::Host(host) => host.address(),
            Memory::Known(_) | Memory::Staged(_) => 0,
        }
    }
}

impl Copy {
    /// A copy of contiguous bytes.
    pub fn flat(target: Memory, source: Memory, bytes: u64) -> Copy {
        let side = |memory| Side { memory, layout: Layout::FLAT };
        Copy { target: side(target), source: side(source), width: bytes, height: 1, depth: 1 }
    }

    /// The total number of bytes.
    pub fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    /// Copies the source aside now, and makes that the source. The source is host memory that devices do not know.
    pub fn stage(&mut self) -> Result<()> {
        let mut staged = vec![0; self.bytes() as usize];
        for (row, piece) in self.rows().zip(staged.chunks_mut(self.width.max(1) as usize)) {
            self.source.memory.read(self.source.layout.at(row), piece)?;
        }
        let layout = Layout { pitch: self.width, slice: self.width * self.height };
        self.source = Side { memory: Memory::Staged(staged.into()), layout };
        Ok(())
    }

    /// The rows, by slice and row.
    fn rows(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (height, depth) = (self.height, self.depth);
        (0..depth).flat_map(move |slice| (0..height).map(move |row| (slice, row)))
    }

    /// Whether the rows are contiguous on both sides, and so form one row.
    fn is_flat(&self) -> bool {
        let flat = |layout: Layout| {
            (self.height == 1 || layout.pitch == self.width)
                && (self.depth == 1 || layout.slice == self.width * self.height)
        };
        flat(self.source.layout) && flat(self.target.layout)
    }

    /// Executes the copy.
    pub(crate) fn execute(&self) -> Result<()> {
        if self.is_flat() {
            return self.row(0, 0, self.bytes());
        }
        self.rows()
            .try_for_each(|row| self.row(self.target.layout.at(row), self.source.layout.at(row), self.width))
    }

    fn row(&self, to: u64, from: u64, bytes: u64) -> Result<()> {
        let (target, source) = (&self.target.memory, &self.source.memory);
        match (target, source) {
            (Memory::Known(target), Memory::Known(source)) => return target.copy(to, source, from, bytes),
            (Memory::Known(target), Memory::Staged(data)) => {
                return target.write(to, &data[from as usize..][..bytes as usize]);
            }
            _ => {}
        }
        // From the end where the target lies behind the source, so that nothing is overwritten before it is read.
        let backwards = target.host_address().wrapping_add(to) > source.host_address().wrapping_add(from);
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < bytes {
            let take = (bytes - done).min(PIECE as u64);
            let at = if backwards { bytes - done - take } else { done };
            let piece = &mut piece[..take as usize];
            source.read(from + at, piece)?;
            target.write(to + at, piece)?;
            done += take;
        }
        Ok(())
    }
}

/// Bytes that are copied at a time, if they go through memory of this library.
const PIECE: usize = 16 << 10;
