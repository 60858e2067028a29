//! Memory of Python's objects, lent to a device.
#![allow(unsafe_code)]

use crate::error::refused;
use pyo3::prelude::*;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use warpwright_vm as vm;

/// Bytes of a word.
const WORD: u64 = 4;

/// The words that have bytes of an object, with that object.
struct Words {
    first: usize,
    count: usize,
    _owner: Py<PyAny>,
}

impl AsRef<[AtomicU32]> for Words {
    fn as_ref(&self) -> &[AtomicU32] {
        let first = std::ptr::with_exposed_provenance::<AtomicU32>(self.first);
        // SAFETY: whoever lends the memory says that it stays where it is as long as its owner is there, which this
        // keeps. Words at its ends are in its pages. The processor reads and writes them whatever else does.
        unsafe { std::slice::from_raw_parts(first, self.count) }
    }
}

/// What is to be lent.
pub(crate) struct Asked<'a> {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The object that has it.
    pub(crate) owner: Py<PyAny>,
    /// For reports.
    pub(crate) name: &'a str,
    /// Whether it counts as written.
    pub(crate) written: bool,
    /// Whether kernels may write it.
    pub(crate) writable: bool,
}

/// Memory that is lent to a device, until it is closed or there is no reference to it any more.
#[pyclass(frozen, module = "warpwright._warpwright")]
pub(crate) struct Memory {
    #[pyo3(get)]
    address: u64,
    #[pyo3(get)]
    bytes: u64,
    lent: Mutex<Option<Lent>>,
}

/// What the device has of it.
enum Lent {
    /// Memory like its own.
    Whole(vm::Buffer<u8>),
    /// Memory that it may only read, all of it written.
    ReadOnly { _reserved: vm::Reserved },
}

impl Memory {
    /// Lends memory. It begins at an address that need not be that of a word; the bytes before it in its word count as
    /// lent too. All of memory that kernels may only read counts as written.
    pub(crate) fn lend(py: Python<'_>, device: &vm::Device, asked: Asked<'_>) -> PyResult<Memory> {
        let Asked { address, bytes, owner, name, written, writable } = asked;
        let Some(end) = address.checked_add(bytes).filter(|_| address != 0) else {
            return Err(refused(py, format!("{bytes} bytes at address {address:#x} are no memory")));
        };
        let (first, before) = (address / WORD * WORD, address % WORD);
        let size = end - first;
        let count = size.div_ceil(WORD) as usize;
        let words = Arc::new(Words { first: first as usize, count, _owner: owner });
        let lent = if writable {
            let lent = device.lend_host(words, size, name);
            lent.and_then(|buffer| {
                buffer.mark_written(0, if written { size } else { before })?;
                Ok(Lent::Whole(buffer))
            })
        } else {
            let reserved = device.reserve(first, words, size, name);
            reserved.and_then(|reserved| {
                reserved.set(0, size, vm::PageAccess::Read)?;
                Ok(Lent::ReadOnly { _reserved: reserved })
            })
        };
        let lent = lent.map_err(|error| refused(py, error))?;
        Ok(Memory { address, bytes, lent: Mutex::new(Some(lent)) })
    }

    /// Uses what the device may write; for other memory the value is `read_only`.
    fn with<T>(&self, py: Python<'_>, read_only: T, body: impl FnOnce(&vm::Buffer<u8>) -> T) -> PyResult<T> {
        match &*self.lent.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Lent::Whole(buffer)) => Ok(body(buffer)),
            Some(Lent::ReadOnly { .. }) => Ok(read_only),
            None => Err(refused(py, "the memory was closed")),
        }
    }

    /// The finding for memory that a kernel should have written in full: the data of its elements of `width` bytes.
    pub(crate) fn unwritten(
        &self,
        py: Python<'_>,
        kernel: &str,
        name: &str,
        width: u64,
        data: &[(u64, u64)],
    ) -> PyResult<Option<vm::Finding>> {
        self.with(py, None, |buffer| buffer.unwritten_output(kernel, name, width, data))
    }

    /// Where a range begins, from the first word on.
    fn range(&self, py: Python<'_>, offset: u64, bytes: Option<u64>) -> PyResult<(u64, u64)> {
        let bytes = bytes.unwrap_or(self.bytes.saturating_sub(offset));
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok((self.address % WORD + offset, bytes)),
            _ => {
                Err(refused(py, format!("{bytes} bytes at {offset} are not inside of {} bytes", self.bytes)))
            }
        }
    }
}

#[pymethods]
impl Memory {
    #[pyo3(signature = (offset = 0, bytes = None))]
    fn mark_written(&self, py: Python<'_>, offset: u64, bytes: Option<u64>) -> PyResult<()> {
        let (offset, bytes) = self.range(py, offset, bytes)?;
        let marked = self.with(py, Ok(()), |buffer| buffer.mark_written(offset, bytes))?;
        marked.map_err(|error| refused(py, error))
    }

    #[pyo3(signature = (offset = 0, bytes = None))]
    fn is_written(&self, py: Python<'_>, offset: u64, bytes: Option<u64>) -> PyResult<bool> {
        let (offset, bytes) = self.range(py, offset, bytes)?;
        self.with(py, true, |buffer| buffer.is_written(offset, bytes))
    }

    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        let marked = self.with(py, Ok(()), |buffer| {
            buffer.forget();
            buffer.mark_written(0, self.address % WORD)
        })?;
        marked.map_err(|error| refused(py, error))
    }

    fn close(&self) {
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(lent);
    }
}
