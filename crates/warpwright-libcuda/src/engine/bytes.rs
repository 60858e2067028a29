//! Bytes that operations reach: of devices and pinned memory, by their addresses; of the client's own memory, by
//! pointers.

use super::{BlockKind, Engine, HostKind, HostMemory, engines, hosts, status};
use crate::report::log;
use crate::types::{Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpwright_vm::Span;

/// Bytes of a device, or of memory of the host that devices know. They stay as long as this does; but once another
/// stream has come to where the memory is given back, the client must not reach them.
#[derive(Clone)]
pub(crate) struct Bytes {
    span: Span,
    is_gone: Option<Arc<AtomicBool>>,
    /// What the bytes are in, where it is memory of the host.
    _host: Option<Arc<HostMemory>>,
}

/// What memory is mapped to. A node of an executable graph keeps that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// A device, where it was allocated in a context; memory of pools and variables of modules are said to be in none.
    Device { ordinal: i32, context: Option<u64> },
    /// The host, and devices know of it.
    Host(HostKind),
    /// The host, and it is the client's own.
    Client,
}

impl Mapping {
    /// Whether memory that is mapped so can take the place of this.
    pub(crate) fn takes(self, other: Mapping) -> bool {
        match (self, other) {
            (
                Mapping::Device { ordinal, context: Some(own) },
                Mapping::Device { ordinal: on, context: Some(others) },
            ) => ordinal == on && own == others,
            (Mapping::Device { ordinal, .. }, Mapping::Device { ordinal: on, .. }) => ordinal == on,
            (own, other) => own == other,
        }
    }
}

impl Bytes {
    /// The bytes at an address of any device; they must be in one allocation, or in one variable.
    pub(crate) fn at(address: u64, bytes: u64) -> Result<Bytes> {
        if let Some(host) = hosts().find(address) {
            let span = host.span(address, bytes)?;
            return Ok(Bytes { span, is_gone: None, _host: Some(host) });
        }
        for engine in engines()? {
            if let Ok(span) = engine.vm().span(address, bytes) {
                // Memory of the host that is being given back is held by nobody any more.
                if span.is_mapped() {
                    return Err(Status::INVALID_VALUE);
                }
                return Ok(Bytes { span, is_gone: engine.memory().is_gone(address)?, _host: None });
            }
        }
        Err(Status::INVALID_VALUE)
    }

    /// How many.
    pub(crate) fn len(&self) -> u64 {
        self.span.bytes()
    }

    /// Where they are.
    pub(crate) fn address(&self) -> u64 {
        self.span.address()
    }

    /// What they are mapped to.
    pub(crate) fn mapping(&self) -> Mapping {
        if let Some(host) = &self._host {
            return Mapping::Host(host.kind);
        }
        let on = |engine: &Arc<Engine>| {
            engine.vm().extent(self.address())?;
            let block = engine.memory().find(self.address());
            let plain = block.filter(|block| matches!(block.kind, BlockKind::Plain));
            Some(Mapping::Device { ordinal: engine.ordinal(), context: plain.map(|block| block.context) })
        };
        engines().unwrap_or_default().iter().find_map(on).unwrap_or(Mapping::Client)
    }

    /// Whether the host reaches them too.
    pub(crate) fn is_host(&self) -> bool {
        self._host.is_some()
    }

    /// Whether the client may reach them still. If not, it has forgotten to wait.
    fn check(&self) -> Result<()> {
        if !self.is_gone.as_ref().is_some_and(|is_gone| is_gone.load(Relaxed)) {
            return Ok(());
        }
        log::misuse(&format_args!(
            "{} bytes at {:#x} are reached on one stream after another one has given them back: there is no wait between",
            self.len(),
            self.address()
        ));
        Err(Status::ILLEGAL_ADDRESS)
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        self.span.write(offset, data).map_err(|error| status(&error))
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, offset: u64, data: &mut [u8]) -> Result<()> {
        self.check()?;
        self.span.read(offset, data).map_err(|error| status(&error))
    }

    /// Writes a pattern again and again.
    pub(crate) fn fill(&self, offset: u64, bytes: u64, pattern: &[u8]) -> Result<()> {
        self.check()?;
        self.span.fill(offset, bytes, pattern).map_err(|error| status(&error))
    }

    /// Copies from others.
    pub(crate) fn copy(&self, offset: u64, source: &Bytes, from: u64, bytes: u64) -> Result<()> {
        self.check()?;
        source.check()?;
        self.span.copy(offset, &source.span, from, bytes).map_err(|error| status(&error))
    }

    /// The number that four or eight bytes are.
    pub(super) fn value(&self) -> Option<u64> {
        let mut value = [0; 8];
        let len = self.len().min(8) as usize;
        self.span.peek(&mut value[..len]).ok()?;
        Some(u64::from_le_bytes(value))
    }

    /// Makes them that number.
    pub(super) fn set_value(&self, value: u64) -> Result<()> {
        self.check()?;
        let len = self.len().min(8) as usize;
        self.span.poke(&value.to_le_bytes()[..len]).map_err(|error| status(&error))
    }
}

/// Memory of the client's that no device knows.
///
/// It is reached while the client waits, or by a captured copy at the time for which the client has promised it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientMemory {
    address: usize,
    bytes: u64,
}

impl ClientMemory {
    /// Memory that a client gave as good for so many bytes.
    pub(crate) fn new(address: u64, bytes: u64) -> Self {
        let pointer: *mut u8 = std::ptr::without_provenance_mut(address as usize);
        ClientMemory { address: pointer.expose_provenance(), bytes }
    }

    /// Where it begins.
    pub(crate) fn address(self) -> usize {
        self.address
    }

    /// A pointer to bytes that are inside.
    fn pointer(self, offset: u64, bytes: u64) -> Result<*mut u8> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        end.ok_or(Status::INVALID_VALUE)?;
        Ok(std::ptr::with_exposed_provenance_mut(self.address.wrapping_add(offset as usize)))
    }

    /// Calls `each` with the bytes of a range, a piece at a time, and where they are in it.
    pub(super) fn read(
        self,
        offset: u64,
        bytes: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let pointer = self.pointer(offset, bytes)?;
        let mut piece = [0; PIECE];
        for at in (0..bytes).step_by(PIECE) {
            let take = (bytes - at).min(PIECE as u64) as usize;
            // SAFETY: the client's memory, which the interface says can be read there. It is copied by a pointer and
            // not lent, since others may change it meanwhile.
            unsafe { pointer.add(at as usize).copy_to(piece.as_mut_ptr(), take) };
            each(at, &piece[..take])?;
        }
        Ok(())
    }

    /// Fills a range with what `each` puts in pieces of it.
    pub(super) fn write(
        self,
        offset: u64,
        bytes: u64,
        mut each: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let pointer = self.pointer(offset, bytes)?;
        let mut piece = [0; PIECE];
        for at in (0..bytes).step_by(PIECE) {
            let take = (bytes - at).min(PIECE as u64) as usize;
            each(at, &mut piece[..take])?;
            // SAFETY: the client's memory, which the interface says can be written there, as above.
            unsafe { pointer.add(at as usize).copy_from(piece.as_ptr(), take) };
        }
        Ok(())
    }

    /// Copies from other such memory; they may overlap.
    pub(super) fn copy(self, offset: u64, source: ClientMemory, from: u64, bytes: u64) -> Result<()> {
        let (to, from) = (self.pointer(offset, bytes)?, source.pointer(from, bytes)?);
        // SAFETY: both are the client's memory, as above.
        unsafe { to.copy_from(from, bytes as usize) };
        Ok(())
    }
}

/// Bytes that are copied at a time.
const PIECE: usize = 16 << 10;
