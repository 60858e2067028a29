//! Bytes that operations access: of a device, and of a front end's host.

use crate::failure::{Cause, Failure, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpwright_vm::{DeviceError, Span};

/// Host memory that devices do not know. The implementation decides when it may be accessed.
///
/// Callers have checked that ranges are inside.
pub trait HostBytes: Send + Sync {
    /// Its address on the host, which decides how overlapping bytes are copied; 0 for memory that overlaps nothing.
    fn address(&self) -> u64;

    /// Copies bytes out of it, from byte `offset` on.
    fn read(&self, offset: u64, data: &mut [u8]);

    /// Copies bytes into it, from byte `offset` on.
    fn write(&self, offset: u64, data: &[u8]);
}

/// Bytes of a device, or of host memory that devices know. They stay allocated as long as this value lives.
#[derive(Clone)]
pub struct Bytes {
    span: Span,
    /// Whether a stream has executed the release of the memory, after which no access is legal.
    released: Option<Arc<AtomicBool>>,
    /// Another object that must stay alive.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl Bytes {
    /// Bytes that are not released in the order of a stream.
    pub fn new(span: Span) -> Bytes {
        Bytes { span, released: None, _owner: None }
    }

    /// The same bytes, which must not be accessed after `released` is set.
    pub fn until_released(self, released: Option<Arc<AtomicBool>>) -> Bytes {
        Bytes { released, ..self }
    }

    /// The same bytes, which also keep `owner` alive.
    pub fn kept_by(self, owner: Arc<dyn Any + Send + Sync>) -> Bytes {
        Bytes { _owner: Some(owner), ..self }
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.span.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.span.address()
    }

    /// Whether the host can access them.
    pub fn is_mapped(&self) -> bool {
        self.span.is_mapped()
    }

    /// Accesses the bytes. An error if they were released: the client has forgotten a wait.
    fn reach<T>(&self, reach: impl FnOnce(&Span) -> Result<T, DeviceError>) -> Result<T> {
        if self.released.as_ref().is_some_and(|released| released.load(Relaxed)) {
            let message = format!(
                "{} bytes at {:#x} are accessed after a stream or a graph has freed them, or before a graph has allocated \
                 them: a wait or an edge is missing",
                self.len(),
                self.address()
            );
            let operation = "an operation".into();
            return Err(Box::new(Failure { operation, launch: None, cause: Cause::Released, message }));
        }
        reach(&self.span).map_err(|error| Failure::of_device("an operation", &error))
    }

    /// Copies `data` to byte `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.reach(|span| span.write(offset, data))
    }

    /// Copies from byte `offset` to `data`.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<()> {
        self.reach(|span| span.read(offset, data))
    }

    /// Fills `bytes` bytes from `offset` on with a repeated pattern.
    pub fn fill(&self, offset: u64, bytes: u64, pattern: &[u8]) -> Result<()> {
        self.reach(|span| span.fill(offset, bytes, pattern))
    }

    /// Copies from other bytes, which may overlap.
    pub fn copy(&self, offset: u64, source: &Bytes, from: u64, bytes: u64) -> Result<()> {
        source.reach(|source| Ok(source.clone()))?;
        self.reach(|span| span.copy(offset, &source.span, from, bytes))
    }

    /// The current value of four or eight bytes.
    pub fn value(&self) -> Option<u64> {
        let mut value = [0; 8];
        let len = self.len().min(8) as usize;
        self.span.peek(&mut value[..len]).ok()?;
        Some(u64::from_le_bytes(value))
    }

    /// Writes a value of four or eight bytes as a whole.
    pub fn set_value(&self, value: u64) -> Result<()> {
        let len = self.len().min(8) as usize;
        self.reach(|span| span.poke(&value.to_le_bytes()[..len]))
    }
}
