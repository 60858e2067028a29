//! Operands of many calls in one buffer.

use super::Operands;
use crate::buffer::{AnyBuffer, Buffer};
use crate::error::{Result, RuntimeError};
use crate::stream::Stream;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Operands and other words, one after the other, before they are uploaded.
#[derive(Clone, Default)]
pub struct OperandList {
    words: Vec<u64>,
    /// One buffer for each piece of memory that addresses point to.
    buffers: Vec<AnyBuffer>,
    /// That memory, by its address in this process.
    known: HashSet<usize>,
}

impl OperandList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the words of operands. Returns the index of the first.
    pub fn push(&mut self, operands: &Operands) -> usize {
        self.hold(operands);
        self.push_words(operands.words.iter().map(|(_, word)| *word))
    }

    /// Adds the word of one argument. Returns its index; `None` if the kernel has no argument of that name.
    pub fn push_arg(&mut self, operands: &Operands, name: &str) -> Option<usize> {
        let &(_, word) = operands.words.iter().find(|(arg, _)| *arg == name)?;
        self.hold(operands);
        Some(self.push_words([word]))
    }

    fn hold(&mut self, operands: &Operands) {
        for buffer in &operands.buffers {
            if self.known.insert(Arc::as_ptr(buffer.memory()).addr()) {
                self.buffers.push(buffer.clone());
            }
        }
    }

    /// Adds numbers: sizes, grids. Returns the index of the first.
    pub fn push_words(&mut self, words: impl IntoIterator<Item = u64>) -> usize {
        let at = self.words.len();
        self.words.extend(words);
        at
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Uploads the words to the stream's device: see [`Stream::clone_htod`]. Refused if an address points to a buffer
    /// of another device.
    pub fn upload(self, stream: &Stream) -> Result<OperandTable> {
        for buffer in &self.buffers {
            if buffer.device() != stream.device() {
                return Err(RuntimeError::OtherDevice { operation: "upload", what: "buffer of an operand" });
            }
        }
        let buffer = stream.alloc_holding(self.words.len(), self.buffers.into())?;
        stream.memcpy_htod(&self.words, &buffer)?;
        Ok(OperandTable { buffer })
    }
}

impl fmt::Debug for OperandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OperandList");
        debug.field("len", &self.len()).field("buffers", &self.buffers.len()).finish_non_exhaustive()
    }
}

/// Operands of many calls in device memory: an argument of the calling kernel. A cheap handle: its clones are one
/// table.
///
/// The buffers that its addresses point to live as long as any handle of its memory, and any operation or graph that
/// uses it.
#[derive(Clone)]
pub struct OperandTable {
    buffer: Buffer<u64>,
}

impl OperandTable {
    /// Number of words.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The words as a buffer, for launches. Writing other words to it changes the arguments of the calls.
    pub fn buffer(&self) -> &Buffer<u64> {
        &self.buffer
    }

    /// One buffer for each piece of memory that its addresses point to.
    pub fn references(&self) -> &[AnyBuffer] {
        self.buffer.as_any().held()
    }
}

impl AsRef<AnyBuffer> for OperandTable {
    fn as_ref(&self) -> &AnyBuffer {
        self.buffer.as_ref()
    }
}

impl fmt::Debug for OperandTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OperandTable");
        debug.field("len", &self.len()).field("references", &self.references().len()).finish()
    }
}
