//! Copies: of rows, in one, two or three dimensions, between any two kinds of memory.

use super::{Bytes, ClientMemory, Mapping, Op, Stream};
use crate::graph::guard;
use crate::report::log;
use crate::types::{Result, Status};
use std::sync::Arc;

/// A copy.
pub(crate) struct Copy {
    pub(crate) target: Side,
    pub(crate) source: Side,
    /// Bytes of a row.
    pub(crate) width: u64,
    /// Rows of a slice.
    pub(crate) height: u64,
    /// Slices.
    pub(crate) depth: u64,
}

/// Where a copy comes from or goes to: from its first byte on.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) memory: Memory,
    pub(crate) layout: Layout,
}

/// How rows lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// From row to row, in bytes.
    pub(crate) pitch: u64,
    /// From slice to slice, in bytes.
    pub(crate) slice: u64,
}

/// Memory of any kind.
#[derive(Clone)]
pub(crate) enum Memory {
    /// Of a device, or pinned.
    Known(Bytes),
    /// The client's own.
    Client(ClientMemory),
    /// A copy of what the client had.
    Staged(Arc<[u8]>),
}

impl Layout {
    /// Rows without gaps.
    pub(crate) const FLAT: Layout = Layout { pitch: 0, slice: 0 };

    /// Where the last of the rows ends; `None` where no address is that large.
    pub(crate) fn extent(self, width: u64, height: u64, depth: u64) -> Option<u64> {
        if width == 0 || height == 0 || depth == 0 {
            return Some(0);
        }
        let rows = self.pitch.checked_mul(height - 1)?;
        let slices = self.slice.checked_mul(depth - 1)?;
        rows.checked_add(slices)?.checked_add(width)
    }
}

impl Memory {
    /// What is at an address that is a device's or the host's: what devices know, else the client's own.
    pub(crate) fn of_host(address: u64, bytes: u64) -> Result<Memory> {
        if address == 0 {
            return Err(Status::INVALID_VALUE);
        }
        // Part of pinned memory and part not is nothing that can be copied.
        if super::hosts().touches(address, bytes) {
            return Bytes::at(address, bytes).map(Memory::Known);
        }
        // An address of a device that was given back may come here too.
        if !super::host::is_there(address, bytes) {
            log::misuse(&format_args!("{bytes} bytes at {address:#x} are of no device, and not of the host"));
            return Err(Status::INVALID_VALUE);
        }
        Ok(Memory::Client(ClientMemory::new(address, bytes)))
    }

    /// What is at an address of a device, pinned memory among it.
    pub(crate) fn of_device(address: u64, bytes: u64) -> Result<Memory> {
        Bytes::at(address, bytes).map(Memory::Known)
    }

    /// What is at any address.
    pub(crate) fn of_any(address: u64, bytes: u64) -> Result<Memory> {
        match Memory::of_device(address, bytes) {
            Err(_) if !is_known(address) => Memory::of_host(address, bytes),
            found => found,
        }
    }

    /// What it is mapped to.
    pub(crate) fn mapping(&self) -> Mapping {
        match self {
            Memory::Known(bytes) => bytes.mapping(),
            Memory::Client(_) | Memory::Staged(_) => Mapping::Client,
        }
    }

    /// Whether it is the client's own.
    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Memory::Client(_))
    }

    /// Whether it is of a device alone.
    pub(crate) fn is_device(&self) -> bool {
        matches!(self, Memory::Known(bytes) if !bytes.is_host())
    }
}

/// Whether an address is in memory of a device, whatever its state.
fn is_known(address: u64) -> bool {
    let engines = super::engines().unwrap_or_default();
    engines.iter().any(|engine| engine.vm().extent(address).is_some())
}

impl Copy {
    /// A copy of bytes in a row.
    pub(crate) fn flat(target: Memory, source: Memory, bytes: u64) -> Copy {
        let side = |memory| Side { memory, layout: Layout::FLAT };
        Copy { target: side(target), source: side(source), width: bytes, height: 1, depth: 1 }
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    /// The same copy, from a copy of what the client has now.
    pub(crate) fn stage(&mut self) -> Result<()> {
        let mut staged = vec![0; self.bytes() as usize];
        if let Memory::Client(source) = self.source.memory {
            let layout = self.source.layout;
            let mut at = 0;
            for row in self.rows() {
                source.read(layout.at(row), self.width, |offset, piece| {
                    staged[at + offset as usize..][..piece.len()].copy_from_slice(piece);
                    Ok(())
                })?;
                at += self.width as usize;
            }
            let layout = Layout { pitch: self.width, slice: self.width * self.height };
            self.source = Side { memory: Memory::Staged(staged.into()), layout };
        }
        Ok(())
    }

    /// The rows, by slice and row.
    fn rows(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (height, depth) = (self.height, self.depth);
        (0..depth).flat_map(move |slice| (0..height).map(move |row| (slice, row)))
    }

    /// Whether rows follow one another without gaps on both sides, and so are one.
    fn is_flat(&self) -> bool {
        let flat = |layout: Layout| {
            (self.height == 1 || layout.pitch == self.width)
                && (self.depth == 1 || layout.slice == self.width * self.height)
        };
        flat(self.source.layout) && flat(self.target.layout)
    }

    /// Does it.
    pub(super) fn execute(&self) -> Result<()> {
        if self.is_flat() {
            return self.row(0, 0, self.bytes());
        }
        self.rows()
            .try_for_each(|row| self.row(self.target.layout.at(row), self.source.layout.at(row), self.width))
    }

    fn row(&self, to: u64, from: u64, bytes: u64) -> Result<()> {
        match (&self.target.memory, &self.source.memory) {
            (Memory::Known(target), Memory::Known(source)) => target.copy(to, source, from, bytes),
            (Memory::Known(target), Memory::Client(source)) => {
                source.read(from, bytes, |at, piece| target.write(to + at, piece))
            }
            (Memory::Known(target), Memory::Staged(data)) => target.write(to, range(data, from, bytes)?),
            (Memory::Client(target), Memory::Known(source)) => {
                target.write(to, bytes, |at, piece| source.read(from + at, piece))
            }
            (Memory::Client(target), Memory::Client(source)) => target.copy(to, *source, from, bytes),
            (Memory::Client(target), Memory::Staged(data)) => {
                let data = range(data, from, bytes)?;
                target.write(to, bytes, |at, piece| {
                    piece.copy_from_slice(&data[at as usize..][..piece.len()]);
                    Ok(())
                })
            }
            (Memory::Staged(_), _) => Err(Status::INVALID_VALUE),
        }
    }
}

impl Layout {
    /// Where a row begins.
    fn at(self, (slice, row): (u64, u64)) -> u64 {
        slice * self.slice + row * self.pitch
    }
}

fn range(data: &[u8], from: u64, bytes: u64) -> Result<&[u8]> {
    let end = from.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
    data.get(from as usize..end as usize).ok_or(Status::INVALID_VALUE)
}

/// The most bytes of the client's that are copied aside, so that it need not wait.
const MOST_STAGED: u64 = 1 << 20;

/// Asks for a copy on a stream. The client waits where it must: for its own memory, unless what is in it was copied
/// aside, and for pinned memory if it wants to. Between devices it never does. Where a copy that does not return at once
/// is from the client's own memory, it begins when the stream has nothing to do, and so the client waits for that.
pub(crate) fn issue(stream: &Arc<Stream>, mut copy: Copy, synchronous: bool) -> Result<()> {
    if copy.bytes() == 0 {
        return Ok(());
    }
    if stream.is_capturing() {
        // What is captured reaches the client's memory when the graph runs.
        if synchronous {
            guard::waits(stream)?;
        }
        return stream.submit(Op::Copy(Arc::new(copy)));
    }
    if synchronous && copy.source.memory.is_client() {
        stream.synchronize()?;
    }
    if copy.source.memory.is_client() && copy.bytes() <= MOST_STAGED && !copy.target.memory.is_client() {
        copy.stage()?;
    }
    let is_own = copy.target.memory.is_client() || copy.source.memory.is_client();
    let is_between = copy.target.memory.is_device()
        && !matches!(&copy.source.memory, Memory::Known(bytes) if bytes.is_host());
    stream.submit(Op::Copy(Arc::new(copy)))?;
    if is_own || synchronous && !is_between {
        stream.wait();
        stream.context().check()?;
    }
    Ok(())
}
