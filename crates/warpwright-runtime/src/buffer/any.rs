//! Ranges of device memory whose element type is known only at run time.

use super::{Block, Buffer, Element, Issuing, bounds};
use crate::backend::Memory;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::op::MemoryRange;
use crate::stream::StreamState;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use warpwright_ptx::ir::Type;

/// A [`Buffer`] whose element type is a value: an argument of a kernel, a tensor of a graph.
#[derive(Clone)]
pub struct AnyBuffer {
    block: Arc<Block>,
    /// First byte, in the block.
    offset: u64,
    bytes: u64,
    element: Type,
}

impl AnyBuffer {
    /// A whole block. An element is a whole number of bytes, and the block a whole number of elements.
    pub(crate) fn new(block: Block, bytes: u64, element: Type) -> Self {
        AnyBuffer { block: Arc::new(block), offset: 0, bytes, element }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        (self.bytes / size(self.element)) as usize
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Size in bytes.
    pub fn num_bytes(&self) -> u64 {
        self.bytes
    }

    /// Type of the elements.
    pub fn element(&self) -> Type {
        self.element
    }

    /// Its address on the device. The address does not keep the memory alive.
    pub fn device_ptr(&self) -> u64 {
        self.block.memory.address() + self.offset
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.block.device
    }

    /// Whether it is host memory that is mapped into the device.
    pub fn is_mapped(&self) -> bool {
        self.block.is_mapped()
    }

    /// Whether it overlaps another buffer.
    pub fn overlaps(&self, other: &AnyBuffer) -> bool {
        let start = self.offset.max(other.offset);
        let end = (self.offset + self.bytes).min(other.offset + other.bytes);
        Arc::ptr_eq(&self.block, &other.block) && start < end
    }

    /// A range of its elements, which shares its memory.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<AnyBuffer> {
        let (start, end) = bounds(range, self.len())?;
        let size = size(self.element);
        let (offset, bytes) = (self.offset + start as u64 * size, (end - start) as u64 * size);
        Ok(AnyBuffer { block: self.block.clone(), offset, bytes, element: self.element })
    }

    /// The same bytes as elements of another type.
    pub fn cast(&self, to: Type) -> Result<AnyBuffer> {
        let refuse = |rule| {
            let (address, bytes) = (self.device_ptr(), self.bytes);
            Err(RuntimeError::Cast { address, bytes, to, rule })
        };
        if to.bits() < 8 {
            refuse("elements of buffers have whole bytes")
        } else if !self.bytes.is_multiple_of(size(to)) {
            refuse("they must be a whole number of elements")
        } else if !self.device_ptr().is_multiple_of(size(to)) {
            refuse("the address must be a multiple of the element's size")
        } else {
            Ok(AnyBuffer { element: to, ..self.clone() })
        }
    }

    /// The typed handle of the same memory.
    pub fn typed<T: Element>(&self) -> Result<Buffer<T>> {
        if self.element != T::TYPE {
            return Err(RuntimeError::ElementType { found: self.element, asked: T::TYPE });
        }
        if !self.len().is_multiple_of(T::PARTS) {
            let (address, bytes, rule) =
                (self.device_ptr(), self.bytes, "they must be a whole number of elements");
            return Err(RuntimeError::Cast { address, bytes, to: T::TYPE, rule });
        }
        Ok(Buffer::new(self.clone()))
    }

    /// Its range of bytes, for operations.
    pub(crate) fn range(&self) -> MemoryRange {
        MemoryRange { memory: self.block.memory.clone(), offset: self.offset, bytes: self.bytes }
    }

    /// The memory that contains it.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.block.memory
    }

    /// Adds the memory that can be reached through the buffer: its own, and the memory that addresses in it point to.
    pub(crate) fn reach(&self, into: &mut Vec<Arc<Memory>>) {
        into.push(self.block.memory.clone());
        self.held().iter().for_each(|buffer| buffer.reach(into));
    }

    /// The buffers whose addresses are in its memory: see [`OperandTable`](crate::OperandTable).
    pub(crate) fn held(&self) -> &[AnyBuffer] {
        self.block.held()
    }

    /// Notes that an operation being issued on that stream uses the buffer, so that its memory is not reused before the
    /// operation is complete. Refused if the memory was lent and the loan has ended.
    pub(crate) fn used_by(&self, stream: &Arc<StreamState>, issuing: &mut Issuing) -> Result<()> {
        self.block.used_by(stream, issuing)
    }

    /// The block that contains it.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }
}

impl fmt::Debug for AnyBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} at {:#x}", self.len(), self.element.name(), self.device_ptr())
    }
}

/// Bytes of an element. Elements of buffers are whole bytes.
fn size(element: Type) -> u64 {
    u64::from(element.bits().div_ceil(8))
}
