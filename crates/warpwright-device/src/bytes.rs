//! Bytes that operations reach: of a device, and of a front end's host.

use crate::failure::{Cause, Failure, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpwright_vm::{DeviceError, Span};

/// Memory of the host that no device knows. Whoever implements this says when it may be reached.
///
/// Ranges are inside: callers have checked them.
pub trait HostBytes: Send + Sync {
    /// Where it is for the host, which decides how overlapping bytes are copied; 0 for memory that overlaps nothing.
    fn address(&self) -> u64;

    /// Copies bytes out, from its byte `offset` on.
    fn read(&self, offset: u64, data: &mut [u8]);

    /// Copies bytes in, from its byte `offset` on.
    fn write(&self, offset: u64, data: &[u8]);
}

/// Bytes of a device, or of memory of the host that devices know. They stay as long as this does.
#[derive(Clone)]
pub struct Bytes {
    span: Span,
    /// Whether a stream has come to where the memory is given back: nobody may reach it any more.
    released: Option<Arc<AtomicBool>>,
    /// What else has to stay.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl Bytes {
    /// Bytes that nobody gives back in the order of a stream.
    pub fn new(span: Span) -> Bytes {
        Bytes { span, released: None, _owner: None }
    }

    /// The same, until `released` is set.
    pub fn until_released(self, released: Option<Arc<AtomicBool>>) -> Bytes {
        Bytes { released, ..self }
    }

    /// The same, with what has to stay as long.
    pub fn kept_by(self, owner: Arc<dyn Any + Send + Sync>) -> Bytes {
        Bytes { _owner: Some(owner), ..self }
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.span.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where they are.
    pub fn address(&self) -> u64 {
        self.span.address()
    }

    /// Whether the host reaches them too.
    pub fn is_mapped(&self) -> bool {
        self.span.is_mapped()
    }

    /// Does something with the bytes, which may be reached still. If not, the client has forgotten to wait.
    fn reach<T>(&self, reach: impl FnOnce(&Span) -> Result<T, DeviceError>) -> Result<T> {
        if self.released.as_ref().is_some_and(|released| released.load(Relaxed)) {
            let message = format!(
                "{} bytes at {:#x} are reached on one stream after another one has given them back: there is no wait \
                 between",
                self.len(),
                self.address()
            );
            let operation = "an operation".into();
            return Err(Box::new(Failure { operation, launch: None, cause: Cause::Released, message }));
        }
        reach(&self.span).map_err(|error| Failure::of_device("an operation", &error))
    }

    /// Copies bytes in.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.reach(|span| span.write(offset, data))
    }

    /// Copies bytes out.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<()> {
        self.reach(|span| span.read(offset, data))
    }

    /// Writes a pattern again and again.
    pub fn fill(&self, offset: u64, bytes: u64, pattern: &[u8]) -> Result<()> {
        self.reach(|span| span.fill(offset, bytes, pattern))
    }

    /// Copies from others, which may overlap.
    pub fn copy(&self, offset: u64, source: &Bytes, from: u64, bytes: u64) -> Result<()> {
        source.reach(|source| Ok(source.clone()))?;
        self.reach(|span| span.copy(offset, &source.span, from, bytes))
    }

    /// The number that four or eight bytes are, now.
    pub fn value(&self) -> Option<u64> {
        let mut value = [0; 8];
        let len = self.len().min(8) as usize;
        self.span.peek(&mut value[..len]).ok()?;
        Some(u64::from_le_bytes(value))
    }

    /// Makes them that number, as one value.
    pub fn set_value(&self, value: u64) -> Result<()> {
        let len = self.len().min(8) as usize;
        self.reach(|span| span.poke(&value.to_le_bytes()[..len]))
    }
}
